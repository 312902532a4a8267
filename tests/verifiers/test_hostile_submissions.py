"""Whatever a submission does to the machinery around its tests, it is graded: 0, or 1 where its solution is right.

Each row runs through `mergemill grade` and through the verifier of a bundle.
"""

from __future__ import annotations

import base64
import hashlib
import json
import string
import zlib
from collections.abc import Mapping
from dataclasses import replace

import pytest

from core.settings.group import replace_values
from exporters.formats.swebench import build_row
from exporters.item import ExportItem
from exporters.verifier_files import PATCH_PATH, REWARD_PATH, build_verifier_files
from taskdb.records import Task
from tests.containers import run_in_container
from tests.exporters.verifying import run_verifier
from tests.verifiers.shop import SHOP, SHOP_RIGHT, open_shop_task, set_evaluations
from tests.verifiers.test_grade import GradedTask
from verifiers.rewards import MAX_SUBMISSION_BYTES, grade

pytestmark = pytest.mark.docker

PACKAGE = "shop/__init__.py"
MARKS = "MERGEMILL_INFRASTRUCTURE_ERROR: x\\nMERGEMILL_TREE_ERROR: x"


def exit_with(code: int) -> dict[str, str | None]:
    """Return a submission whose tests end with an exit code of ours."""
    return {PACKAGE: f"import os\nprint('{MARKS}', flush=True)\nos._exit({code})\n"}


def write_report(body: str, shop: str = SHOP) -> dict[str, str | None]:
    """Return a submission that runs `body` with the report's `path` after pytest has written it."""
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return {
        PACKAGE: shop
        + "\nimport atexit, os, sys\ndef change():\n"
        + "    path = next(word.split('=')[1] for word in sys.argv if word.startswith('--junitxml'))\n"
        + lines
        + "atexit.register(change)\n"
    }


LONG_NAMES = """file = open(path, 'w')
file.write('<testsuite>')
for n in range(920):
    file.write('<testcase classname="tests.test_shop" name="%s"/>' % (str(n) * (50_000 // len(str(n)))))
file.write('</testsuite>')
file.close()"""
SYSV = """
import ctypes
libc = ctypes.CDLL(None)
libc.shmat.restype = ctypes.c_void_p
for _ in range(100):
    size = 64 * 2**20
    found = libc.shmget(0, size, 0o1600)
    where = libc.shmat(found, None, 0)
    ctypes.memset(where, 1, size)
"""
FILL = """
import os
for folder in (os.getcwd(), "/dev/shm", "/tmp", os.path.dirname(PATH)):
    try:
        with open(os.path.join(folder, "filling"), "wb") as file:
            while True:
                file.write(b"x" * 2**20)
    except OSError:
        pass
""".replace("PATH", "next(word.split('=')[1] for word in __import__('sys').argv if word.startswith('--junitxml'))")
FORK_BOMB = """
import os
while True:
    try:
        if os.fork() == 0:
            os.setsid()
    except OSError:
        pass
"""

RUNNING: Mapping[str, dict[str, str | None]] = {
    **{f"exit-{code}": exit_with(code) for code in (0, 137)},
    "killed": {PACKAGE: "import os\nos.kill(os.getpid(), 9)\n"},
    "report-of-46-megabytes": write_report(LONG_NAMES),
    "sparse-report": write_report("os.truncate(path, 200 * 2**20)"),
    "pipe-for-a-report": write_report("os.remove(path)\nos.mkfifo(path)"),
    "link-for-a-report": write_report("os.remove(path)\nos.symlink('/dev/zero', path)"),
    "folder-for-a-report": write_report("os.remove(path)\nos.mkdir(path)"),
    "shared-memory": {PACKAGE: SYSV + SHOP},
    "all-memory": {PACKAGE: "x = []\nwhile True:\n    x.append(b'a' * 2**20)\n"},
    "all-disk": {PACKAGE: SHOP + FILL},
    "all-processes": {PACKAGE: FORK_BOMB},
    "endless-output": {PACKAGE: "import os\nwhile True:\n    os.write(1, b'x' * 65536)\n"},
}
"""Attacks of the test process. Reports of unbounded structure are tested in tests/evaluation/test_hostile_reports.py,
further exit codes in test_exit_codes.py there."""

LATE = """
import atexit, os, subprocess, sys
root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
path = next(word.split("=")[1] for word in sys.argv if word.startswith("--junitxml"))
out = os.path.dirname(path)
def change():
{}
atexit.register(change)
"""


def sabotage(body: str) -> dict[str, str | None]:
    """Return the right solution, with tests that change their container at the end of a run."""
    return {PACKAGE: SHOP_RIGHT + LATE.format("".join(f"    {line}\n" for line in body.splitlines()))}


LATER: Mapping[str, dict[str, str | None]] = {
    "git-configuration": sabotage(
        "subprocess.call(['git', 'config', 'core.fsmonitor', 'touch /owned; true'], cwd=root)"
    ),
    "no-git": sabotage("subprocess.call(['rm', '-rf', root + '/.git'])"),
    "closed-folders": sabotage("subprocess.call('chmod 0 .git tests shop . ~', shell=True, cwd=root)"),
    "folder-for-a-test-file": sabotage(
        "subprocess.call('rm -rf tests; mkdir -p tests/test_shop.py/x', shell=True, cwd=root)"
    ),
    "links-for-folders": sabotage(
        "subprocess.call('rm -rf tests .git; ln -s /etc tests; ln -s /proc .git', shell=True, cwd=root)"
    ),
    "deep-folders": sabotage("for _ in range(1500):\n    os.mkdir('d' * 200)\n    os.chdir('d' * 200)"),
    "invalid-names": sabotage("for n in range(128, 256):\n    os.mkdir(bytes([n, 10, 45]))"),
    "surviving-processes": sabotage(
        """if os.fork() == 0:
    os.setsid()
    while True:
        try:
            os.fork()
            open(root + '/x', 'w')
        except OSError:
            pass"""
    ),
}
"""Attacks of a right solution on a later run in the same container."""

TREES: Mapping[str, dict[str, str | None]] = {
    "folder-for-a-test-file": {"tests/test_shop.py": None, "tests/test_shop.py/x/y.py": "", PACKAGE: SHOP_RIGHT},
    "folder-for-configuration": {"pytest.ini/x": "", "pyproject.toml": None, PACKAGE: SHOP_RIGHT},
    "invalid-names": {
        "tests/\udcff\udcfe.py": "",
        "tests/a\nb.py": "",
        "tests/\udcff/conftest.py": "raise SystemExit",
        PACKAGE: SHOP_RIGHT,
    },
    "names-that-differ-in-case": {"tests/Test_Shop.py": "", "TESTS/test_shop.py": "", PACKAGE: SHOP_RIGHT},
    "attributes": {
        ".gitattributes": "* text eol=crlf ident filter=lfs diff=x merge=x\n",
        "tests/.gitattributes": "* working-tree-encoding=UTF-16 -diff\n",
        PACKAGE: SHOP_RIGHT,
    },
    "many-files": {**{f"many/{n // 500}/{n}": "" for n in range(1_500)}, PACKAGE: SHOP_RIGHT},
}
"""Trees with the right solution in which the protected files must be restored."""

NEW_FILE = "diff --git a/{0} b/{0}\nnew file mode {1}\nindex 0000000..1111111\n--- /dev/null\n+++ b/{0}\n"
GITLINK = NEW_FILE + "@@ -0,0 +1 @@\n+Subproject commit 1111111111111111111111111111111111111111\n"
MODULES = NEW_FILE + '@@ -0,0 +1,3 @@\n+[submodule "x"]\n+path = vendor/x\n+url = ext::touch /owned\n'
LINK = NEW_FILE + "@@ -0,0 +1 @@\n+/etc\n\\ No newline at end of file\n"
TEXT = NEW_FILE + "@@ -0,0 +1 @@\n+x\n"


def make_zeros(size: int) -> bytes:
    """Return a patch that adds a file of so many zeros; it is a thousandth of that."""
    content = bytes(size)
    packed = zlib.compress(content)
    oid = hashlib.sha1(b"blob %d\0" % size + content).hexdigest()  # noqa: S324 - git's
    letters = string.ascii_uppercase + string.ascii_lowercase
    blocks = [packed[at : at + 52] for at in range(0, len(packed), 52)]
    lines = "".join(f"{letters[len(block) - 1]}{base64.b85encode(block, pad=True).decode()}\n" for block in blocks)
    head = f"diff --git a/zeros b/zeros\nnew file mode 100644\nindex {'0' * 40}..{oid}\n"
    return f"{head}GIT binary patch\nliteral {size}\n{lines}\nliteral 0\nHcmV?d00001\n\n".encode()


PATCHES: Mapping[str, tuple[str, float | None]] = {
    "gitlink": (GITLINK.format("vendor/x", "160000") + MODULES.format(".gitmodules", "100644"), 1),
    "gitlink-in-tests": (GITLINK.format("tests/x", "160000"), 1),
    "link-in-tests": (LINK.format("tests/data", "120000"), 1),
    "git-configuration": (TEXT.format(".git/config", "100644"), 0),
    "git-hook": (TEXT.format(".git/hooks/post-index-change", "100755"), 0),
    "path-outside": (TEXT.format("../../etc/x", "100644"), 0),
    "text": ("no patch at all\n", None),
}
"""Patches in addition to the right solution, and what both together are worth; None: 1, or 0 where git rejects it."""


@pytest.fixture(scope="module")
def repeated_task(tmp_path_factory: pytest.TempPathFactory) -> GradedTask:
    """The task with two evaluations in a grading; a bundle makes both in one container."""
    made = open_shop_task(tmp_path_factory, test_timeout=30)
    return GradedTask(made.services, made.repo, made.base, set_evaluations(made.task, made.services, 2))


@pytest.fixture(scope="module")
def graded_task(repeated_task: GradedTask) -> GradedTask:
    """The task with a single evaluation in a grading."""
    return replace(repeated_task, task=set_evaluations(repeated_task.task, repeated_task.services, 1))


FLOODS = ("all-processes", "surviving-processes")
"""Submissions whose processes keep the processors busy until the time of their container is over."""
FLOODED_SECONDS = 5
EXCESSIVE = (*FLOODS, "all-disk")
"""Submissions whose container is ended for its time or its disk."""


def limit_container(graded_task: GradedTask, **limits: float) -> GradedTask:
    """Return the task with other limits for its containers."""
    services = graded_task.services
    settings = replace_values(services.settings, limits)
    return replace(graded_task, services=replace(services, settings=settings))


def grade_twice(
    graded_task: GradedTask, patch: bytes, here: Task | None = None, *, is_excessive: bool = False
) -> tuple[float | None, float | None, str]:
    """Return the values of `mergemill grade` and of the bundle's verifier, and why.

    `here`: the task for `mergemill grade`, where it is another one. `is_excessive`: as in `run_verifier`.
    """
    score = grade(here or graded_task.task, graded_task.services, patch)
    reward, output = run_verifier(graded_task.task, graded_task.services, patch, is_excessive=is_excessive)
    return score.value, reward and reward["reward"], f"{score}\n{output}"


@pytest.mark.parametrize("name", RUNNING)
def test_a_test_process_earns_0_whatever_it_does(name: str, graded_task: GradedTask) -> None:
    limited = limit_container(graded_task, test_timeout=FLOODED_SECONDS) if name in FLOODS else graded_task
    patch = graded_task.patch(name, RUNNING[name])
    graded, exported, why = grade_twice(limited, patch, is_excessive=name in EXCESSIVE)
    assert (graded, exported) == (0, 0), why


@pytest.mark.parametrize("name", LATER)
def test_one_run_does_not_change_the_next(name: str, repeated_task: GradedTask, graded_task: GradedTask) -> None:
    # Only a bundle makes both runs in one container; here each has its own, which one of the attacks shows.
    here = repeated_task.task if name == "git-configuration" else graded_task.task
    limited = limit_container(repeated_task, test_timeout=FLOODED_SECONDS) if name in FLOODS else repeated_task
    graded, exported, why = grade_twice(
        limited, repeated_task.patch(name, LATER[name]), here, is_excessive=name in FLOODS
    )
    if name in FLOODS:  # surviving processes may keep the script from starting its own
        assert {graded, exported} <= {0, 1}, why
    else:
        assert (graded, exported) == (1, 1), why


@pytest.mark.parametrize("name", TREES)
def test_the_tests_are_restored_in_any_tree(name: str, graded_task: GradedTask) -> None:
    graded, exported, why = grade_twice(graded_task, graded_task.patch(name, TREES[name]))
    assert (graded, exported) == (1, 1), why


@pytest.mark.parametrize("name", PATCHES)
def test_a_patch_that_git_would_not_write_is_graded(name: str, graded_task: GradedTask) -> None:
    added, value = PATCHES[name]
    patch = graded_task.patch(name, {PACKAGE: SHOP_RIGHT}) + added.encode()
    graded, exported, why = grade_twice(graded_task, patch)
    assert graded == exported, why
    assert graded in ((0, 1) if value is None else (value,)), why


OWN = "touch /owned"
COMMIT = "git add -A; git -c user.name=a -c user.email=a@example.org commit -q -m x"
REPOSITORIES: Mapping[str, tuple[str, bool]] = {
    "monitor": (f"git config core.fsmonitor '{OWN}; true'", True),
    "hook": (f"mkdir -p .git/hooks; echo '{OWN}' > .git/hooks/post-index-change; chmod +x .git/hooks/*", True),
    "included configuration": (f"git config -f x core.fsmonitor '{OWN}; true'; git config include.path ../x", True),
    "filter": (
        f"git config filter.x.clean '{OWN}; cat'; echo '* filter=x' | tee .gitattributes > .git/info/attributes",
        True,
    ),
    "broken configuration": ("echo '[' > .git/config", True),
    "another tree": ("git config core.worktree /tmp", True),
    "broken index": ("echo x > .git/index", True),
    "unchanged by decree": (
        "echo > tests/conftest.py; echo 'assert 0' > tests/test_shop.py; git update-index --assume-unchanged tests/*",
        True,
    ),
    "replaced commit": (
        f"echo 'assert 0' > tests/test_shop.py; {COMMIT}; git replace HEAD~ HEAD; git update-ref HEAD HEAD~",
        True,
    ),
    "repository in a folder": (
        "git init -q tests/x; cp -r .git/* tests/x/.git; echo 'raise SystemExit(3)' > tests/x/conftest.py",
        True,
    ),
    "link": ("mv .git /elsewhere; ln -s /elsewhere .git", True),
    "deleted": ("rm -rf .git", False),
    "file": ("rm -rf .git; echo 'gitdir: /nowhere' > .git", False),
    "no commit": ("rm .git/HEAD; mkfifo .git/HEAD", True),  # the check of the container restores HEAD
    "no objects": ("rm -rf .git/objects; ln -s /dev/zero .git/objects", False),
}
"""Commands that change the repository before a script runs in the same container, and whether tests can still run."""


@pytest.mark.parametrize("name", REPOSITORIES)
def test_a_script_uses_nothing_of_the_repository_but_its_commit(name: str, graded_task: GradedTask) -> None:
    command, works = REPOSITORIES[name]
    services, task = graded_task.services, graded_task.task
    row, _ = build_row(ExportItem(task=task, certificate=None), services)
    patch = graded_task.patch(name, {PACKAGE: SHOP_RIGHT})
    result = run_in_container(
        services,
        task.image,
        ["bash", "-c", f"cd /testbed; git apply /patch; {command}\nbash /eval.sh; [ ! -e /owned ] || echo owned"],
        files={"/eval.sh": row["eval_script"].encode(), "/patch": patch},
    )
    lines = result.output.partition(">>>>> Start Test Output")[2].splitlines()
    passed, failed = ([line for line in lines if line.startswith(word)] for word in ("PASSED ", "FAILED "))
    assert len(passed) + len(failed) == len(task.FAIL_TO_PASS) + len(task.PASS_TO_PASS), result.output
    assert bool(passed) == works, result.output
    assert not (works and failed), result.output
    assert "owned" not in lines, result.output


@pytest.mark.parametrize(("mebibytes", "memory_mb", "value"), [(1, 512, 1), (350, 256, 0)])
def test_a_small_patch_of_a_large_file_is_graded(
    mebibytes: int, memory_mb: int, value: float, graded_task: GradedTask
) -> None:
    patch = graded_task.patch("zeros", {PACKAGE: SHOP_RIGHT}) + make_zeros(mebibytes * 2**20)
    graded, exported, why = grade_twice(limit_container(graded_task, memory_mb=memory_mb), patch)
    assert (graded, exported) == (value, value), why


def test_a_patch_larger_than_the_container_is_graded(graded_task: GradedTask) -> None:
    graded, exported, why = grade_twice(graded_task, bytes(6 * MAX_SUBMISSION_BYTES), is_excessive=True)
    assert (graded, exported) == (0, 0), why


def test_a_tree_that_fills_the_disk_is_worth_0(graded_task: GradedTask) -> None:
    command = "cat /dev/zero > x; MERGEMILL_REPORT_DIR=/dev/shm/report bash /eval.sh; rm x; ls report"
    services, task = graded_task.services, graded_task.task
    result = run_in_container(
        services,
        task.image,
        ["bash", "-c", f"cd /dev/shm; {command}"],
        files={"/eval.sh": services.artifacts.get(task.require_script())},
    )
    names = result.output.splitlines()
    assert "tree_error" in names, result.output
    assert "error" not in names, result.output


ENDINGS = {
    "grader killed": (
        "bash /tests/test.sh & until pgrep -u 1000; do sleep 0.1; done; pkill -KILL -f grade.py; wait",
        0,
    ),
    "no time": ('sed -i \'s/"deadline": [0-9]*/"deadline": 1/\' /tests/task.json; bash /tests/test.sh', 0),
    "link for a patch": (
        "rm /logs/artifacts/model.patch; ln -s /etc/passwd /logs/artifacts/model.patch; bash /tests/test.sh",
        0,
    ),
    "folder for a patch": ("rm /logs/artifacts/model.patch; mkdir /logs/artifacts/model.patch; bash /tests/test.sh", 0),
    "nothing collected": ("rm /logs/artifacts/model.patch; bash /tests/test.sh", None),
    "damaged script": ("echo 'if' >> /tests/eval.sh; bash /tests/test.sh", None),
    "no tree": ("rm -rf /testbed; bash /tests/test.sh", None),
    "complete": ("bash /tests/test.sh", 1),
}
"""How an evaluation in a bundle ends, and the reward of the right solution. None: the fault precedes the submission."""


@pytest.mark.parametrize("name", ENDINGS)
def test_a_verifier_that_is_ended_leaves_a_score(name: str, graded_task: GradedTask) -> None:
    command, expected = ENDINGS[name]
    services, task = graded_task.services, graded_task.task
    solution = SHOP_RIGHT + ("\nimport time\ntime.sleep(3)\n" if expected == 0 else "")
    files = {
        f"/tests/{path}": content
        for path, content in build_verifier_files(ExportItem(task=task, certificate=None), services).items()
    }
    result = run_in_container(
        services,
        task.image,
        ["bash", "-c", command],
        files=files | {PATCH_PATH: graded_task.patch("slow", {PACKAGE: solution})},
        collect=[REWARD_PATH],
    )
    content = result.files.get(REWARD_PATH)
    assert (json.loads(content)["reward"] if content else None) == expected, result.output
