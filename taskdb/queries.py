"""What people ask: tasks, funnel, why. Answers are plain JSON data with the keys of docs/cli.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

from sqlalchemy import Connection, Select, bindparam, column, func, select, table, text

from mergemill.errors import InputError
from taskdb import tables
from taskdb.artifacts import Artifacts
from taskdb.attempts import attempts_of
from taskdb.mapping import KINDS, table_of
from taskdb.records import Certificate, Environment, PublishedVerdict, PullRequest, Rejection, Stage, Task
from taskdb.store import Store
from taskdb.tags import Tags
from taskdb.verdicts import Verdict

LISTED = (
    "id", "name", "kind", "repo", "language", "status", "base_commit", "n_fail_to_pass", "n_pass_to_pass", "created_at",
)  # fmt: skip
"""Keys of a row of `tasks list`, in order."""

_FILTERED = (*LISTED, "source", "license", "verification", "candidate", "certificate", "environment")
_TASKS = table("tasks", *(column(name) for name in _FILTERED))

_OF_TAGS = table("tags", column("candidate"), column("kind"))


@dataclass(frozen=True, kw_only=True)
class Filters:
    """Which tasks; None means all. Texts are compared whole, letters' case aside.

    Tasks whose tests a model played are never among others: they come where their kind is asked for.
    """

    source: str | None = None
    repo: str | None = None
    language: str | None = None
    kind: str | None = None
    change_kind: str | None = None
    """Any of the change's kinds, not only the primary one."""
    status: str | None = None
    license: str | None = None
    min_f2p: int | None = None

    def of(self, query: Select[Any]) -> Select[Any]:
        """The query with these filters."""
        for field in fields(self):
            wanted = getattr(self, field.name)
            if wanted is not None and field.name not in ("min_f2p", "change_kind"):
                query = query.where(func.lower(_TASKS.c[field.name]) == str(wanted).lower())
        if self.kind is None:
            query = query.where(_TASKS.c.environment != "simulated")
        if self.change_kind is not None:
            of_kind = select(_OF_TAGS.c.candidate).where(_OF_TAGS.c.kind == str(self.change_kind).lower())
            query = query.where(_TASKS.c.candidate.in_(of_kind))
        return query if self.min_f2p is None else query.where(_TASKS.c.n_fail_to_pass >= self.min_f2p)


# ------------------------------------------------------------------------------------------------------- tasks


def list_tasks(store: Store, filters: Filters, limit: int | None = None) -> list[dict[str, Any]]:
    """Tasks of current chains, newest change first, with the keys LISTED."""
    query = select(*(_TASKS.c[name] for name in LISTED)).order_by(_TASKS.c.created_at.desc(), _TASKS.c.name)
    with store.reading() as connection:
        return [dict(row) for row in connection.execute(filters.of(query).limit(limit)).mappings()]


def search_tasks(store: Store, words: Sequence[str], filters: Filters) -> list[dict[str, Any]]:
    """Tasks in whose name, repository or statement each of the words stands; keys as in `list_tasks`."""
    whole = table_of(tables.TaskRow)
    found = select(whole.c.id)
    for word in words:
        found = found.where(whole.c.words.contains(word.lower(), autoescape=True))
    query = select(*(_TASKS.c[name] for name in LISTED)).where(_TASKS.c.id.in_(found))
    with store.reading() as connection:
        newest_first = filters.of(query).order_by(_TASKS.c.created_at.desc(), _TASKS.c.name)
        return [dict(row) for row in connection.execute(newest_first).mappings()]


def load_tasks(store: Store, filters: Filters) -> list[tuple[Task, Certificate | None]]:
    """Tasks as records, each with its certificate; what `export` takes."""
    query = select(_TASKS.c.id, _TASKS.c.certificate).order_by(_TASKS.c.name, _TASKS.c.id)
    with store.reading() as connection:
        rows = connection.execute(filters.of(query)).all()
    tasks = store.get_many(Task, [row.id for row in rows])
    certificates = store.get_many(Certificate, [row.certificate for row in rows if row.certificate])
    return [(tasks[row.id], certificates.get(row.certificate)) for row in rows]


def show_task(store: Store, artifacts: Artifacts, task: Task) -> dict[str, Any]:
    """Everything about a task, patches as text. `how_failed`: FAIL_TO_PASS test -> how it failed before."""
    with store.reading() as connection:
        query = select(*(_TASKS.c[name] for name in LISTED)).where(_TASKS.c.id == task.id)
        row = connection.execute(query).mappings().first()
        parents = _ancestors(connection, task.id)
        tags = _tags_of(connection, parents[-1])
        verdict = _verdict_of(connection, task.parent)
    listed = dict(row) if row else _superseded(task)
    return listed | {
        "problem_statement": task.problem_statement,
        "hints": task.hints,
        "patch": artifacts.text(task.gold_patch),
        "test_patch": artifacts.text(task.test_patch),
        "FAIL_TO_PASS": [test for test, _ in task.FAIL_TO_PASS],
        "PASS_TO_PASS": list(task.PASS_TO_PASS),
        "how_failed": {test: kind.value for test, kind in task.FAIL_TO_PASS},
        "image": task.image,
        "image_digest": task.image_digest,
        "certified": listed["status"] == "certified",
        "strength": {"twins": len(task.twins), "fail_to_pass": len(task.FAIL_TO_PASS)},
        "license": task.license,
        "source": task.source,
        "parents": parents,
        "tags": tags,
        "verdict": verdict,
        "published": _plain(task.published),
        "environment": task.environment,
        "others": list(task.others),
        "setup_patch": artifacts.text(task.setup_patch) if task.setup_patch else None,
        "oracle": task.oracle.model_dump(mode="json") if task.oracle else None,
    }


def _superseded(task: Task) -> dict[str, Any]:
    """The listed keys of a task whose chain is no longer the current one."""
    counts = {"n_fail_to_pass": len(task.FAIL_TO_PASS), "n_pass_to_pass": len(task.PASS_TO_PASS)}
    own = {name: getattr(task, name) for name in LISTED if name not in counts and name != "status"}
    return {name: (own | counts | {"status": "superseded", "kind": task.kind.value})[name] for name in LISTED}


def stats(store: Store, filters: Filters) -> dict[str, Any]:
    """How many tasks there are: in all, and by status, kind, language, repository and licence."""
    kinds = ("status", "kind", "language", "repo", "license")
    with store.reading() as connection:
        rows = connection.execute(filters.of(select(*(_TASKS.c[k] for k in kinds), _TASKS.c.n_fail_to_pass))).all()
    tests = sorted(row.n_fail_to_pass for row in rows)
    return {
        "tasks": len(rows),
        **{kind: dict(Counter(getattr(row, kind) for row in rows).most_common()) for kind in kinds},
        "median_fail_to_pass": tests[len(tests) // 2] if tests else None,
    }


# ------------------------------------------------------------------------------------------------------ funnel


def summary(store: Store, sources: Sequence[str] = ()) -> dict[str, Any]:
    """What the database holds of the sources (of all, when none is named); the keys of `run`'s last line."""
    with store.reading() as connection:
        rows = [row for row in connection.execute(text(_OF_CHANGES)) if not sources or row.source in sources]
        made = [row for row in connection.execute(text(_MADE)) if not sources or row.source in sources]
        spent = connection.execute(text("SELECT source, stage, sum(seconds) AS s FROM event GROUP BY source, stage"))
        seconds: Counter[str] = Counter()
        for row in spent:
            if not sources or row.source in sources:
                seconds[row.stage] += row.s
    return {
        "mined": len(rows),
        "candidates": sum(row.candidate is not None for row in rows),
        "environments": sum(row.environment is not None for row in rows),
        "verified": sum(row.verification is not None for row in rows),
        "tasks": dict(sorted(Counter(row.kind for row in made).items())),
        "certified": sum(row.certificate is not None for row in made),
        "rejected": dict(Counter(row.reason for row in rows if row.reason).most_common()),
        "seconds": {stage.value: round(seconds[stage], 1) for stage in Stage if stage in seconds},
    }


_MADE = "SELECT source, kind, certificate FROM derivations WHERE task IS NOT NULL"
_OF_CHANGES = """SELECT source, repo, change_kind, size, candidate, environment,
                        verification, verdict, task, certificate, rejected_by, reason
                 FROM changes"""
_PASSED = {
    Stage.MINE: "candidate",
    Stage.BUILD: "environment",
    Stage.VERIFY: "verification",
    Stage.JUDGE: "verdict",
    Stage.DERIVE: "task",
    Stage.CERTIFY: "certificate",
}


def funnel(store: Store, sources: Sequence[str] = (), repo: str | None = None) -> list[dict[str, Any]]:
    """Per stage: how many records came in, passed, wait, and were rejected for which reasons, commonest first."""
    with store.reading() as connection:
        every = connection.execute(text(_OF_CHANGES)).all()
    rows = [row for row in every if (not sources or row.source in sources) and repo in (None, row.repo)]
    found, came, made = [], len(rows), list(_PASSED.values())
    for at, stage in enumerate(_PASSED):
        # who came further has passed, too: what was made before there was a judge has no verdict
        passed = sum(any(getattr(row, further) is not None for further in made[at:]) for row in rows)
        reasons = Counter(row.reason for row in rows if row.rejected_by == stage)
        waiting = came - passed - reasons.total()
        rejected = dict(sorted(reasons.items(), key=lambda item: (-item[1], item[0])))
        found.append({"stage": stage.value, "in": came, "out": passed, "waiting": waiting, "rejected": rejected})
        came = passed
    return found


def funnel_by(
    store: Store, by: Literal["change_kind", "size", "repo"], sources: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """For each kind of change (or size, or repository), how many came how far; the commonest first."""
    with store.reading() as connection:
        rows = [row for row in connection.execute(text(_OF_CHANGES)) if not sources or row.source in sources]
    counted: dict[str, Counter[str]] = {}
    for row in rows:
        came = [made for made in _PASSED.values() if getattr(row, made) is not None]
        counted.setdefault(getattr(row, by) or "-", Counter()).update(["mined", *came])
    return [
        {by: name, **{made: of[made] for made in ("mined", *_PASSED.values())}}
        for name, of in sorted(counted.items(), key=lambda item: (-item[1]["mined"], item[0]))
    ]


def examples(store: Store, sources: Sequence[str] = (), repo: str | None = None) -> dict[tuple[str, str], str]:
    """The newest change that was rejected, for each stage and reason."""
    with store.reading() as connection:
        rows = connection.execute(text(_REJECTED)).all()
    chosen = [row for row in rows if (not sources or row.source in sources) and repo in (None, row.repo)]
    return {(row.rejected_by, row.reason): row.name for row in chosen}


_REJECTED = "SELECT source, repo, name, rejected_by, reason FROM changes WHERE reason IS NOT NULL ORDER BY merged_at"


def environments(store: Store) -> tuple[list[Environment], set[str]]:
    """Every environment that was ever accepted here, and the ids of those whose image is still needed.

    Needed is the image of every task, also of one that was rejected or whose chain counts no more, and of every change
    that still goes on.
    """
    with store.reading() as connection:
        going_on = set(connection.execute(text(_GOING_ON)).scalars())
    every = store.all(Environment)
    kept = {task.image for task in store.all(Task)} | {e.image for e in every if e.id in going_on}
    return every, {environment.id for environment in every if environment.image in kept}


_GOING_ON = "SELECT environment FROM changes WHERE status <> 'rejected' AND environment IS NOT NULL"


# ------------------------------------------------------------------------------------------------------ lookup


def resolve_task(store: Store, word: str) -> Task:
    """The task of an id, an unambiguous beginning of one, or a name.

    Raises:
        InputError: there is none, or more than one.
    """
    with store.reading() as connection:
        found = {row.id: row.name for row in connection.execute(_MATCHING_TASKS, {"word": word, **_like(word)})}
        current = {row.id for row in connection.execute(_CURRENT_TASKS, {"keys": list(found)})} if found else set()
    if word not in found and len(current) == 1:
        return store.get(Task, current.pop())  # older chains of the same change don't make its name ambiguous
    return store.get(Task, _only_one(found, word, "task"))


def resolve_change(store: Store, word: str) -> PullRequest:
    """The change of a name (its own or a task's), of a record's id of any kind, or of an unambiguous beginning.

    Raises:
        InputError: there is none, or more than one.
    """
    with store.reading() as connection:
        query = text("SELECT pull_request, source, name FROM changes WHERE name = :word")
        found = {row.pull_request: f"{row.name} of {row.source}" for row in connection.execute(query, {"word": word})}
        if not found:
            named = connection.execute(_MATCHING_TASKS, {"word": word, **_like(word)})
            found = {_ancestors(connection, row.id)[-1]: row.name for row in named}
        if not found:
            found = _changes_of_ids(connection, word)
    return store.get(PullRequest, _only_one(found, word, "change"))


_MATCHING_TASKS = text("SELECT id, name FROM task WHERE name = :word OR id LIKE :start ESCAPE '!'")
_CURRENT_TASKS = text("SELECT id FROM tasks WHERE id IN :keys").bindparams(bindparam("keys", expanding=True))


def _changes_of_ids(connection: Connection, word: str) -> dict[str, str]:
    found = {}
    for kind, (row, _) in KINDS.items():
        whole = table_of(row)
        if "parent" not in whole.c and kind is not PullRequest:
            continue
        ids = connection.execute(select(whole.c.id).where(whole.c.id.startswith(word, autoescape=True)).limit(9))
        for key in ids.scalars().all():
            oldest = [key, *_ancestors(connection, key)][-1]
            found[oldest] = f"{kind.__name__} {key[:12]}"
    return found


def _like(word: str) -> dict[str, str]:
    escaped = word.replace("!", "!!").replace("%", "!%").replace("_", "!_")
    return {"start": f"{escaped}%"}


def _only_one(found: dict[str, str], word: str, what: str) -> str:
    if not found:
        raise InputError(
            f"there is no {what} {word}", advice="mergemill tasks list and mergemill sql show which there are"
        )
    if word in found or len(found) == 1:
        return word if word in found else next(iter(found))
    matches = ", ".join(f"{key[:16]} ({told})" for key, told in sorted(found.items())[:5])
    raise InputError(f"{word} may mean {len(found)} {what}s: {matches}")


def _ancestors(connection: Connection, key: str) -> list[str]:
    """Ids of the records above one, its parent first, its change last."""
    above: list[str] = []
    while True:
        for row, _ in KINDS.values():
            whole = table_of(row)
            if "parent" not in whole.c:
                continue
            parent = connection.execute(select(whole.c.parent).where(whole.c.id == key)).scalar()
            if parent is not None:
                above.append(parent)
                key = parent
                break
        else:
            return above


# --------------------------------------------------------------------------------------------------------- why


def why(store: Store, change: PullRequest) -> dict[str, Any]:
    """One change's whole story, oldest event first; also of chains that no longer count."""
    with store.reading() as connection:
        key = {"source": change.source, "name": change.name}
        events = [dict(row) for row in connection.execute(_EVENTS, key).mappings()]
        ids = [row.id for row in connection.execute(_TASK_IDS, key)]
        published = connection.execute(_PUBLISHED, {"id": change.id}).first()
        tags = _tags_of(connection, change.id)
        stands = connection.execute(_VERIFIED, {"id": change.id}).scalar()
        verdict = _verdict_of(connection, stands) if stands else None
    told: PublishedVerdict | None = None
    if published and published.task:
        told = store.get(Task, published.task).published
    elif published and published.rejection:
        told = store.get(Rejection, published.rejection).published
    for event in events:
        event["ok"] = bool(event["ok"])
        if event["kind"] is None:
            del event["kind"]
    return {
        "name": change.name,
        "source": change.source,
        "events": events,
        "tasks": ids,
        "published": _plain(told),
        "tags": tags,
        "verdict": verdict,
        "attempts": [one.model_dump(mode="json") for one in attempts_of(store, change)],
    }


def _tags_of(connection: Connection, change: str) -> dict[str, Any] | None:
    """The tags of a change (id), or None: it was mined before there were any."""
    body = connection.execute(_TAGS_OF, {"id": change}).scalar()
    return Tags.model_validate_json(body).model_dump(mode="json", exclude={"parent", "name"}) if body else None


def _verdict_of(connection: Connection, verification: str) -> dict[str, Any] | None:
    """The newest verdict on the statement of what was verified (id), or None: it was not judged."""
    body = connection.execute(_VERDICT_OF, {"id": verification}).scalar()
    return Verdict.model_validate_json(body).model_dump(mode="json", exclude=_OF_THE_CHAIN) if body else None


_OF_THE_CHAIN = {"parent", "candidate", "name"}
_VERDICT_OF = text("SELECT body FROM verdict WHERE parent = :id ORDER BY seq DESC LIMIT 1")
_VERIFIED = text("SELECT verification FROM changes WHERE pull_request = :id")
_TAGS_OF = text("SELECT g.body FROM change h JOIN tagging g ON g.id = h.tagging WHERE h.pull_request = :id")


def log_of(store: Store, change: PullRequest) -> str | None:
    """Artifact hash of the log of the rejection at which the change stands, or None."""
    with store.reading() as connection:
        row = connection.execute(_PUBLISHED, {"id": change.id}).first()
    return store.get(Rejection, row.rejection).log if row and row.rejection else None


_EVENTS = text("""SELECT stage, ok, reason, detail, seconds, at, kind FROM event
                  WHERE source = :source AND name = :name ORDER BY seq""")
_TASK_IDS = text("SELECT id FROM tasks WHERE source = :source AND change_name = :name ORDER BY name, id")
_PUBLISHED = text("SELECT task, rejection FROM changes WHERE pull_request = :id")


def _plain(published: PublishedVerdict | None) -> dict[str, Any] | None:
    return published.model_dump(mode="json") if published else None
