"""The verifiers in bundles decide in one container as `mergemill grade` does in many."""

from __future__ import annotations

import ast
import io
import json
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from backends.git import GitRepository
from backends.services import Services
from builders.bases import ensure_base
from derivers.performance import derive_performance
from exporters.verifier_archive import pack_verifier
from taskdb.records import Kind, Score, Task, Verification
from taskdb.records.oracles import Defect, ReviewOracle
from taskdb.records.tags import ChangeKind
from tests import records
from tests.containers import make_lineage, make_services
from tests.exporters.tasks import WORDS, WORDS_RIGHT, make_task_with_image
from tests.exporters.verifying import run_verifier
from tests.helpers import TinyRepo
from tests.verifiers.rewards.test_writing import (
    CHUNKS_RIGHT,
    GOLD_PARTS,
    ONE,
    OWN,
    keep_three_mutants,
    open_writing_exam,
)
from tests.verifiers.slow_rows import FAST, MORE_TESTS, SLOW, WRONG, make_module_patch
from verifiers.rewards import grade
from verifiers.verify import verify

SEEN = "import os\n\n\ndef test_it():\n    assert os.getcwd() == '/nowhere'\n"


def test_the_archive_needs_the_standard_library_of_python_3_9_and_is_the_same_every_time() -> None:
    content = pack_verifier()
    assert content == pack_verifier.__wrapped__()
    with zipfile.ZipFile(io.BytesIO(content)) as packed:
        names = packed.namelist()
        for name in names:
            tree = ast.parse(packed.read(name), feature_version=(3, 9))
            imported = {
                (node.module if isinstance(node, ast.ImportFrom) else node.names[0].name) or ""
                for node in ast.walk(tree)
                if isinstance(node, ast.Import | ast.ImportFrom)
            }
            own = {module for module in imported if module.split(".")[0] in ("exporters", "evaluation", "taskdb")}
            assert all(
                f"{module.replace('.', '/')}.py" in names
                or module == "guest.verifier"
                or module in ("guest.scoring", "evaluation.controls")
                for module in own
            ), (name, own)


# ------------------------------------------------------------------------------------------------- lists of tests


def make_patch(path: str, old: str, new: str) -> bytes:
    """Return the patch that replaces a file."""
    body = "".join(f"-{line}\n" for line in old.splitlines()) + "".join(f"+{line}\n" for line in new.splitlines())
    head = f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n"
    return f"{head}@@ -1,{len(old.splitlines())} +1,{len(new.splitlines())} @@\n{body}".encode()


EXITS = "import os\nos._exit({})\n"
REWARDING = """import os
for path in ("/logs/verifier/reward.json", "/logs/verifier/reward.txt", "/tests/task.json"):
    try:
        open(path, "w").write('{"reward": 1}')
    except OSError:
        pass
"""


@pytest.mark.docker
def test_a_submission_to_a_bug_fix_can_neither_write_a_reward_nor_stay_unscored(tmp_path: Path) -> None:
    services = make_services(tmp_path)
    task = make_task_with_image(services, tmp_path, evaluations=2)
    submissions = {
        "gold": services.artifacts.get(task.gold_patch),
        "empty": b"",
        "exit code of an infrastructure failure": make_patch("words.py", WORDS, EXITS.format(97)),
        "exit code of a patch that does not apply": make_patch("words.py", WORDS, EXITS.format(96)),
        "reward files": make_patch("words.py", WORDS, REWARDING + WORDS),
        "all memory": make_patch("words.py", WORDS, "x = [b'a' * 2**20 for _ in range(10**6)]\n"),
        "no patch": b"nonsense",
    }
    rewards = {name: run_verifier(task, services, patch) for name, patch in submissions.items()}
    values = {name: reward and reward["reward"] for name, (reward, _) in rewards.items()}
    assert values == dict.fromkeys(submissions, 0) | {"gold": 1}, rewards
    assert run_verifier(task, services, None)[0] is None
    assert WORDS_RIGHT != WORDS


@pytest.mark.docker
def test_the_form_of_a_patch_decides_nothing_and_repairs_are_printed(tmp_path: Path) -> None:
    services = make_services(tmp_path)
    task = make_task_with_image(services, tmp_path, evaluations=2)
    gold = services.artifacts.get(task.gold_patch)
    forms = {
        "": gold,
        "applied after: added missing last line feed": gold[:-1],
        "applied after: corrected the prefixes of paths": gold.replace(b"a/", b"").replace(b"b/", b"")
        + b"diff --git docs/notes.txt docs/notes.txt\nnew file mode 100644\n--- /dev/null\n+++ docs/notes.txt\n"
        + b"@@ -0,0 +1 @@\n+Done.\n",
        "applied after: changed line ends to those of the tree": gold.replace(b"\n", b"\r\n"),
        "put back or removed, as protected: conftest.py": gold
        + b"--- /dev/null\n+++ b/conftest.py\n@@ -0,0 +1 @@\n+raise SystemExit\n",
    }
    for line, patch in forms.items():
        reward, output = run_verifier(task, services, patch)
        assert reward is not None, output
        assert (reward["reward"], reward["patch_applied"]) == (1, 1), output
        printed = [word for word in output.splitlines() if word.startswith(("applied after", "put back"))]
        assert printed == ([line] if line else [])


# ------------------------------------------------------------------------------------------------------ test-writing


@dataclass(frozen=True)
class WritingTask:
    services: Services
    repo: TinyRepo
    base: str
    task: Task

    def make_patch(self, files: dict[str, str]) -> bytes:
        """Return a submission as git writes it in an agent's work tree."""
        self.repo.git("checkout", "-q", "-f", "--detach", self.base)
        self.repo.git("clean", "-fdxq")
        self.repo.write(dict(files))
        self.repo.git("add", "-A", "-f")
        self.repo.git("commit", "-q", "--allow-empty", "-m", "Submit")
        return GitRepository(self.repo.path).run_git("diff-tree", "-p", "--binary", self.base, "HEAD")


@pytest.fixture(scope="module")
def writing_task(tmp_path_factory: pytest.TempPathFactory) -> WritingTask:
    exam = open_writing_exam(tmp_path_factory, test_timeout=600)
    return WritingTask(exam.services, exam.repo, exam.base, keep_three_mutants(exam.task))


SOURCE = "import pathlib, pieces\nTEXT = pathlib.Path(pieces.__file__).read_text()\n\n\ndef test_it():\n    "
SUBMITTED: dict[str, dict[str, str] | None] = {
    "gold": {"tests/test_pieces.py": OWN},
    "empty": None,
    "some": {"tests/test_more.py": ONE},
    "found by the framework": {"checks/test_rest.py": ONE},
    "text of the fault": {"tests/test_more.py": SOURCE + "assert 'len(items) - size' not in TEXT\n"},
    "always failing": {"tests/test_more.py": SEEN},
    "with the fix": {"tests/test_more.py": ONE, "pieces/__init__.py": CHUNKS_RIGHT},
    "exit": {"tests/test_more.py": ONE + "\n\nimport os\nos._exit(97)\n"},
    "two lines": {"tests/test_\nmore.py": ONE},
    "reward files": {"tests/test_more.py": REWARDING + "\n\ndef test_it():\n    pass\n"},
}


GOLD_SCORE = Score(task="", value=1.0, resolved=True, f2p_rate=1.0, p2p_rate=1.0, parts=GOLD_PARTS)
SLOW_SUBMISSIONS = ("some", "found by the framework", "text of the fault")
"""Submissions that run on every mutant, as the gold tests do."""


@pytest.mark.docker
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in SLOW_SUBMISSIONS else name for name in SUBMITTED]
)
def test_submitted_tests_get_the_same_score_in_one_container(name: str, writing_task: WritingTask) -> None:
    files = SUBMITTED[name]
    patch = writing_task.make_patch(files) if files else b""
    # Grading the change's own tests in several containers is a test of its own, with the same parts.
    expected = GOLD_SCORE if name == "gold" else grade(writing_task.task, writing_task.services, patch)
    reward, output = run_verifier(writing_task.task, writing_task.services, patch)
    assert reward is not None, output
    values = {part: value for part, value in reward.items() if part not in ("reward", "tampering")}
    assert (reward["reward"], values) == (expected.value, expected.parts), output
    assert bool(reward["tampering"]) == bool(expected.tampering)
    if name in ("gold", "some", "found by the framework"):
        assert reward["reward"] == 1 if name == "gold" else 0.3 < reward["reward"] < 1
    else:
        assert reward["reward"] == 0


@pytest.mark.docker
@pytest.mark.slow
def test_the_form_of_submitted_tests_decides_nothing(writing_task: WritingTask) -> None:
    patch = writing_task.make_patch({"tests/test_pieces.py": OWN}).replace(b"a/tests", b"tests")
    patch = patch.replace(b"b/tests", b"tests").rstrip(b"\n")
    assert grade(writing_task.task, writing_task.services, patch).value == 1.0
    reward, output = run_verifier(writing_task.task, writing_task.services, patch)
    assert reward is not None, output
    assert reward["reward"] == 1, output


# ------------------------------------------------------------------------------------------------------- performance


@pytest.mark.docker
@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_only_a_faster_solution_earns_a_reward(tmp_path: Path) -> None:
    services = make_services(tmp_path, repeats=1, test_timeout=600)
    repo = TinyRepo(tmp_path / "repo")
    base = repo.commit("Start", {"rows/__init__.py": SLOW, "tests/test_rows.py": MORE_TESTS})
    merge = repo.commit("Faster", {"rows/__init__.py": FAST})
    lineage = make_lineage(repo, services, base, merge)
    lineage = replace(lineage, candidate=lineage.candidate.model_copy(update={"change_kind": ChangeKind.PERFORMANCE}))
    verification = verify(lineage, services)
    assert isinstance(verification, Verification), verification
    made = derive_performance(lineage.with_record(verification), services)
    assert isinstance(made, list), made
    (task,) = made
    submissions = {
        "gold": services.artifacts.get(task.gold_patch),
        "empty": b"",
        "no change of speed": make_module_patch(repo, base, SLOW + "\nFASTER = True\n"),
        "work left out": make_module_patch(repo, base, WRONG),
        "exit": make_module_patch(repo, base, EXITS.format(97)),
    }
    rewards = {name: run_verifier(task, services, patch) for name, patch in submissions.items()}
    values = {name: reward and reward["reward"] for name, (reward, _) in rewards.items()}
    assert values == dict.fromkeys(submissions, 0) | {"gold": 1}, rewards
    gold = rewards["gold"][0]
    assert gold is not None
    assert gold["ratio"] > 1.1
    assert gold["p"] < 0.01


# ------------------------------------------------------------------------------------------------------------ review


TEXT = "".join(f"def line_{n}():  # of the shop\n" for n in range(1, 101))


def make_review_task(services: Services, *defects: Defect) -> Task:
    """Return a review of two files."""
    files = services.artifacts.put_text(json.dumps({"shop.py": TEXT, "../cart.py": TEXT}))
    patches = {name: services.artifacts.put_text(name) for name in ("gold_patch", "test_patch")}
    candidate = records.make_candidate(records.make_pull_request(), **patches)
    made = records.make_task(records.make_verification(records.make_environment(candidate)), candidate)
    oracle = ReviewOracle(target="before-fix" if defects else "clean", files=files, diff=None, defects=defects)
    fields: dict[str, Any] = {"kind": Kind.REVIEW, "oracle": oracle, "plan": None, "eval_script": None, "image": ""}
    return Task(**made.model_dump() | fields | {"control_patch": None, "controls": (), "environment": "none"} | patches)


REVIEWS = {
    "exact": b'{"findings": [{"file": "shop.py", "first_line": 40, "last_line": 42, "claim": "x"}]}',
    "one too many": (
        b'{"findings": [{"file": "shop.py", "first_line": 41, "last_line": 41, "claim": "x"},'
        b' {"file": "shop.py", "first_line": 7, "last_line": 7, "claim": "y"}]}'
    ),
    "whole file": b'{"findings": [{"file": "shop.py", "first_line": 1, "last_line": 100, "claim": "x"}]}',
    "nothing": b'{"findings": []}',
    "missing": b"",
    "no JSON": b"The code is fine.",
    "truth for a line": b'{"findings": [{"file": "shop.py", "first_line": true, "last_line": 42, "claim": "x"}]}',
}


@pytest.mark.docker
@pytest.mark.parametrize("defects", [(Defect(path="shop.py", first_line=40, last_line=42, claim="Off by one"),), ()])
def test_a_review_gets_the_same_score_in_a_container(defects: tuple[Defect, ...], tmp_path: Path) -> None:
    services = make_services(tmp_path)
    task = make_review_task(services, *defects)
    base = ensure_base("python", "3.11", services).name
    expected = {name: grade(task, services, review).value for name, review in REVIEWS.items()}
    rewards = {name: run_verifier(task, services, review, base) for name, review in REVIEWS.items()}
    assert {name: reward and reward["reward"] for name, (reward, _) in rewards.items()} == expected, rewards
    assert expected["exact" if defects else "nothing"] == 1
    assert expected["missing"] == 0
