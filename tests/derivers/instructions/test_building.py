"""Building instruction tasks from gold patches of any form."""

from __future__ import annotations

from pathlib import Path

from derivers.instructions import GoldWork, InstructionTaskBuilder, make_options, read_work
from derivers.instructions.constraints import load_constraints
from evaluation.instructions.submission import read_submission
from taskdb.records import Task
from taskdb.records.instructions import InstructionOracle
from tests import records
from tests.derivers.review_helpers import create_services
from tests.helpers import TinyRepo

GREET = "def greet(name):\n    return 'hi ' + name\n"
FIXED = "def greet(name):\n    return 'hi ' + name.strip()\n"


def test_the_scripts_of_a_gold_patch_that_removes_a_file_remove_it(tmp_path: Path) -> None:
    repo = TinyRepo(tmp_path / "greet")
    base = repo.commit("Begin", {"greet.py": GREET, "old/names.py": "NAMES = ()\n", "tests/test_greet.py": "\n"})
    repo.commit("Strip names", {"greet.py": FIXED, "old/names.py": None})
    services = create_services(tmp_path)
    patch = repo.git("diff", "--binary", base, "HEAD").encode() + b"\n"
    original = make_original(repo, base, services.artifacts.put(patch))
    work = read_work(original, services)
    assert isinstance(work, GoldWork)
    builder = InstructionTaskBuilder(
        original=original,
        work=work,
        known={name: known for name, known in load_constraints().items() if known.check != "judged"},
        services=services,
        number=1,
        options=make_options(services.settings.derive),
    )
    task = builder.build()
    assert task is not None
    assert isinstance(task.oracle, InstructionOracle)
    for key in (task.oracle.dutiful, *(script.submission for script in task.oracle.careless)):
        submission = read_submission(services.artifacts.get(key))
        assert b"deleted file mode 100644" in submission.patch_bytes


def make_original(repo: TinyRepo, base: str, gold_patch: str) -> Task:
    pull = records.make_pull_request()
    candidate = records.make_candidate(pull, source=f"git:{repo.path}", base_commit=base, gold_patch=gold_patch)
    return records.make_task(records.make_verification(records.make_environment(candidate)), candidate)
