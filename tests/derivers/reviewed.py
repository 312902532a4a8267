"""Changes of tiny real repositories, as the review deriver gets them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from backends.clones import Clones
from backends.git import Repository
from backends.services import Services
from derivers.base import Refusal
from derivers.review import review
from mergemill.config import Settings
from miner.patches import split_commit
from miner.scratch import scratch
from taskdb.artifacts import Artifacts
from taskdb.lineage import Lineage
from taskdb.oracles import Review
from taskdb.records import Candidate, Task
from taskdb.tags import ChangeKind
from tests import records
from tests.helpers import TinyRepo

STATEMENT = "Totals are too small\n\nThe last item is never counted."
PADDING = "".join(f"\n\ndef helper_{n}(x):\n    return x + {n}\n" for n in range(10))
TOTAL = (
    'def total(items):\n    """Sum of all items."""\n    n = 0\n'
    "    for i in range(len(items) - 1):\n        n += items[i]\n    return n\n"
)
"""Its fourth line is wrong."""
RIGHT = TOTAL.replace("len(items) - 1", "len(items)")


def services_at(folder: Path) -> Services:
    nothing: Any = SimpleNamespace()
    return Services(
        settings=Settings(store=folder / "store"), sandbox=nothing, clones=Clones(folder / "store" / "clones"),
        artifacts=Artifacts(folder / "store" / "artifacts"),
    )  # fmt: skip


def lineage_of(repo: TinyRepo, services: Services, base: str, merge: str, **fields: Any) -> Lineage:
    """The change from one commit to another as a candidate, a bug fix unless it is said otherwise."""
    with scratch(Repository(repo.path)) as made:
        split = split_commit(made, base, merge)
    given = {
        "source": f"git:{repo.path}", "base_commit": base, "merge_commit": merge, "kind": ChangeKind.BUGFIX,
        "gold_patch": services.artifacts.put_text(split.gold.text), "problem_statement": STATEMENT,
    }  # fmt: skip
    candidate: Candidate = records.candidate(records.pull_request(), **given | fields)
    return Lineage(candidate=candidate)


def forms_of(made: list[Task] | Refusal) -> dict[str, Task]:
    """Tasks by their form; none where the change was refused."""
    tasks = [] if isinstance(made, Refusal) else made
    return {oracle_of(task).target: task for task in tasks}


def oracle_of(task: Task) -> Review:
    assert isinstance(task.oracle, Review)
    return task.oracle


def reviews_of(repo: TinyRepo, folder: Path, base: str, merge: str, **fields: Any) -> list[Task] | Refusal:
    services = services_at(folder)
    return review(lineage_of(repo, services, base, merge, **fields), services)


def why_not(repo: TinyRepo, folder: Path, base: str, merge: str, **fields: Any) -> tuple[str, str]:
    """Reason and detail of a refusal."""
    made = reviews_of(repo, folder, base, merge, **fields)
    assert isinstance(made, Refusal), [oracle_of(task).target for task in made]
    return made.reason, made.detail
