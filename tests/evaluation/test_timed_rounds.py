"""Tests and benchmarks of compiled programs: how often and how long they run, their work, and which are void."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from backends.services import Services
from builders.bases import ensure_base
from derivers.counters import add_counters
from evaluation.reports.junit import parse_junit
from evaluation.reports.outcomes import Outcome, OutcomeStatus
from guest.harness import HARNESS_FOLDER
from tests.containers import LABEL, make_services
from tests.derivers.slow_programs import GO, RUST, SlowProject

pytestmark = pytest.mark.docker

SCRIPT = """
cd /tree && mkdir /out || exit
export PATH="$PATH:/usr/local/go/bin:/usr/local/cargo/bin"
rounds() { python3 -I -S -B /rounds.py "$1" "$2" /out /tree /dev/null {files} || echo "exit code $?"; }
cp /slow {source} && rounds build /runs.json > /dev/null
for settings in runs work slow; do rounds run /$settings.json && mv /out/junit.xml /$settings.xml; done
for tree in fast wrong shrinking; do
    cp /$tree {source} && rounds build /slow.json > /dev/null && rounds run /slow.json && mv /out/junit.xml /$tree.xml
done
"""
PLANS = {"go": ("go-test", ["go", "test"]), "rust": ("cargo-test", ["cargo", "test"])}
INSTALL_RUST = """
apt-get update -qq && apt-get install -qq -y --no-install-recommends cargo && apt-get clean
"""
CANARY = {
    "go": (
        "zz_canary_test.go",
        'package rows\n\nimport "testing"\n\nfunc Test_it(t *testing.T) {\n\tt.Fatal("no")\n}\n',
    ),
    "rust": ("tests/canary.rs", "#[test]\nfn test_it() {\n    assert_eq!(3 * 4, 13);\n}\n"),
}


@pytest.mark.parametrize("project", [pytest.param(GO, marks=pytest.mark.slow, id="go"), pytest.param(RUST, id="rust")])
def test_programs_are_timed_and_those_that_do_less_fail(project: SlowProject, tmp_path: Path) -> None:
    tests = project.workload
    reports = run_all(project, tests, tmp_path)
    runs = {test: int(reports["runs"][test].seconds) for test in tests}
    assert all(1 <= count <= 1_000_000 for count in runs.values()), runs
    assert all(reports["work"][test].seconds >= 6000 for test in tests), reports["work"]
    for test in tests:
        slow, fast = reports["slow"][test], reports["fast"][test]
        assert (slow.status, fast.status) == (OutcomeStatus.PASSED, OutcomeStatus.PASSED)
        assert slow.seconds > 2 * fast.seconds
        assert "does not pass" in reports["wrong"][test].message
        assert "does less work than before" in reports["shrinking"][test].message
    (canary,) = set(reports["slow"]) - set(tests)
    assert canary.partition("::")[0] == CANARY[project.language][0]
    assert reports["slow"][canary].status is OutcomeStatus.FAILED


def make_image(language: str, services: Services) -> str:
    """Return the name of an image with a compiler: of Rust, Debian's own, as its base has a Debian to itself."""
    if language == "go":
        return ensure_base(language, "1.24", services).name
    base = ensure_base("python", "3.11", services).name
    name = f"mergemill-test/rust:{hashlib.sha256(f'{base} {INSTALL_RUST}'.encode()).hexdigest()[:20]}"
    if services.images.inspect(name) is None:
        command, limits, labels = ["/bin/bash", "-c", INSTALL_RUST], services.build_limits(), {LABEL: "1"}
        ran, image = services.images.build(base, command, name, limits=limits, labels=labels)
        assert image is not None, ran.output
    return name


def run_all(project: SlowProject, tests: Sequence[str], tmp_path: Path) -> dict[str, dict[str, Outcome]]:
    """Return the outcomes by clock or tree: `runs`, `work` and `slow` of the slow one, and the others."""
    framework, argv = PLANS[project.language]
    services = make_services(tmp_path, test_timeout=500, memory_mb=3000, disk_mb=2000, pids=1024)
    own = sorted({test.partition("::")[0] for test in tests})
    canary, text = CANARY[project.language]
    tree = {name: content.encode() for name, content in project.files.items()} | {canary: text.encode()}
    tree |= add_counters({name: tree[name] for name in own})
    settings = {
        name: {"framework": framework, "argv": argv, "clock": clock, "rounds": rounds, "rows": rows}
        for name, clock, rounds, rows in (
            ("runs", "runs", 0, [(1, 0, test) for test in tests]),
            ("work", "work", 0, [(1, 0, test) for test in tests]),
            ("slow", "cpu", 2, [(2, 5000, test) for test in tests]),
        )
    }
    sources = {"slow": project.slow, "fast": project.fast, "wrong": project.wrong, "shrinking": project.shrinking}
    files = {f"/tree/{name}": content for name, content in tree.items()}
    files |= {f"/{name}": content.encode() for name, content in sources.items()}
    files |= {f"/{name}.json": json.dumps(content).encode() for name, content in settings.items()}
    files |= {f"/tree/{project.source}": b"", "/rounds.py": (HARNESS_FOLDER / "workload/timed_rounds.py").read_bytes()}
    names = ["runs", "work", *sources]
    result = services.sandbox.run(
        make_image(project.language, services),
        ["/bin/bash", "-c", SCRIPT.replace("{files}", " ".join([*own, canary])).replace("{source}", project.source)],
        limits=services.test_limits(),
        files=files,
        collect=[f"/{name}.xml" for name in names],
    )
    assert set(result.files) == {f"/{name}.xml" for name in names}, result.output
    return {name: dict(parse_junit(result.files[f"/{name}.xml"], ()).outcomes) for name in names}
