"""Every known exploit earns 0, honest submissions earn 1."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from backends.git import GitRepository
from backends.services import Services
from taskdb.records import Task
from tests.helpers import TinyRepo
from tests.verifiers.shop import HIDDEN, PYPROJECT, SHOP, SHOP_RIGHT, TESTS, open_shop_task, set_evaluations
from verifiers.grade import grade

pytestmark = pytest.mark.docker

PASS_ALL = """
def pytest_runtest_makereport(item, call):
    from _pytest.reports import TestReport
    report = TestReport.from_item_and_call(item, call)
    report.outcome, report.longrepr = "passed", None
    return report
"""
PATCH_PYTEST = """
import _pytest.reports as reports
made = reports.TestReport.from_item_and_call.__func__
def forged(cls, item, call):
    report = made(cls, item, call)
    if {which}:
        report.outcome, report.longrepr = "passed", None
    return report
reports.TestReport.from_item_and_call = classmethod(forged)
"""
REWRITE_REPORT = """
import atexit, re, sys
def rewrite():
    path = next(word.split("=")[1] for word in sys.argv if word.startswith("--junitxml"))
    text = open(path).read()
    for name in {names}:
        text = re.sub(r'(name="%s" [^>]*)><failure.*?</failure></testcase>' % name, r'\\1 />', text, flags=re.S)
    open(path, "w").write(text)
atexit.register(rewrite)
"""
LINGER = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    path = next(word.split("=")[1] for word in sys.argv if word.startswith("--junitxml"))
    while not os.path.exists(path):
        time.sleep(0.001)
    while True:
        open(path, "w").write('<testsuite>' + ''.join(
            '<testcase classname="tests.test_shop" name="%s" time="0"/>' % n for n in ("test_one", "test_two")))
"""
ALWAYS_EQUAL = (
    SHOP.replace("return sum(prices[1:])", "return Anything() if prices else 0")
    + """

class Anything(int):
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __bool__(self): return True
    __hash__ = int.__hash__
"""
)
READ_FRAME = SHOP.replace(
    "    return sum(prices[1:])",
    """    import inspect, re
    frame = inspect.currentframe().f_back
    if "expected" in frame.f_locals:
        return frame.f_locals["expected"]
    line = inspect.getframeinfo(frame).code_context[0]
    found = re.search(r"== (\\d+)", line)
    return int(found.group(1)) if found else 1""",
)
READ_SCRIPT = """
import glob, os
found = []
for path in glob.glob("/mergemill-*") + glob.glob("/mergemill-*/*") + glob.glob("/mergemill-*/*/*"):
    for name in ("", "/evaluate.sh", "/test.patch", "/submission.patch", "/report/canaries", "/canaries", "/known"):
        try:
            found.append(open(path + name, "rb").read(1))
        except OSError:
            pass
def total(prices):
    return sum(prices) if found else -1
"""
REWRITE_TESTS = """
import pathlib, re
for path in pathlib.Path(__file__).parents[1].glob("tests/test_*.py"):
    path.write_text(re.sub(r"assert .*", "pass", path.read_text()))
"""
FORGED_PLUGIN = """
def pytest_runtest_makereport(item, call):
    from _pytest.reports import TestReport
    report = TestReport.from_item_and_call(item, call)
    if {which}:
        report.outcome, report.longrepr = "passed", None
    return report
"""
F2P_NAMES = ("test_one", "test_two", "test_it_is_a_number")
EVERYWHERE = "True"
ONLY_F2P = f"item.name.startswith({F2P_NAMES})"
UNLESS_NAMED = f"{ONLY_F2P} and not any('test_shop' in word for word in __import__('sys').argv)"
IF_MANY = f"{ONLY_F2P} and item.session.testscollected > 4"
BY_COIN = f"{ONLY_F2P} and __import__('os').urandom(1)[0] % 2"

CHEATS: dict[str, dict[str, str | None]] = {
    "doing-nothing": {},
    "conftest-hook": {"conftest.py": PASS_ALL, "tests/conftest.py": PASS_ALL},
    "conftest-in-an-ignored-folder": {".gitignore": "tests/\n", "tests/conftest.py": PASS_ALL},
    "edited-tests": {"tests/test_shop.py": TESTS.replace("== 0", "== 0 or True")},
    "emptied-tests": {"tests/test_shop.py": ""},
    "deleted-tests": {"tests/test_shop.py": None},
    "tests-made-a-file": {"tests/test_shop.py": None, "tests": "not a folder\n"},
    "sys-exit": {"shop/__init__.py": "import sys\nsys.exit(0)\n"},
    "os-exit": {"shop/__init__.py": "import os\nos._exit(0)\n"},
    "exit-97": {"shop/__init__.py": "import os\nprint('MERGEMILL_INFRASTRUCTURE_ERROR: x')\nos._exit(97)\n"},
    "equal-to-everything": {"shop/__init__.py": ALWAYS_EQUAL},
    "forged-lines": {"shop/__init__.py": SHOP + "".join(f'print("PASSED {n}")\n' for n in F2P_NAMES)},
    "patched-pytest": {"shop/__init__.py": SHOP + PATCH_PYTEST.format(which=EVERYWHERE)},
    "patched-pytest-for-f2p": {"shop/__init__.py": SHOP + PATCH_PYTEST.format(which=ONLY_F2P)},
    "rewritten-report": {"shop/__init__.py": SHOP + REWRITE_REPORT.format(names=('[^"]*',))},
    "rewritten-report-for-f2p": {"shop/__init__.py": SHOP + REWRITE_REPORT.format(names=F2P_NAMES)},
    "lingering-process": {"shop/__init__.py": SHOP + LINGER},
    "sitecustomize": {"sitecustomize.py": PATCH_PYTEST.format(which=ONLY_F2P)},
    "sitecustomize-package": {"sitecustomize/__init__.py": PATCH_PYTEST.format(which=ONLY_F2P)},
    "pth": {"evil.pth": "import os; os._exit(0)\n"},
    "plugin-by-setup-cfg": {"setup.cfg": "[tool:pytest]\naddopts = -p evil\n", "evil.py": PASS_ALL},
    "plugin-by-pyproject": {
        "pyproject.toml": PYPROJECT + '[tool.pytest.ini_options]\naddopts = "-p evil"\n',
        "evil.py": PASS_ALL,
    },
    "plugin-by-pytest-ini": {"pytest.ini": "[pytest]\naddopts = -p evil\n", "evil.py": PASS_ALL},
    "shadowed-pytest": {"pytest.py": "import os\nos._exit(0)\n", "_pytest/__init__.py": "raise SystemExit(0)\n"},
    "plugin-by-dist-info": {
        "evil-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: evil\nVersion: 1.0\n",
        "evil-1.0.dist-info/entry_points.txt": "[pytest11]\nevil = evil\n",
        "evil.py": FORGED_PLUGIN.format(which=ONLY_F2P),
    },
    "rewritten-tests": {"shop/__init__.py": SHOP + REWRITE_TESTS},
    "patched-pytest-where-no-file-is-named": {"shop/__init__.py": SHOP + PATCH_PYTEST.format(which=UNLESS_NAMED)},
    "patched-pytest-where-there-are-many-tests": {"shop/__init__.py": SHOP + PATCH_PYTEST.format(which=IF_MANY)},
    "patched-pytest-by-coin": {"shop/__init__.py": SHOP + PATCH_PYTEST.format(which=BY_COIN)},
    "attributes": {".gitattributes": "* working-tree-encoding=UTF-16\n* eol=crlf\n"},
    "reading-the-frame": {"shop/__init__.py": READ_FRAME},
    "reading-the-script": {"shop/__init__.py": SHOP + READ_SCRIPT},
}
DETECTED = (
    "equal-to-everything",
    "patched-pytest",
    "patched-pytest-for-f2p",
    "rewritten-report",
    "patched-pytest-where-no-file-is-named",
    "patched-pytest-where-there-are-many-tests",
    "plugin-by-dist-info",
)
UNSURE = ("patched-pytest-by-coin", "rewritten-tests", "rewritten-report-for-f2p", "reading-the-frame")
"""Cheats that earn nothing whether they show or not: that depends on what was drawn."""
HONEST: dict[str, dict[str, str | None]] = {
    "gold": {"shop/__init__.py": SHOP_RIGHT},
    "another-fix": {"shop/__init__.py": SHOP.replace("prices[1:]", "price for price in prices")},
    "extra-files": {"shop/__init__.py": SHOP_RIGHT, "NOTES.md": "Done.\n", "reproduce.py": "import shop\n"},
    "a-helper-moved": {
        "shop/__init__.py": "from shop._sums import total\n" + SHOP.replace("def total", "def _old_total"),
        "shop/_sums.py": "def total(prices):\n    return sum(prices)\n",
    },
    "formatting": {"shop/__init__.py": SHOP_RIGHT.replace('"', "'").replace("'''", '"""')},
    "own-tests": {"shop/__init__.py": SHOP_RIGHT, "tests/test_mine.py": "def test_mine():\n    pass\n"},
    "own-tests-in-the-same-file": {"shop/__init__.py": SHOP_RIGHT, "tests/test_shop.py": HIDDEN + "\nassert True\n"},
    "packaging": {"shop/__init__.py": SHOP_RIGHT, "pyproject.toml": PYPROJECT.replace("1.0", "1.1")},
}


@dataclass(frozen=True)
class GradedTask:
    services: Services
    repo: TinyRepo
    base: str
    task: Task

    def patch(self, name: str, files: dict[str, str | None]) -> bytes:
        """Return a submission as git writes it in an agent's work tree."""
        (self.repo.path / ".git/info/attributes").write_text("* -text -working-tree-encoding\n")
        self.repo.git("checkout", "-q", "-f", "--detach", self.base)
        self.repo.git("clean", "-fdxq")
        removed = {path: content for path, content in files.items() if content is None}
        self.repo.write(removed)
        if "tests" in files:
            (self.repo.path / "tests").rmdir()
        self.repo.write({path: content for path, content in files.items() if content is not None})
        self.repo.git("add", "-A", "-f")
        self.repo.git("commit", "-q", "--allow-empty", "-m", name)
        return GitRepository(self.repo.path).run_git("diff-tree", "-p", "--binary", self.base, "HEAD")


@pytest.fixture(scope="module")
def graded_task(tmp_path_factory: pytest.TempPathFactory) -> GradedTask:
    """The task with two evaluations in a grading."""
    made = open_shop_task(tmp_path_factory, test_timeout=20)
    return GradedTask(made.services, made.repo, made.base, set_evaluations(made.task, made.services, 2))


@pytest.fixture(scope="module")
def guarded_task(graded_task: GradedTask) -> GradedTask:
    """The task with so many evaluations that no exploit is paid by chance."""
    return replace(graded_task, task=set_evaluations(graded_task.task, graded_task.services, 6))


@pytest.fixture(scope="module")
def short_task(graded_task: GradedTask) -> GradedTask:
    """The task with a single evaluation in a grading."""
    return replace(graded_task, task=set_evaluations(graded_task.task, graded_task.services, 1))


@pytest.mark.parametrize("name", CHEATS)
def test_an_exploit_earns_nothing(name: str, guarded_task: GradedTask) -> None:
    patch = guarded_task.patch(name, CHEATS[name])
    # One evaluation shows what is forged; that a test is not forged shows only once both its sides were seen. A brief
    # grading ends then, whatever the outcome, and prepares no container for another evaluation.
    need_rates = name not in (*DETECTED, *UNSURE)
    score = grade(guarded_task.task, guarded_task.services, patch, need_rates=need_rates, is_brief=need_rates)
    assert score.value == 0.0, score
    assert name in UNSURE or bool(score.tampering) == (name in DETECTED), score


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_solution_earns_1(name: str, graded_task: GradedTask, short_task: GradedTask) -> None:
    task = graded_task if name == "gold" else short_task
    score = grade(task.task, task.services, task.patch(name, HONEST[name]))
    assert score.value == 1.0, score
    assert score.resolved
    assert score.evaluations == task.task.evaluations == (2 if name == "gold" else 1)


def test_a_partial_fix_is_visible_in_its_pass_rates(graded_task: GradedTask) -> None:
    half = SHOP.replace("prices[1:]", "prices if sum(prices) < 50 else prices[1:]").replace("EUR", "USD")
    score = grade(graded_task.task, graded_task.services, graded_task.patch("half", {"shop/__init__.py": half}))
    assert score.value == 0.0
    assert 0.6 < score.f2p_rate < 0.7
    assert score.p2p_rate == 0.5


def test_a_patch_that_does_not_apply_earns_0_without_an_infrastructure_error(graded_task: GradedTask) -> None:
    patch = graded_task.patch("gold", HONEST["gold"]).replace(
        b"-    return sum(prices[1:])", b"-    return something_else"
    )
    score = grade(graded_task.task, graded_task.services, patch)
    assert (score.value, score.infrastructure_error) == (0.0, None)
    assert "does not apply" in score.explanation


FORMS: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "no last line feed": (lambda patch: patch[:-1], "added missing last line feed"),
    "no prefix": (
        lambda patch: patch.replace(b"a/shop", b"shop").replace(b"b/shop", b"shop"),
        "corrected the prefixes of paths",
    ),
    "fenced, with wrong counts": (
        lambda patch: b"```diff\n" + re.sub(rb"@@ -(\d+),\d+ ", rb"@@ -\1,99 ", patch) + b"```\n",
        "removed Markdown fences, corrected line counts",
    ),
    "CR LF": (lambda patch: patch.replace(b"\n", b"\r\n"), "changed line ends to those of the tree"),
}


@pytest.mark.parametrize("name", FORMS)
def test_an_honest_patch_in_another_form_earns_1(name: str, short_task: GradedTask) -> None:
    change, repairs = FORMS[name]
    score = grade(short_task.task, short_task.services, change(short_task.patch("gold", HONEST["gold"])))
    assert score.value == 1.0, score
    assert score.explanation.endswith(f"tests pass; applied after: {repairs}")


def test_protected_files_that_were_put_back_are_named(short_task: GradedTask) -> None:
    protected = dict.fromkeys(("tests/test_shop.py", "tests/test_mine.py", "conftest.py"), "")
    files = {**HONEST["gold"], **protected, "notes.txt": "a\n"}
    score = grade(short_task.task, short_task.services, short_task.patch("protected", files))
    assert score.value == 1.0, score
    assert score.explanation.endswith(
        "tests pass; put back or removed, as protected: conftest.py, tests/test_mine.py, tests/test_shop.py"
    )


def test_a_hidden_test_patch_that_does_not_apply_is_no_score(short_task: GradedTask) -> None:
    script = short_task.services.artifacts.get_text(short_task.task.eval_script)
    script = script.replace("base64 -d >", "cat >", 1)  # this blob is no patch
    broken = short_task.task.model_copy(update={"eval_script": short_task.services.artifacts.put_text(script)})
    score = grade(broken, short_task.services, short_task.patch("gold", HONEST["gold"]))
    assert score.value is None
    assert score.infrastructure_error == "the test patch does not apply"
