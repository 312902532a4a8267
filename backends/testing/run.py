"""One run of the tests in one fresh container without network, and what it said.

The host's side of `evaluate.sh.j2`: it puts patch and script into a folder that only root may read and of which
nobody knows the name beforehand, and takes back the report, the times and the canaries' names from there.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from backends.sandbox.base import Ran, Series
from backends.testing import coverage, junit
from backends.testing.outcomes import Outcome, Report, Status

UNAPPLIED = 96
"""Exit code when the submission's patch does not apply."""

# The second attempt forgives what hand-made patches get wrong: line counts, white space in context, distant context.
_START = """
box="$1" workdir="$2"
chmod 711 "$box" && cd "$workdir" || exit 97
if [ -s "$box/submission.patch" ]; then
    git apply --whitespace=nowarn "$box/submission.patch" ||
    git apply --whitespace=nowarn --recount --ignore-whitespace -C1 "$box/submission.patch" ||
    exit 96
fi
export MERGEMILL_REPORT_DIR="$box/report"
[ ! -f "$box/files" ] || export MERGEMILL_FILES="$box/files"
[ ! -f "$box/test.patch" ] || export MERGEMILL_TEST_PATCH="$box/test.patch"
[ -f "$box/collect.sh" ] || exec /bin/bash "$box/evaluate.sh"
. "$box/collect.sh"
/bin/bash "$box/evaluate.sh"
code=$?
[ ! -d "$box/report" ] || tell_covered "$box/report/covered.lines"
exit $code
"""

_LEFT = ("junit.xml", "times", "canaries", "known", "error", "cpu", coverage.LEFT)
"""What is taken back of the report folder: files of root's, beside the folder that the tests write to."""


@dataclass(frozen=True, kw_only=True)
class TestResult:
    """What one run came to. `report` is None when the runner left none that can be read."""

    __test__ = False
    ran: Ran
    report: Report | None
    """Outcomes without the canaries."""
    test_seconds: float
    """Seconds inside the test process, start of the interpreter included."""
    script_sha: str
    log: str
    applied: bool
    """Whether the patch applied; if not, nothing ran."""
    canaries: str
    """`right`, `wrong` (one reported what it cannot have come to), `missing`, or `none` where the script puts none."""
    fooled: bool = False
    """Whether the canary that must fail was reported as passed: no honest runner does."""
    infrastructure_error: str | None = None
    cpu_seconds: float | None = None
    """Processor time of the tests and all their processes, where the script meters it and the box can tell."""
    covered: coverage.Covered | None = None
    """Lines that were executed, where that was asked for and can be told."""

    @property
    def broken(self) -> str:
        """In words, that the run was ended or left no report; empty where neither is so."""
        if self.ran.killed_by:
            return f"the tests were ended for {self.ran.killed_by}"
        return "" if self.report is not None else f"the runner left no report, exit code {self.ran.exit_code}"


def run_tests(
    boxes: Series,
    script: str,
    *,
    workdir: str = "/testbed",
    patch: bytes = b"",
    test_patch: bytes | None = None,
    files: Sequence[str] = (),
    seed: int = 0,
    known_files: Sequence[str] = (),
    collect_lines: bool = False,
    last: bool = False,
) -> TestResult:
    """Run the evaluation script in a fresh container.

    Args:
        boxes: of the task's image.
        script: what `script.render` gave.
        workdir: the tree, as the script has it.
        patch: gold patch or submission, applied first; empty for none. One that does not apply is a result.
        test_patch: replaces the script's own test patch (twins).
        files: test files to run instead of the script's; in another order for every seed but 0.
        seed: hash seed, and the order of `files`.
        known_files: further paths for telling test files, beside those that lie in the tree.
        collect_lines: whether to tell which lines of the tree are executed; the script is the same.
        last: whether no other run of these boxes will follow.

    Raises:
        Transient: the engine failed.
    """
    box = f"/mergemill-{secrets.token_hex(8)}"
    given = {"evaluate.sh": script.encode(), "submission.patch": patch}
    if test_patch is not None:
        given["test.patch"] = test_patch
    if files:
        given["files"] = "".join(f"{file}\n" for file in _ordered(files, seed)).encode()
    if collect_lines:
        given |= coverage.collectors()
    ran = boxes.run(
        ["/bin/bash", "-c", _START, "mergemill", box, workdir],
        files={f"{box}/{name}": content for name, content in given.items()},
        collect=[f"{box}/report/{name}" for name in _LEFT], env={"MERGEMILL_SEED": str(seed)}, last=last,
    )  # fmt: skip
    return _told(ran, script, known_files)


def _told(ran: Ran, script: str, known_files: Sequence[str]) -> TestResult:
    """What a run of the script says by what it left."""
    left = {path.rpartition("/")[2]: content for path, content in ran.files.items()}
    listed = left.get("canaries", b"").decode()
    whole = _report(left, known_files)
    report, canaries = _without_canaries(whole, listed)
    return TestResult(
        ran=replace(ran, files={}), report=report, canaries=canaries, test_seconds=_test_seconds(left),
        script_sha=hashlib.sha256(script.encode()).hexdigest(), log=ran.output,
        applied=ran.exit_code != UNAPPLIED or bool(left), fooled=_fooled(whole, listed),
        infrastructure_error=left["error"].decode(errors="replace").strip() if "error" in left else None,
        cpu_seconds=int(left.get("cpu", b"0")) / 1e9 or None, covered=coverage.covered(left.get(coverage.LEFT)),
    )  # fmt: skip


def _fooled(report: Report | None, listed: str) -> bool:
    """Whether a report has the canary pass that must fail. `listed`: lines `pass FILE` and `fail FILE`."""
    failing = {line.partition(" ")[2] for line in listed.splitlines() if line.startswith("fail ")}
    outcomes = report.outcomes.items() if report else ()
    return any(test.partition("::")[0] in failing and o.status is Status.PASSED for test, o in outcomes)


def _ordered(files: Sequence[str], seed: int) -> list[str]:
    ordered = list(files)
    if seed:
        ordered.sort()
        Random(seed).shuffle(ordered)  # noqa: S311 - an order, not a secret
    return ordered


def _report(left: Mapping[str, bytes], known_files: Sequence[str]) -> Report | None:
    if "junit.xml" not in left:
        return None
    known = left.get("known", b"").decode(errors="surrogateescape").split("\0")
    try:
        return junit.parse(left["junit.xml"], {*known, *known_files} - {""})
    except junit.UnreadableReport:
        return None


def _test_seconds(left: Mapping[str, bytes]) -> float:
    times = left.get("times", b"").split()
    return (int(times[1]) - int(times[0])) / 1e9 if len(times) == 3 else 0.0


def _without_canaries(report: Report | None, listed: str) -> tuple[Report | None, str]:
    """The report of the real tests, and whether the canaries came to what they must.

    `listed`: lines `pass FILE` and `fail FILE`.
    """
    expected = {file: word for word, _, file in (line.partition(" ") for line in listed.splitlines())}
    if report is None or not expected:
        return report, "missing" if expected else "none"
    seen: dict[str, Outcome] = {}
    real: dict[str, Outcome] = {}
    for test, outcome in report.outcomes.items():
        file = test.partition("::")[0]
        if file in expected:
            seen[file] = outcome
        else:
            real[test] = outcome
    wanted = {"pass": Status.PASSED, "fail": Status.FAILED}
    if any(outcome.status is not wanted[expected[file]] for file, outcome in seen.items()):
        verdict = "wrong"
    else:
        verdict = "right" if len(seen) == len(expected) else "missing"
    uncollected = {file: why for file, why in report.uncollected.items() if file not in expected}
    return Report(outcomes=real, uncollected=uncollected), verdict
