"""Queries of the command line: tasks, funnel, why. Results are plain JSON data with the keys of docs/cli.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

from sqlalchemy import Connection, Select, bindparam, column, func, select, table, text

from core.errors import InputError
from taskdb import tables
from taskdb.artifacts import Artifacts
from taskdb.attempts import load_attempts
from taskdb.mapping import RECORD_TABLES, get_table
from taskdb.records import Certificate, PublishedVerdict, PullRequest, Rejection, Stage, Task
from taskdb.store import Store
from taskdb.tags import Tags
from taskdb.verdicts import Verdict

LIST_KEYS = (
    "id",
    "name",
    "kind",
    "repo",
    "language",
    "status",
    "base_commit",
    "n_fail_to_pass",
    "n_pass_to_pass",
    "created_at",
)
"""Keys of a row of `tasks list`, in order."""

_FILTER_COLUMNS = (*LIST_KEYS, "source", "license", "verification", "candidate", "certificate", "environment")
_TASKS = table("tasks", *(column(name) for name in _FILTER_COLUMNS))

_TAGS = table("tags", column("candidate"), column("change_kind"))


@dataclass(frozen=True, kw_only=True)
class TaskFilters:
    """Filters of tasks; None selects all. Texts are compared whole, ignoring case.

    Simulated tasks are excluded unless `kind` selects them.
    """

    source: str | None = None
    repo: str | None = None
    language: str | None = None
    kind: str | None = None
    change_kind: str | None = None
    """Any kind of the change, not only its primary one."""
    status: str | None = None
    license: str | None = None
    min_f2p: int | None = None

    def apply(self, query: Select[Any]) -> Select[Any]:
        """Return the query with these filters."""
        for field in fields(self):
            wanted = getattr(self, field.name)
            if wanted is not None and field.name not in ("min_f2p", "change_kind"):
                query = query.where(func.lower(_TASKS.c[field.name]) == str(wanted).lower())
        if self.kind is None:
            query = query.where(_TASKS.c.environment != "simulated")
        if self.change_kind is not None:
            of_kind = select(_TAGS.c.candidate).where(_TAGS.c.change_kind == str(self.change_kind).lower())
            query = query.where(_TASKS.c.candidate.in_(of_kind))
        return query if self.min_f2p is None else query.where(_TASKS.c.n_fail_to_pass >= self.min_f2p)


# ------------------------------------------------------------------------------------------------------- tasks


def list_tasks(store: Store, filters: TaskFilters, limit: int | None = None) -> list[dict[str, Any]]:
    """Return tasks of current chains, newest change first, with the keys LIST_KEYS."""
    query = select(*(_TASKS.c[name] for name in LIST_KEYS)).order_by(_TASKS.c.created_at.desc(), _TASKS.c.name)
    with store.read_transaction() as connection:
        return [dict(row) for row in connection.execute(filters.apply(query).limit(limit)).mappings()]


def search_tasks(store: Store, words: Sequence[str], filters: TaskFilters) -> list[dict[str, Any]]:
    """Return tasks whose name, repository or statement contains each word; keys as in `list_tasks`."""
    whole = get_table(tables.TaskRow)
    found = select(whole.c.id)
    for word in words:
        found = found.where(whole.c.search_text.contains(word.lower(), autoescape=True))
    query = select(*(_TASKS.c[name] for name in LIST_KEYS)).where(_TASKS.c.id.in_(found))
    with store.read_transaction() as connection:
        newest_first = filters.apply(query).order_by(_TASKS.c.created_at.desc(), _TASKS.c.name)
        return [dict(row) for row in connection.execute(newest_first).mappings()]


def load_tasks(store: Store, filters: TaskFilters) -> list[tuple[Task, Certificate | None]]:
    """Return tasks as records, each with its certificate or None."""
    query = select(_TASKS.c.id, _TASKS.c.certificate).order_by(_TASKS.c.name, _TASKS.c.id)
    with store.read_transaction() as connection:
        rows = connection.execute(filters.apply(query)).all()
    tasks = store.get_many(Task, [row.id for row in rows])
    certificates = store.get_many(Certificate, [row.certificate for row in rows if row.certificate])
    return [(tasks[row.id], certificates.get(row.certificate)) for row in rows]


def show_task(store: Store, artifacts: Artifacts, task: Task) -> dict[str, Any]:
    """Return all fields of a task, patches as text. `how_failed`: FAIL_TO_PASS test -> how it failed before."""
    with store.read_transaction() as connection:
        query = select(*(_TASKS.c[name] for name in LIST_KEYS)).where(_TASKS.c.id == task.id)
        row = connection.execute(query).mappings().first()
        parents = _list_ancestors(connection, task.id)
        tags = _load_tags(connection, parents[-1])
        verdict = _load_verdict(connection, task.parent)
    listed = dict(row) if row else _build_superseded_row(task)
    return listed | {
        "problem_statement": task.problem_statement,
        "hints": task.hints,
        "patch": artifacts.get_text(task.gold_patch),
        "test_patch": artifacts.get_text(task.test_patch),
        "FAIL_TO_PASS": [test for test, _ in task.FAIL_TO_PASS],
        "PASS_TO_PASS": list(task.PASS_TO_PASS),
        "how_failed": {test: kind.value for test, kind in task.FAIL_TO_PASS},
        "image": task.image,
        "image_digest": task.image_digest,
        "certified": listed["status"] == "certified",
        "strength": {"controls": len(task.controls), "fail_to_pass": len(task.FAIL_TO_PASS)},
        "license": task.license,
        "source": task.source,
        "parents": parents,
        "tags": tags,
        "verdict": verdict,
        "published": _dump_published(task.published),
        "environment": task.environment,
        "other_candidates": list(task.other_candidates),
        "setup_patch": artifacts.get_text(task.setup_patch) if task.setup_patch else None,
        "oracle": task.oracle.model_dump(mode="json") if task.oracle else None,
    }


def _build_superseded_row(task: Task) -> dict[str, Any]:
    """Return the listed keys of a task of a superseded chain."""
    counts = {"n_fail_to_pass": len(task.FAIL_TO_PASS), "n_pass_to_pass": len(task.PASS_TO_PASS)}
    own = {name: getattr(task, name) for name in LIST_KEYS if name not in counts and name != "status"}
    return {name: (own | counts | {"status": "superseded", "kind": task.kind.value})[name] for name in LIST_KEYS}


def compute_stats(store: Store, filters: TaskFilters) -> dict[str, Any]:
    """Return the number of tasks in total and by status, kind, language, repository and licence."""
    kinds = ("status", "kind", "language", "repo", "license")
    with store.read_transaction() as connection:
        rows = connection.execute(filters.apply(select(*(_TASKS.c[k] for k in kinds), _TASKS.c.n_fail_to_pass))).all()
    tests = sorted(row.n_fail_to_pass for row in rows)
    return {
        "tasks": len(rows),
        **{kind: dict(Counter(getattr(row, kind) for row in rows).most_common()) for kind in kinds},
        "median_fail_to_pass": tests[len(tests) // 2] if tests else None,
    }


# ------------------------------------------------------------------------------------------------------ funnel


def compute_summary(store: Store, sources: Sequence[str] = ()) -> dict[str, Any]:
    """Return the counts of the sources (of all when none is named), with the keys of `run`'s last line."""
    with store.read_transaction() as connection:
        rows = [row for row in connection.execute(text(_CHANGES)) if not sources or row.source in sources]
        made = [row for row in connection.execute(text(_DERIVED_TASKS)) if not sources or row.source in sources]
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


_DERIVED_TASKS = "SELECT source, kind, certificate FROM derivations WHERE task IS NOT NULL"
_CHANGES = """SELECT source, repo, change_kind, size, candidate, environment,
                        verification, verdict, task, certificate, rejected_by, reason
                 FROM changes"""
_STAGE_OUTPUTS = {
    Stage.MINE: "candidate",
    Stage.BUILD: "environment",
    Stage.VERIFY: "verification",
    Stage.JUDGE: "verdict",
    Stage.DERIVE: "task",
    Stage.CERTIFY: "certificate",
}


def compute_funnel(store: Store, sources: Sequence[str] = (), repo: str | None = None) -> list[dict[str, Any]]:
    """Return per stage the numbers of changes in, out and waiting, and of rejections by reason, most frequent first."""
    with store.read_transaction() as connection:
        every = connection.execute(text(_CHANGES)).all()
    rows = [row for row in every if (not sources or row.source in sources) and repo in (None, row.repo)]
    found, came, made = [], len(rows), list(_STAGE_OUTPUTS.values())
    for at, stage in enumerate(_STAGE_OUTPUTS):
        # a change of a later stage has passed: one derived before the judge existed has no verdict
        passed = sum(any(getattr(row, further) is not None for further in made[at:]) for row in rows)
        reasons = Counter(row.reason for row in rows if row.rejected_by == stage)
        waiting = came - passed - reasons.total()
        rejected = dict(sorted(reasons.items(), key=lambda item: (-item[1], item[0])))
        found.append({"stage": stage.value, "in": came, "out": passed, "waiting": waiting, "rejected": rejected})
        came = passed
    return found


def compute_funnel_by(
    store: Store, by: Literal["change_kind", "size", "repo"], sources: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Return for each kind of change (or size, or repository) how many passed each stage, most frequent first."""
    with store.read_transaction() as connection:
        rows = [row for row in connection.execute(text(_CHANGES)) if not sources or row.source in sources]
    counted: dict[str, Counter[str]] = {}
    for row in rows:
        came = [made for made in _STAGE_OUTPUTS.values() if getattr(row, made) is not None]
        counted.setdefault(getattr(row, by) or "-", Counter()).update(["mined", *came])
    return [
        {by: name, **{made: of[made] for made in ("mined", *_STAGE_OUTPUTS.values())}}
        for name, of in sorted(counted.items(), key=lambda item: (-item[1]["mined"], item[0]))
    ]


def find_examples(store: Store, sources: Sequence[str] = (), repo: str | None = None) -> dict[tuple[str, str], str]:
    """Return (stage, reason) -> the newest change that was rejected so."""
    with store.read_transaction() as connection:
        rows = connection.execute(text(_REJECTED)).all()
    chosen = [row for row in rows if (not sources or row.source in sources) and repo in (None, row.repo)]
    return {(row.rejected_by, row.reason): row.name for row in chosen}


_REJECTED = "SELECT source, repo, name, rejected_by, reason FROM changes WHERE reason IS NOT NULL ORDER BY merged_at"


# ------------------------------------------------------------------------------------------------------ lookup


def resolve_task(store: Store, word: str) -> Task:
    """Return the task of a name, an id or an unambiguous beginning of one.

    Raises:
        InputError: there is none, or more than one.
    """
    with store.read_transaction() as connection:
        found = {
            row.id: row.name for row in connection.execute(_MATCHING_TASKS, {"word": word, **_build_like_pattern(word)})
        }
        current = {row.id for row in connection.execute(_CURRENT_TASKS, {"keys": list(found)})} if found else set()
    if word not in found and len(current) == 1:
        return store.get(Task, current.pop())  # superseded chains of the change do not make its name ambiguous
    return store.get(Task, _require_single(found, word, "task"))


def resolve_change(store: Store, word: str) -> PullRequest:
    """Return the change of a name (its own or a task's), or of the id of any of its records or its beginning.

    Raises:
        InputError: there is none, or more than one.
    """
    with store.read_transaction() as connection:
        query = text("SELECT pull_request, source, name FROM changes WHERE name = :word")
        found = {row.pull_request: f"{row.name} of {row.source}" for row in connection.execute(query, {"word": word})}
        if not found:
            named = connection.execute(_MATCHING_TASKS, {"word": word, **_build_like_pattern(word)})
            found = {_list_ancestors(connection, row.id)[-1]: row.name for row in named}
        if not found:
            found = _find_changes_by_id(connection, word)
    return store.get(PullRequest, _require_single(found, word, "change"))


_MATCHING_TASKS = text("SELECT id, name FROM task WHERE name = :word OR id LIKE :start ESCAPE '!'")
_CURRENT_TASKS = text("SELECT id FROM tasks WHERE id IN :keys").bindparams(bindparam("keys", expanding=True))


def _find_changes_by_id(connection: Connection, word: str) -> dict[str, str]:
    found = {}
    for kind, (row, _) in RECORD_TABLES.items():
        whole = get_table(row)
        if "parent" not in whole.c and kind is not PullRequest:
            continue
        ids = connection.execute(select(whole.c.id).where(whole.c.id.startswith(word, autoescape=True)).limit(9))
        for key in ids.scalars().all():
            oldest = [key, *_list_ancestors(connection, key)][-1]
            found[oldest] = f"{kind.__name__} {key[:12]}"
    return found


def _build_like_pattern(word: str) -> dict[str, str]:
    escaped = word.replace("!", "!!").replace("%", "!%").replace("_", "!_")
    return {"start": f"{escaped}%"}


def _require_single(found: dict[str, str], word: str, what: str) -> str:
    if not found:
        raise InputError(f"there is no {what} {word}", advice="mergemill tasks list and mergemill sql list them")
    if word in found or len(found) == 1:
        return word if word in found else next(iter(found))
    matches = ", ".join(f"{key[:16]} ({name})" for key, name in sorted(found.items())[:5])
    raise InputError(f"{word} is ambiguous, {len(found)} {what}s match: {matches}")


def _list_ancestors(connection: Connection, key: str) -> list[str]:
    """Return the ids of a record's ancestors, its parent first, its change last."""
    above: list[str] = []
    while True:
        for row, _ in RECORD_TABLES.values():
            whole = get_table(row)
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


def explain_change(store: Store, change: PullRequest) -> dict[str, Any]:
    """Return all events, tasks, tags and attempts of one change, oldest event first, superseded chains included."""
    with store.read_transaction() as connection:
        key = {"source": change.source, "name": change.name}
        events = [dict(row) for row in connection.execute(_EVENTS, key).mappings()]
        ids = [row.id for row in connection.execute(_TASK_IDS, key)]
        published = connection.execute(_PUBLISHED, {"id": change.id}).first()
        tags = _load_tags(connection, change.id)
        verification = connection.execute(_VERIFIED, {"id": change.id}).scalar()
        verdict = _load_verdict(connection, verification) if verification else None
    published_verdict: PublishedVerdict | None = None
    if published and published.task:
        published_verdict = store.get(Task, published.task).published
    elif published and published.rejection:
        published_verdict = store.get(Rejection, published.rejection).published
    for event in events:
        event["ok"] = bool(event["ok"])
        if event["kind"] is None:
            del event["kind"]
    return {
        "name": change.name,
        "source": change.source,
        "events": events,
        "tasks": ids,
        "published": _dump_published(published_verdict),
        "tags": tags,
        "verdict": verdict,
        "attempts": [one.model_dump(mode="json") for one in load_attempts(store, change)],
    }


def _load_tags(connection: Connection, change: str) -> dict[str, Any] | None:
    """Return the tags of a change (id), or None for one mined before tags existed."""
    body = connection.execute(_TAGS_OF, {"id": change}).scalar()
    return Tags.model_validate_json(body).model_dump(mode="json", exclude={"parent", "name"}) if body else None


def _load_verdict(connection: Connection, verification: str) -> dict[str, Any] | None:
    """Return the newest verdict on a verification (id), or None for an unjudged one."""
    body = connection.execute(_VERDICT_OF, {"id": verification}).scalar()
    return Verdict.model_validate_json(body).model_dump(mode="json", exclude=_CHAIN_FIELDS) if body else None


_CHAIN_FIELDS = {"parent", "candidate", "name"}
_VERDICT_OF = text("SELECT body FROM verdict WHERE parent = :id ORDER BY seq DESC LIMIT 1")
_VERIFIED = text("SELECT verification FROM changes WHERE pull_request = :id")
_TAGS_OF = text("SELECT g.body FROM change h JOIN tagging g ON g.id = h.tagging WHERE h.pull_request = :id")


def find_rejection_log(store: Store, change: PullRequest) -> str | None:
    """Return the artifact hash of the log of the change's current rejection, or None."""
    with store.read_transaction() as connection:
        row = connection.execute(_PUBLISHED, {"id": change.id}).first()
    return store.get(Rejection, row.rejection).log if row and row.rejection else None


_EVENTS = text("""SELECT stage, ok, reason, detail, seconds, at, kind FROM event
                  WHERE source = :source AND name = :name ORDER BY seq""")
_TASK_IDS = text("SELECT id FROM tasks WHERE source = :source AND change_name = :name ORDER BY name, id")
_PUBLISHED = text("SELECT task, rejection FROM changes WHERE pull_request = :id")


def _dump_published(published: PublishedVerdict | None) -> dict[str, Any] | None:
    return published.model_dump(mode="json") if published else None
