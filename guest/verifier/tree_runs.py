"""Runs of evaluation scripts on several trees in a single container; each starts from the tree as the image has it.

Folders that the tests' user can write are restored before a run, as a fresh container would. Runs as root on Python 3.9
or later, with the standard library only.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from guest.reports.canaries import judge_canaries
from guest.scoring.coverage import CoveredLines, parse_coverage
from guest.scoring.file_order import shuffle_files
from guest.verifier import grade


@dataclass(frozen=True)
class ContainerReport:
    """Report of a run without its canaries: test id -> status, and files that could not be collected."""

    outcomes: Mapping[str, str]
    uncollected: Collection[str]

    def has_passed(self, test: str) -> bool:
        """Return whether the test ran and passed."""
        return self.outcomes.get(test) == "passed"

    def has_failed(self, test: str) -> bool:
        """Return whether the test ran and failed."""
        return self.outcomes.get(test) in ("failed", "error")


EMPTY_REPORT = ContainerReport({}, ())


@dataclass(frozen=True)
class TreeRun:
    """A run. `canaries`: `right`, `wrong` (an impossible status), `missing`, or `none` where there are none.

    `tree_error`: why no test could run in the tree.
    """

    report: ContainerReport | None
    killed: bool
    canaries: str
    cpu_seconds: float | None = None
    wall_seconds: float = 0.0
    covered: CoveredLines | None = None
    tree_error: str = ""


@dataclass
class TreeRunner:
    """Runs scripts in the tree of a task's container.

    Args:
        tree: folder of the tree.
        work: a new folder of root.
        seconds: time limit of a run.
    """

    tree: str
    work: str
    seconds: float
    longest: float = field(default=0.0, init=False)
    """Seconds of the longest run so far."""
    _number: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._state = grade.WritableState(self.tree, os.path.join(self.work, "pristine"))

    def restore(self) -> None:
        """Restore everything that the tests' user can write."""
        self._state.restore()

    def make_path(self, name: str) -> str:
        """Return a new path in the work folder."""
        self._number += 1
        return os.path.join(self.work, f"{name}-{self._number}")

    def write(self, name: str, content: bytes) -> str:
        """Write a new file and return its path."""
        path = self.make_path(name)
        with open(path, "wb") as file:
            file.write(content)
        return path

    def run(
        self,
        script: bytes,
        *,
        patch: bytes = b"",
        test_patch: bytes | None = None,
        files: Sequence[str] = (),
        seed: int = 0,
        seconds: float | None = None,
        collectors: str | None = None,
    ) -> TreeRun:
        """Run a script once on the tree with `patch`.

        Args:
            script: an evaluation script.
            patch: changes the tree before the script runs; it must apply.
            test_patch: test patch that replaces the script's own test patch.
            files: test files to run instead of the script's, shuffled for every seed but 0.
            seed: hash seed, and seed of the order of `files`.
            seconds: lower time limit.
            collectors: folder of the coverage collectors, to collect the executed lines.

        Raises:
            InfrastructureFailure: the evaluation itself failed.
        """
        self.restore()
        if patch and not grade.apply_patch(self.write("patch", patch), self.tree):
            raise grade.InfrastructureFailure("a patch of the task does not apply")
        report = self.make_path("report")
        path = self.write("script", script)
        command = ["/bin/bash", path]
        if collectors is not None:
            command = ["/bin/bash", self.write("collect", self._render_collector(path, report, collectors))]
        output = grade.run_script(
            report,
            min(self.seconds, seconds or self.seconds),
            None if test_patch is None else self.write("tests", test_patch),
            shuffle_files(files, seed),
            command=command,
            seed=seed,
        )
        run = self._read_run(report, killed=output.killed, collected=collectors is not None)
        return replace(run, tree_error=output.tree_error)

    def _render_collector(self, script: str, report: str, collectors: str) -> bytes:
        """Return Bash that runs the script with the coverage collectors."""
        run_dir = self.make_path("coverage")
        subprocess.check_call(["cp", "-r", collectors, run_dir])
        os.chmod(run_dir, 0o711)  # noqa: S103 - the tests' user writes to a folder below
        lines = [
            f"run_dir={shlex.quote(run_dir)} workdir={shlex.quote(self.tree)}",
            '. "$run_dir/collect.sh"',
            f"/bin/bash {shlex.quote(script)}",
            "code=$?",
            f"write_coverage {shlex.quote(report)}/covered.lines",
            "exit $code",
        ]
        return "\n".join(lines).encode() + b"\n"

    def _read_run(self, report: str, *, killed: bool, collected: bool) -> TreeRun:
        times = [int(word) for word in read_words(report, "times")[:2]]
        seconds = (times[1] - times[0]) / 1e9 if len(times) == 2 else 0.0
        self.longest = max(self.longest, self.seconds if killed else seconds)
        cpu = read_words(report, "cpu")
        parsed = None if killed else grade.read_report(report)
        required = grade.read_canaries(report)
        statuses = parsed.list_statuses() if parsed else {}
        return TreeRun(
            report=_remove_canaries(ContainerReport(statuses, parsed.uncollected), required) if parsed else None,
            killed=killed,
            canaries=judge_canaries(statuses, required),
            cpu_seconds=int(cpu[0]) / 1e9 or None if cpu else None,
            wall_seconds=seconds,
            covered=parse_coverage(_read(report, "covered.lines")) if collected else None,
        )


def read_words(report: str, name: str) -> list[bytes]:
    """Return the words of a file of the report folder; none when it is absent."""
    return (_read(report, name) or b"").split()


def _read(report: str, name: str) -> bytes | None:
    try:
        with open(os.path.join(report, name), "rb") as file:
            return file.read()
    except OSError:
        return None


def _remove_canaries(report: ContainerReport, canaries: Mapping[str, str]) -> ContainerReport:
    outcomes = {test: status for test, status in report.outcomes.items() if test.partition("::")[0] not in canaries}
    return ContainerReport(outcomes, [file for file in report.uncollected if file not in canaries])
