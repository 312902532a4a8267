"""Tests of hspec and tasty run in a process each; listings are as the libraries print them."""

from __future__ import annotations

import importlib.util
import json
import os
from pathlib import Path
from types import ModuleType

import pytest

from guest.harness import HARNESS_FOLDER

HSPEC = r"""#!/bin/bash
case "$*" in
*--dry-run*)
    printf '%s\n' '' 'Data.Cup' '  a cup' '    boils [✔]' '    fails [✔] (1ms)' '    later [✔]' 'no group [✔]' '' \
        'Finished in 0.0001 seconds' '4 examples, 0 failures' ;;
*/fails/)
    printf '%s\n' 'Failures:' '' '  test/Data/CupSpec.hs:9:5:' '  1) a cup fails' '       expected: False'
    exit 1 ;;
*/later/) printf '%s\n' '1 example, 0 failures, 1 pending' ;;
*) echo '    printed [✔]' ;;
esac
"""
TASTY = r"""#!/bin/bash
case "$*" in
--list-tests) printf '%s\n' 'cup.boils' 'cup.has "two" lines' 'cup.boils' ;;
*'$0 == "cup.has \"two\" lines"') ;;
*'$0 == "cup.boils"') exit 1 ;;
*) exit 9 ;;
esac
"""


@pytest.fixture
def runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return the module, with a build folder in `tmp_path` and a cabal that builds nothing."""
    path = HARNESS_FOLDER / "reports" / "assets" / "haskell_tests.py"
    spec = importlib.util.spec_from_file_location("haskell_tests", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "BUILD", str(tmp_path / "build"))
    write_program(
        tmp_path / "bin" / "cabal",
        '#!/bin/sh\n[ "$5" != "cup:test:broken" ] || { echo "A.hs:1:1: error: x"; exit 1; }\n',
    )
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    return module


def write_program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


def run_suite(runner: ModuleType, folder: Path, suite: str, program: str) -> list[tuple[str, str, str]]:
    """Run a suite and return (file, name, status) of each row; the status is `uncollected` for a file."""
    (folder / "tree" / "test" / "Data").mkdir(parents=True)
    (folder / "tree" / "test" / "Data" / "CupSpec.hs").touch()
    name = suite.partition(":")[0]
    write_program(folder / "build" / "build" / "x86_64-linux" / "t" / name / "build" / name / name, program)
    report = folder / "tests.jsonl"
    runner.main([str(report), str(folder / "tree"), "cup", suite])
    rows = [json.loads(line) for line in report.read_text(encoding="utf-8").splitlines()]
    return [(row["file"], row.get("name", row.get("uncollected")), row.get("status", "uncollected")) for row in rows]


def test_each_test_of_hspec_has_the_status_of_its_process(runner: ModuleType, tmp_path: Path) -> None:
    assert run_suite(runner, tmp_path, "spec:hspec:test/Spec.hs", HSPEC) == [
        ("test/Data/CupSpec.hs", "Data.Cup > a cup > boils", "passed"),
        ("test/Data/CupSpec.hs", "Data.Cup > a cup > fails", "failed"),
        ("test/Data/CupSpec.hs", "Data.Cup > a cup > later", "skipped"),
        ("test/Spec.hs", "no group", "passed"),
    ]


def test_each_test_of_tasty_has_the_status_of_its_process(runner: ModuleType, tmp_path: Path) -> None:
    assert run_suite(runner, tmp_path, "unit:tasty:unit/Main.hs", TASTY) == [
        ("unit/Main.hs", "cup.boils", "failed"),
        ("unit/Main.hs", 'cup.has "two" lines', "passed"),
    ]


def test_a_suite_that_does_not_build_is_not_run(runner: ModuleType, tmp_path: Path) -> None:
    rows = run_suite(runner, tmp_path, "broken:program:test/Main.hs", "#!/bin/sh\n")
    assert rows == [("test/Main.hs", "A.hs:1:1: error: x", "uncollected")]


def test_another_suite_is_one_test(runner: ModuleType, tmp_path: Path) -> None:
    assert run_suite(runner, tmp_path, "plain:program:test/Main.hs", "#!/bin/sh\nexit 3\n") == [
        ("test/Main.hs", "plain", "failed")
    ]


@pytest.mark.parametrize(
    ("suite", "output", "by_assertion"),
    [
        ("a:tasty:Main.hs", "cup: FAIL\n  Main.hs:12:\n  expected: 3\n   but got: 4", True),
        ("a:tasty:Main.hs", "cup: FAIL\n  Exception: Prelude.head: empty list", False),
        ("a:hspec:Main.hs", "  1) cup\n       uncaught exception: ErrorCall", False),
        ("a:hspec:Main.hs", "  1) cup\n       *** Failed! Falsified (after 1 test):", True),
        ("a:hspec:Main.hs", "  1) cup\n       *** Failed! Exception: 'no' (after 1 test):", False),
        ("a:program:Main.hs", "2 of 3 wrong", True),
        ("a:program:Main.hs", "checking\na: Prelude.head: empty list", False),
    ],
)
def test_an_exception_is_no_assertion(
    suite: str, output: str, by_assertion: bool, runner: ModuleType, tmp_path: Path
) -> None:
    report = tmp_path / "tests.jsonl"
    program = tmp_path / "bin" / "programs" / "a"
    write_program(program, f"#!/bin/bash\ncat <<'END'\n{output}\nEND\nexit 1\n")
    tested = runner.Suite(str(report), str(tmp_path), "cup", suite)
    tested.run_test("Main.hs", "cup", [str(program)])
    row = json.loads(report.read_text(encoding="utf-8"))
    assert (row["status"], row["assertion"]) == ("failed", by_assertion)
