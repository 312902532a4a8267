"""Code of `guest` compiles and runs on every Python that it may meet in a container, from 3.6 to 3.13."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from evaluation.reports.converter import pack_converter
from exporters.task_files import GUEST_MODULES, read_container_file, read_guest_modules
from exporters.verifier_archive import pack_verifier
from guest.controls import blind
from tests.exporters.tasks import CONTROLS

GUEST = Path(str(files("guest")))
VERSIONS = ("3.6", "3.7", "3.8", "3.9", "3.10", "3.11", "3.12", "3.13")
OLDEST_PYTHON = {
    "agents/mcp_server.py": (3, 6),
    "controls/*.py": (3, 6),
    "reports/*.py": (3, 6),
    "verifier/grade.py": (3, 6),
    "verifier/image_state.py": (3, 6),
    "harness/*.py": (3, 6),
    "harness/coverage/_mergemill_coverage.py": (3, 6),
    "harness/workload/*.py": (3, 6),
    "harness/reports/assets/case_runner.py": (3, 6),
    "harness/reports/assets/recipe_shell.py": (3, 6),
    "harness/**/*.py": (3, 9),
    "scoring/*.py": (3, 9),
    "verifier/*.py": (3, 9),
}
"""Files -> the oldest Python that runs them; the first pattern that matches a file decides. The rest of `guest` runs on
a Python that we install."""
COMPILE = """
import io, sys
for path in sys.argv[1:]:
    with io.open(path, encoding="utf-8") as file:
        compile(file.read(), path, "exec", dont_inherit=True)
"""
CANARY_WORDS = ("0123456789abcdef" * 2, "fedcba9876543210" * 2)
CANARY_FILES = tuple(f"tésts/test_{word}.py" for word in CANARY_WORDS)
REPORT = (
    '<testsuites><testsuite><testcase classname="tésts.test_a.TestX" name="one"/>'
    '<testcase classname="test_b" name="two[&lt;X object at 0x7f12ab34cd56&gt;]"><failure message="1 == 2"/></testcase>'
    '<testcase classname="test_b" name="three"/>'
    '<testcase classname="test_b" name="three"><error message="late"/></testcase>'
    + "".join(
        f'<testcase classname="tésts.test_{word}" name="test_{word}[{number}-2]">{child}</testcase>'
        for word, child in zip(CANARY_WORDS, ("", '<failure message="assert 12 == 13"/>'), strict=True)
        for number in (1, 2)
    )
    + "</testsuite></testsuites>"
)
EXPECTED = {
    "tésts/test_a.py::TestX::one": ["passed", ""],
    "sub/test_b.py::two[<X object at 0x…>]": ["failed", "1 == 2"],
    "sub/test_b.py::three": ["error", "late"],
}
USE_GRADER = """
import json, os, random, sys
folder = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, folder)  # with -I, Python leaves it out
import grade
import image_state
from guest.controls import blind
from guest.reports import canaries

report = grade.read_report(os.path.join(folder, "report"))
required = grade.read_canaries(os.path.join(folder, "report"))
statuses = report.list_statuses()
forged = {test: "passed" for test in statuses}
with open(os.path.join(folder, "controls.json"), "rb") as file:
    document = json.loads(file.read().decode("utf-8"))
result = {
    "outcomes": {test: [outcome.status, outcome.message] for test, outcome in report.outcomes.items()},
    "canaries": canaries.judge_canaries(statuses, required),
    "is_forged": [grade.has_forged_canary(os.path.join(folder, "report"), seen) for seen in (statuses, forged)],
    "evaluations": [
        [{path: text.decode("utf-8") for path, text in drawn.files.items()}, drawn.expected, drawn.origins]
        for drawn in blind.draw_evaluations(document, random.Random(1))
    ],
    "bound": blind.compute_bound(document),
}
print(json.dumps(result))
"""
IMPORT_VERIFIER = "import sys; sys.path.insert(0, sys.argv[1]); import guest.verifier.main"


def find_python(version: str) -> str:
    """Return an interpreter of a version; the test is skipped where this machine has nevaluation."""
    if version == f"{sys.version_info.major}.{sys.version_info.minor}":
        return sys.executable
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    installed = sorted(root.glob(f"versions/{version}.*/bin/python"))
    if not installed:
        pytest.skip(f"no Python {version} in {root}")
    return str(installed[-1])


def run_python(version: str, *arguments: str) -> str:
    """Run an isolated interpreter in the locale of a bare container and return its output."""
    command = [find_python(version), "-I", "-S", "-B", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={"LC_ALL": "C", "PATH": "/bin"})
    assert done.returncode == 0, done.stderr
    return done.stdout


def find_oldest_python(path: Path) -> tuple[int, int] | None:
    """Return the oldest Python that has to run a file; None where it is the one that we install."""
    matches = (oldest for pattern, oldest in OLDEST_PYTHON.items() if path in GUEST.glob(pattern))
    return next(matches, None)


def make_grader_folder(folder: Path) -> None:
    """Write a bundle's grader, the report of a run, and controls."""
    contents = {name: read_container_file(name) for name in ("grade.py", "image_state.py")}
    contents |= read_guest_modules()
    contents |= {
        "use_grader.py": USE_GRADER.encode(),
        "controls.json": json.dumps(CONTROLS).encode(),
        "report/junit.xml": REPORT.encode(),
        "report/known": "tésts/test_a.py\0sub/test_b.py\0".encode(),
        "report/canaries": "pass {}\nfail {}\n".format(*CANARY_FILES).encode(),
    }
    for name, content in contents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_files_compile_on_the_oldest_python_that_runs_them_and_later(version: str) -> None:
    number = tuple(map(int, version.split(".")))
    paths = [str(path) for path in GUEST.rglob("*.py") if (find_oldest_python(path) or (3, 11)) <= number]
    assert len(paths) > 10
    run_python(version, "-c", COMPILE, *paths)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_grader_of_a_bundle_reads_reports_and_draws_controls_as_the_host_does(version: str, tmp_path: Path) -> None:
    make_grader_folder(tmp_path)
    result: dict[str, Any] = json.loads(run_python(version, str(tmp_path / "use_grader.py")))
    ordinary = {test: outcome for test, outcome in result["outcomes"].items() if not test.startswith(CANARY_FILES)}
    assert ordinary == EXPECTED
    assert len(result["outcomes"]) == len(EXPECTED) + 4
    assert result["canaries"] == "right"
    assert result["is_forged"] == [False, True]
    drawn = blind.draw_evaluations(CONTROLS, random.Random(1))
    assert result["evaluations"] == [
        [{path: text.decode() for path, text in evaluation.files.items()}, evaluation.expected, evaluation.origins]
        for evaluation in drawn
    ]
    assert result["bound"] == blind.compute_bound(CONTROLS)


@pytest.mark.parametrize("version", VERSIONS[VERSIONS.index("3.9") :])
def test_the_archives_of_verifier_and_converter_can_be_imported(version: str, tmp_path: Path) -> None:
    for name, content in {"verifier.pyz": pack_verifier(), "reports.pyz": pack_converter()}.items():
        (tmp_path / name).write_bytes(content)
    run_python(version, "-c", IMPORT_VERIFIER, str(tmp_path / "verifier.pyz"))
    asset = run_python(version, str(tmp_path / "reports.pyz"), "asset", "node_reporter.mjs")
    assert asset == (GUEST / "harness/reports/assets/node_reporter.mjs").read_text(encoding="utf-8")


def test_the_modules_of_a_bundle_are_the_ones_that_its_grader_imports() -> None:
    shared = [path for folder in ("controls", "reports") for path in (GUEST / folder).glob("*.py")]
    paths = {f"guest/{path.relative_to(GUEST).as_posix()}" for path in shared if path.name != "__init__.py"}
    assert set(GUEST_MODULES) == paths
