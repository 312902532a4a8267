"""Executed lines of a tree: the collectors, and the parser of their output."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from evaluation.reports import coverage
from evaluation.runner.run import run_tests
from evaluation.script.render import render_script
from guest.harness import HARNESS_FOLDER
from taskdb.records import TestCommand
from tests.containers import make_environment_image, make_services

HARNESS = HARNESS_FOLDER / "coverage"
SHOP = """\
def total(prices):
    if not prices:
        return 0
    return sum(
        prices
    )


def unused():
    return 1
"""
TEST = "from shop import total\n\n\ndef test_one():\n    assert total([5]) == 5\n"


def collect(root: Path, code: str, *more: str) -> coverage.CoveredLines | None:
    """Return the lines of `root` that a Python process executes after it started the collector."""
    out = root.parent / "lines"
    begin = f"import sys; sys.path[:0] = [{str(HARNESS)!r}, {str(root)!r}]\nimport _mergemill_coverage\n"
    begin += f"_mergemill_coverage.start({str(root)!r}, {str(out)!r})\n"
    subprocess.run([sys.executable, *more, "-c", begin + code], cwd=root, check=True, timeout=60)
    return coverage.parse_coverage(out.read_bytes() if out.exists() else None)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "tree"
    folder.mkdir()
    (folder / "shop.py").write_text(SHOP)
    return folder


def test_lines_are_recorded_by_file_and_only_in_the_tree(root: Path) -> None:
    assert collect(root, "import json, shop; shop.total([1]); json.dumps([])") == {
        "shop.py": frozenset({1, 2, 4, 5, 9})
    }


def test_lines_of_threads_and_killed_child_processes_are_recorded(root: Path) -> None:
    code = (
        "import os, shop, threading\n"
        "if os.fork() == 0: shop.total([1]); os._exit(1)\n"
        "os.wait()\n"
        "thread = threading.Thread(target=shop.unused); thread.start(); thread.join()\n"
    )
    assert collect(root, code) == {"shop.py": frozenset({1, 2, 4, 5, 9, 10})}


def test_a_project_that_sets_a_trace_function_or_replaces_os_functions_is_recorded(root: Path) -> None:
    code = "import os, shop, sys\nsys.settrace(lambda *_: None)\nos.open = os.write = os.close = None\nshop.total([])\n"
    assert collect(root, code) == {"shop.py": frozenset({1, 2, 3, 9})}


def test_coverage_rows_are_lines_and_ranges() -> None:
    rows = b"a b:c.py:3\nx.go:2-4\nx.go:9-9\nhostile:9-1\nhuge:1-999999999\nnonsense\n\xff.py:1\n"
    assert coverage.parse_coverage(rows) == {
        "a b:c.py": frozenset({3}),
        "x.go": frozenset({2, 3, 4, 9}),
        "\udcff.py": frozenset({1}),
    }
    assert coverage.parse_coverage(None) is None


def convert_profiles(root: Path, files: dict[str, str]) -> coverage.CoveredLines | None:
    folder = root.parent / "profiles"
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    script = ["python3", "-I", "-S", str(HARNESS / "profiles.py"), str(root), str(folder)]
    return coverage.parse_coverage(subprocess.run(script, check=True, capture_output=True, timeout=60).stdout)


def test_profiles_of_go_are_mapped_by_the_modules_of_the_tree(root: Path) -> None:
    (root / "go.mod").write_text("module example.org/shop\n\ngo 1.21\n")
    (root / "sub").mkdir()
    (root / "shop.go").write_text("package shop\n")
    (root / "sub" / "go.mod").write_text('module "example.org/shop/v2"\n')
    (root / "sub" / "cart.go").write_text("package sub\n")
    text = (
        "mode: set\nexample.org/shop/shop.go:3.30,5.2 1 1\nexample.org/shop/shop.go:7.2,8.9 1 0\n"
        "example.org/shop/v2/cart.go:1.1,2.2 1 7\nexample.org/other/x.go:1.1,2.2 1 7\n"
    )
    assert convert_profiles(root, {"1.go": text}) == {"shop.go": frozenset({3, 4, 5}), "sub/cart.go": frozenset({1, 2})}


def test_coverage_of_v8_is_used_only_for_files_that_run_untransformed(root: Path) -> None:
    source = "function f(x) {\n  if (x) {\n    return '\U0001f600';\n  }\n  return 2;\n}\n\nf(1);\n"
    (root / "a.js").write_text(source)
    (root / "b.js").write_text(source)
    units = len(source.encode("utf-16-le")) // 2
    inner, after = source.index("f(x)") - 9, source.index("  return 2") + 1
    functions = [
        {"functionName": "", "ranges": [{"startOffset": 0, "endOffset": units, "count": 1}]},
        {
            "functionName": "f",
            "ranges": [
                {"startOffset": inner, "endOffset": after + 12, "count": 1},
                {"startOffset": after, "endOffset": after + 12, "count": 0},
            ],
        },
    ]
    shorter = [{"functionName": "", "ranges": [{"startOffset": 0, "endOffset": units - 3, "count": 1}]}]
    result = [
        {"url": f"file://{root}/a.js", "functions": functions},
        {"url": f"file://{root}/b.js", "functions": shorter},
        {"url": "node:internal/x", "functions": functions},
    ]
    profiles = convert_profiles(root, {"coverage-1.json": json.dumps({"result": result}), "coverage-2.json": "damaged"})
    assert profiles == {"a.js": frozenset({1, 2, 3, 4, 6, 8})}


@pytest.mark.docker
def test_a_run_with_coverage_uses_the_same_script(tmp_path: Path) -> None:
    services = make_services(tmp_path)
    image = make_environment_image(
        services, {"shop.py": SHOP, "tests/test_shop.py": TEST, "setup.cfg": "[tool:pytest]\n"}
    )
    for framework, argv in (("pytest", ("pytest",)), ("unittest", ("python", "-m", "unittest", "tests.test_shop"))):
        script = render_script(
            TestCommand(framework=framework, argv=argv),
            workdir="/testbed",
            test_patch=b"",
            files=(),
            canaries_beside=(),
        )
        with services.sandbox.open_pool(image, limits=services.test_limits()) as pool:
            plain = run_tests(pool, script)
            covered = run_tests(pool, script, collect_lines=True, last=True)
        assert plain.covered_lines is None
        assert covered.script_sha256 == plain.script_sha256
        assert covered.report is not None
        assert covered.covered_lines is not None
        if framework == "pytest":
            assert covered.report.outcomes.keys() == {"tests/test_shop.py::test_one"}
            assert covered.covered_lines["shop.py"] == {1, 2, 4, 5, 9}
        assert 1 in covered.covered_lines["tests/test_shop.py"]
