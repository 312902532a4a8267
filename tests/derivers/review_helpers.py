"""Changes of small real repositories, as input of the review deriver."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from backends.clones import CloneStore
from backends.git import GitRepository
from backends.scratch import open_scratch
from backends.services import Services
from core.config import Settings
from derivers.base import KindRejection
from derivers.review import derive_review
from miner.patches import split_commit
from taskdb.artifacts import Artifacts
from taskdb.records import Candidate, Task
from taskdb.records.lineage import Lineage
from taskdb.records.oracles import ReviewOracle
from taskdb.records.tags import ChangeKind
from tests import records
from tests.helpers import TinyRepo

STATEMENT = "Totals are too small\n\nThe last item is never counted."
PADDING = "".join(f"\n\ndef helper_{n}(x):\n    return x + {n}\n" for n in range(10))
TOTAL = (
    'def total(items):\n    """Sum of all items."""\n    n = 0\n'
    "    for i in range(len(items) - 1):\n        n += items[i]\n    return n\n"
)
"""Its fourth line is faulty."""
RIGHT = TOTAL.replace("len(items) - 1", "len(items)")


def create_services(folder: Path) -> Services:
    nothing: Any = SimpleNamespace()
    return Services(
        settings=Settings(store=folder / "store"),
        sandbox=nothing,
        clones=CloneStore(folder / "store" / "clones"),
        artifacts=Artifacts(folder / "store" / "artifacts"),
    )


def create_lineage(repo: TinyRepo, services: Services, base: str, merge: str, **fields: Any) -> Lineage:
    """Return the change between two commits as a candidate; a bug fix by default."""
    with open_scratch(GitRepository(repo.path)) as made:
        split = split_commit(made, base, merge)
    given = {
        "source": f"git:{repo.path}",
        "base_commit": base,
        "merge_commit": merge,
        "change_kind": ChangeKind.BUGFIX,
        "gold_patch": services.artifacts.put_text(split.gold.text),
        "problem_statement": STATEMENT,
    }
    candidate: Candidate = records.make_candidate(records.make_pull_request(), **given | fields)
    return Lineage(candidate=candidate)


def derive_forms(made: list[Task] | KindRejection) -> dict[str, Task]:
    """Return the tasks by form; none where the change was rejected."""
    tasks = [] if isinstance(made, KindRejection) else made
    return {get_oracle(task).target: task for task in tasks}


def get_oracle(task: Task) -> ReviewOracle:
    assert isinstance(task.oracle, ReviewOracle)
    return task.oracle


def derive_reviews(repo: TinyRepo, folder: Path, base: str, merge: str, **fields: Any) -> list[Task] | KindRejection:
    services = create_services(folder)
    return derive_review(create_lineage(repo, services, base, merge, **fields), services)


def get_rejection(repo: TinyRepo, folder: Path, base: str, merge: str, **fields: Any) -> tuple[str, str]:
    """Return reason and detail of the rejection."""
    made = derive_reviews(repo, folder, base, merge, **fields)
    assert isinstance(made, KindRejection), [get_oracle(task).target for task in made]
    return made.reason, made.detail
