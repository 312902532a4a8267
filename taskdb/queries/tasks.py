"""Queries of the command line: tasks, funnel, why. Results are JSON data with the keys of docs/guide/query/json.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import Connection, Select, Subquery, and_, bindparam, column, func, or_, select, table, text

from core.errors import InputError
from taskdb import counts
from taskdb.artifacts import Artifacts
from taskdb.queries.attempts import read_attempts
from taskdb.queries.derivation_counts import count_of_environment
from taskdb.queries.runs import read_runs
from taskdb.queries.task_filters import TASKS as _TASKS
from taskdb.queries.task_filters import TaskFilters, keep_queries
from taskdb.records import (
    Candidate,
    Certificate,
    Environment,
    Kind,
    PublishedVerdict,
    PullRequest,
    Record,
    Rejection,
    RunVariant,
    Stage,
    Task,
    Verification,
)
from taskdb.records.audits import Audit
from taskdb.records.tags import Tags
from taskdb.records.verdicts import Verdict
from taskdb.schema import search
from taskdb.schema.batches import execute_in_batches, split_batches
from taskdb.schema.collation import ByteOrder
from taskdb.schema.columns import CHANGE_COLUMNS, TASK_COLUMNS, TASK_LISTING
from taskdb.schema.record_tables import RECORDS_WITHOUT_CHANGE, TABLE_NAMES, get_record_clause
from taskdb.schema.word_lists import match_words
from taskdb.store import Store, load_field, load_record, read_record, read_records

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

# ------------------------------------------------------------------------------------------------------- tasks


def list_tasks(
    store: Store,
    filters: TaskFilters,
    limit: int | None = None,
    after: str | None = None,
    *,
    columns: Sequence[str] = LIST_KEYS,
) -> list[dict[str, Any]]:
    """Return tasks of current lineages, newest change first, then by name.

    Args:
        store: the database.
        filters: the tasks to select.
        limit: greatest number; None for all.
        after: name or id of a task: the list continues behind it.
        columns: some of TASK_COLUMNS, in the order of the keys of a row.

    Raises:
        InputError: there is no task `after`.
    """
    query = _build_list_query(filters, tuple(columns)).limit(limit)
    with store.read_transaction() as connection:
        if after is not None:
            query = _continue_after(query, _find_position(connection, after))
        return [dict(zip(columns, row, strict=True)) for row in connection.execute(query)]


@keep_queries
def _build_list_query(filters: TaskFilters, columns: tuple[str, ...]) -> Select[Any]:
    return filters.apply(select(*(_TASKS.c[name] for name in columns))).order_by(*_NEWEST_FIRST)


_NEWEST_FIRST = (_TASKS.c.created_at.desc(), _TASKS.c.name, _TASKS.c.id)


def _find_position(connection: Connection, word: str) -> tuple[str, str, str]:
    """Return where a task (name or id) stands in the list: date, name and id."""
    row = connection.execute(_POSITION, {"word": word}).first()
    if row is None:
        raise InputError(f"there is no task {word}", advice="mergemill tasks list lists them")
    return row.created_at, row.name, row.id


_POSITION = text("""SELECT created_at, name, id FROM tasks WHERE id = :word OR name = :word
                    ORDER BY CASE WHEN id = :word THEN 0 ELSE 1 END, created_at, id DESC LIMIT 1""")
"""Of several tasks of the same name, the list continues behind the last."""


def _continue_after(query: Select[Any], position: tuple[str, str, str]) -> Select[Any]:
    at, name, key = position
    # Among those that are not newer; written so that the date bounds the part of the index that is read.
    behind = or_(_TASKS.c.created_at < at, _TASKS.c.name > name, and_(_TASKS.c.name == name, _TASKS.c.id > key))
    return query.where(_TASKS.c.created_at <= at, behind)


def count_tasks(store: Store, filters: TaskFilters) -> int:
    """Return the number of selected tasks."""
    query = filters.apply(select(func.count()).select_from(_TASKS))
    with store.read_transaction() as connection:
        return int(connection.execute(query).scalar_one())


def iter_tasks(
    store: Store,
    filters: TaskFilters,
    batch: int = 200,
    is_wanted: Callable[[Mapping[str, Any]], bool] = lambda _: True,
) -> Iterator[tuple[Task, Certificate | None, dict[str, Any]]]:
    """Yield tasks as records, each with its certificate or None and its row of the view `tasks`, by name (its bytes).

    Rows come from a cursor of the server and records in batches, so that memory does not grow with the number of
    tasks. `is_wanted`: whether the task of a row is yielded.
    """
    # The order of text depends on the locale of a database, that of bytes does not.
    by_name = (ByteOrder(_TASKS.c.name), ByteOrder(_TASKS.c.id))
    query = filters.apply(select(*(_TASKS.c[name] for name in TASK_COLUMNS))).order_by(*by_name)
    with store.read_transaction() as connection:
        rows = connection.execution_options(yield_per=batch).execute(query)
        for part in rows.partitions(batch):
            some = [task for row in part if is_wanted(task := dict(zip(TASK_COLUMNS, row, strict=True)))]
            tasks = store.get_many(Task, [row["id"] for row in some])
            certificates = store.get_many(Certificate, [row["certificate"] for row in some if row["certificate"]])
            for row in some:
                yield tasks[row["id"]], certificates.get(row["certificate"]), row


def iter_mirrors(store: Store, filters: TaskFilters) -> Iterator[tuple[str, str, str]]:
    """Yield id, repository and the mirrored change's repository of each selected task that mirrors a change."""
    query = filters.apply(select(_TASKS.c.id)).where(_TASKS.c.kind == Kind.MIRRORED.value)
    with store.read_transaction() as connection:
        keys = list(connection.execute(query).scalars())
    for part in split_batches(keys, 1000):
        for task in store.get_many(Task, part).values():
            if task.mirror:
                yield task.id, task.repo, task.mirror.repo


def iter_families(store: Store, filters: TaskFilters) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield repository and candidates (ids) of each task; only combined tasks have several candidates."""
    query = filters.apply(select(_TASKS.c.repo, _TASKS.c.candidate, _TASKS.c.kind, _TASKS.c.id))
    with store.read_transaction() as connection:
        rows = connection.execution_options(yield_per=1000).execute(query)
        for part in rows.partitions(1000):
            combined = store.get_many(Task, [row.id for row in part if row.kind == Kind.COMBINED])
            for row in part:
                others = combined[row.id].other_candidates if row.id in combined else ()
                yield row.repo, (row.candidate, *others)


@dataclass(frozen=True, kw_only=True)
class RolloutCounts:
    """Rollouts of a plan: results, how many of these resolved the task, and infrastructure failures."""

    results: int = 0
    resolved: int = 0
    failures: int = 0


def count_rollouts(store: Store, plans: Sequence[str]) -> dict[str, RolloutCounts]:
    """Return the counts of those plans (keys) that have rollouts."""
    with store.read_transaction() as connection:
        rows = list(execute_in_batches(connection, _ROLLOUTS, list(plans)))
    return {
        row.plan: RolloutCounts(
            results=int(row.n - row.failures), resolved=int(row.resolved), failures=int(row.failures)
        )
        for row in rows
    }


def find_gold_log(store: Store, repo: str) -> str | None:
    """Return the log (artifact hash) of a gold run of a repository's newest verification, None where there is none."""
    with store.read_transaction() as connection:
        log = connection.execute(_NEWEST_VERIFICATION, {"repo": repo}).scalar()
    if log is None:
        return None
    runs = store.get(Verification, log).runs
    return next((run.log for run in runs if run.variant is RunVariant.GOLD and run.killed_by is None), None)


_NEWEST_VERIFICATION = text("""SELECT v.id FROM verification v JOIN candidate c ON c.id = v.candidate
                               WHERE c.repo = :repo ORDER BY v.seq DESC LIMIT 1""")
_ROLLOUTS = text("""SELECT plan, count(*) AS n, sum(CASE WHEN resolved THEN 1 ELSE 0 END) AS resolved,
                           sum(CASE WHEN status = 'infrastructure' THEN 1 ELSE 0 END) AS failures
                    FROM rollout WHERE plan IN :keys GROUP BY plan""").bindparams(bindparam("keys", expanding=True))


def find_shared_name(store: Store, filters: TaskFilters) -> tuple[str, list[str]] | None:
    """Return a name that several tasks have, and the source of each; None where names are unique."""
    names = filters.apply(select(_TASKS.c.name)).group_by(_TASKS.c.name).having(func.count() > 1)
    with store.read_transaction() as connection:
        name = connection.execute(names.order_by(_TASKS.c.name).limit(1)).scalar()
        if name is None:
            return None
        sources = filters.apply(select(_TASKS.c.source)).where(_TASKS.c.name == name).order_by(_TASKS.c.source)
        return str(name), list(connection.execute(sources).scalars())


def load_tasks(store: Store, filters: TaskFilters) -> list[tuple[Task, Certificate | None]]:
    """Return tasks as records, each with its certificate or None."""
    return [(task, certificate) for task, certificate, _ in iter_tasks(store, filters)]


def search_tasks(
    store: Store, words: Sequence[str], filters: TaskFilters, limit: int | None = None
) -> list[dict[str, Any]]:
    """Return tasks whose name, repository or statement contains all words or words that begin so, best match first.

    Rows have the keys of `list_tasks` and `snippet`, the part of the statement around the first match. A match in the
    name or repository counts ten times a match in the statement.
    """
    with store.read_transaction() as connection:
        match = search.build_match(connection, words)
        if match is None:
            return []
        query = _build_search_query(filters, search.get_hits(connection)).limit(limit)
        rows = connection.execute(query, {"words": match}).all()
        statements = dict(search.read_statements(connection, [row.task for row in rows]))
    return [
        dict(zip(LIST_KEYS, row, strict=False)) | {"snippet": search.make_snippet(statements[row.task], words)}
        for row in rows
    ]


@keep_queries
def _build_search_query(filters: TaskFilters, hits: Subquery) -> Select[Any]:
    query = select(*(TASK_LISTING.c[name] for name in LIST_KEYS), TASK_LISTING.c.task)
    joined = query.join_from(TASK_LISTING, hits, hits.c.task == TASK_LISTING.c.task)
    order = (hits.c.badness, TASK_LISTING.c.created_at.desc(), TASK_LISTING.c.name)
    return filters.apply(joined, dict(TASK_LISTING.c)).order_by(*order)


def look_up_task(store: Store, artifacts: Artifacts, word: str) -> tuple[Task, dict[str, Any]]:
    """Return a task and all that is shown of it, patches as text. `how_failed`: test -> how it failed before.

    Raises:
        InputError: as `resolve_task`, or a patch is missing.
    """
    with store.read_transaction() as connection:
        task = _resolve_task(connection, word)
        row = connection.execute(_LISTED_ROW, {"key": task.id}).mappings().first()
        lineage = connection.execute(_LINEAGE_OF_TASK, {"parent": task.parent, "candidate": task.candidate}).one()
        tags = _dump_tags(connection, lineage)
        verdict = _dump_verdict(connection, lineage)
        is_verified = lineage.environment not in (None, task.parent)
        verification = _dump_verification(connection, task.parent if is_verified else None)
        strength = _dump_strength(connection, task)
        certificate = _dump_certificate(connection, task)
    listed = dict(row) if row else _build_superseded_row(task)
    return task, listed | {
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
        "certificate": certificate,
        "strength": strength,
        "license": task.license,
        "source": task.source,
        "parents": _list_known(task.parent, lineage.environment, task.candidate, lineage.change),
        "tags": tags,
        "verdict": verdict,
        "verification": verification,
        "published": _dump_published(task.published),
        "environment": task.environment,
        "other_candidates": list(task.other_candidates),
        "mirror": task.mirror.model_dump(mode="json") if task.mirror else None,
        "setup_patch": artifacts.get_text(task.setup_patch) if task.setup_patch else None,
        "oracle": task.oracle.model_dump(mode="json") if task.oracle else None,
    }


_OF_CHANGE = "g.id AS tags, g.body AS tags_body, j.id AS verdict, j.body AS verdict_body"
_LINEAGE_OF_TASK = text(f"""
    SELECT (SELECT parent FROM verification WHERE id = :parent
            UNION ALL SELECT id FROM environment WHERE id = :parent) AS environment, c.parent AS change, {_OF_CHANGE}
    FROM candidate c LEFT JOIN changes h ON h.pull_request = c.parent LEFT JOIN tagging g ON g.id = h.tags
    LEFT JOIN verdict j ON j.seq = (SELECT max(seq) FROM verdict WHERE parent = :parent)
    WHERE c.id = :candidate""")  # noqa: S608 - constant columns
"""Ancestors of a task, the tags of its change and the newest verdict on its verification."""
_NEWEST_AUDIT = text("SELECT id FROM audit WHERE parent = :task ORDER BY seq DESC LIMIT 1")
_NEWEST_CERTIFICATE = text("SELECT id FROM certificate WHERE parent = :task ORDER BY seq DESC LIMIT 1")
_LISTED_ROW = select(*(_TASKS.c[name] for name in LIST_KEYS)).where(_TASKS.c.id == bindparam("key"))


def _build_superseded_row(task: Task) -> dict[str, Any]:
    """Return the listed keys of a task of a superseded lineage."""
    counts = {"n_fail_to_pass": len(task.FAIL_TO_PASS), "n_pass_to_pass": len(task.PASS_TO_PASS)}
    own = {name: getattr(task, name) for name in LIST_KEYS if name not in counts and name != "status"}
    return {name: (own | counts | {"status": "superseded", "kind": task.kind.value})[name] for name in LIST_KEYS}


def _count_values(connection: Connection, filters: TaskFilters, facet: str) -> dict[str, int]:
    # The counters have the answer without reading a task.
    if filters == TaskFilters():
        task_counts = counts.read_task_counts(connection, facet)
    else:
        whole = _TASKS.c[facet]
        query = filters.apply(select(whole.label("value"), func.count().label("n"))).group_by(whole)
        task_counts = {str(row.value): row.n for row in connection.execute(query) if row.value is not None}
    return dict(sorted(task_counts.items(), key=lambda item: (-item[1], item[0])))


def compute_stats(store: Store, filters: TaskFilters) -> dict[str, Any]:
    """Return the number of tasks in total and by status, kind, language, repository and licence."""
    facets = ("status", "kind", "language", "repo", "license")
    with store.read_transaction() as connection:
        counted = {facet: _count_values(connection, filters, facet) for facet in facets}
        tests = {int(value): n for value, n in _count_values(connection, filters, counts.HISTOGRAM).items()}
    total = sum(tests.values())
    return {"tasks": total, **counted, "median_fail_to_pass": _compute_median(tests, total)}


def _compute_median(histogram: Mapping[int, int], total: int) -> int | None:
    """Return the upper median of value -> number."""
    seen = 0
    for value in sorted(histogram):
        seen += histogram[value]
        if seen > total // 2:
            return value
    return None


# ------------------------------------------------------------------------------------------------------ funnel


def compute_summary(store: Store, sources: Sequence[str] = ()) -> dict[str, Any]:
    """Return the counts of the sources (of all when none is named), with the keys of `run`'s last line."""
    with store.read_transaction() as connection:
        rows = counts.read_funnel(connection, "", sources)
        derived = counts.read_funnel(connection, "kind", sources)
        spent = counts.read_funnel(connection, "seconds", sources)
    tasks, seconds, rejected = Counter[str](), Counter[str](), Counter[str]()
    for row in derived:
        if row.outputs == "task":
            tasks[row.value] += row.n
    for row in spent:
        seconds[row.value] += row.n
    for row in rows:
        if row.reason:
            rejected[row.reason] += row.n
    return {
        "mined": sum(row.n for row in rows),
        "candidates": _count_outputs(rows, Stage.MINE),
        "environments": _count_outputs(rows, Stage.BUILD),
        "verified": _count_outputs(rows, Stage.VERIFY),
        "tasks": dict(sorted(tasks.items())),
        "certified": sum(row.n for row in derived if row.outputs == "certified"),
        "rejected": dict(rejected.most_common()),
        # Counters are whole numbers, so seconds are counted in thousandths.
        "seconds": {stage.value: round(seconds[stage] / 1000, 1) for stage in Stage if stage in seconds},
    }


_PLACES = {stage: place for place, stage in enumerate(counts.OUTPUTS)}
"""Stage -> place of its output in the column `outputs` of counters."""


def _count_outputs(rows: Iterable[Any], stage: Stage) -> int:
    return sum(row.n for row in rows if row.outputs[_PLACES[stage]] != "-")


def compute_funnel(store: Store, sources: Sequence[str] = (), repo: str | None = None) -> list[dict[str, Any]]:
    """Return per stage the numbers of changes in, out and waiting, and of rejections by reason, most frequent first."""
    with store.read_transaction() as connection:
        rows = counts.read_funnel(connection, "" if repo is None else "repo", sources, repo)
    funnel, came = [], sum(row.n for row in rows)
    for place, stage in enumerate(counts.OUTPUTS):
        # a change of a later stage has passed: one derived before the judge existed has no verdict
        passed = sum(row.n for row in rows if row.outputs[place:].strip("-"))
        reasons = Counter[str]()
        for row in rows:
            if row.rejected_by == stage:
                reasons[row.reason] += row.n
        waiting = came - passed - reasons.total()
        rejected = dict(sorted(reasons.items(), key=lambda item: (-item[1], item[0])))
        funnel.append({"stage": stage.value, "in": came, "out": passed, "waiting": waiting, "rejected": rejected})
        came = passed
    return funnel


def compute_funnel_by(
    store: Store, by: Literal["change_kind", "size", "repo"], sources: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Return for each kind of change (or size, or repository) how many passed each stage, most frequent first."""
    with store.read_transaction() as connection:
        rows = counts.read_funnel(connection, by, sources)
    counted: dict[str, Counter[str]] = {}
    for row in rows:
        made = counted.setdefault(row.value, Counter())
        made["mined"] += row.n
        for place, column_name in enumerate(counts.OUTPUTS.values()):
            made[column_name] += row.n if row.outputs[place] != "-" else 0
    return [
        {by: name, **{made: of[made] for made in ("mined", *counts.OUTPUTS.values())}}
        for name, of in sorted(counted.items(), key=lambda item: (-item[1]["mined"], item[0]))
    ]


def find_examples(store: Store, sources: Sequence[str] = (), repo: str | None = None) -> dict[tuple[str, str], str]:
    """Return (stage, reason) -> the newest change that was rejected so."""
    examples = {}
    with store.read_transaction() as connection:
        rows = counts.read_funnel(connection, "" if repo is None else "repo", sources, repo)
        for stage, reason in sorted({(row.rejected_by, row.reason) for row in rows if row.reason}):
            query = select(_CHANGES.c.name).where(_CHANGES.c.rejected_by == stage, _CHANGES.c.reason == reason)
            if sources:
                query = query.where(match_words(_CHANGES.c.source, sources))
            if repo is not None:
                query = query.where(_CHANGES.c.repo == repo)
            newest = query.order_by(_CHANGES.c.merged_at.desc(), _CHANGES.c.name).limit(1)
            examples[stage, reason] = connection.execute(newest).scalar_one()
    return examples


_CHANGES = table("changes", *(column(name) for name in CHANGE_COLUMNS))


def list_changes(
    store: Store,
    limit: int,
    after: str | None = None,
    **wanted: str | None,
) -> list[dict[str, Any]]:
    """Return changes with all columns of the view, newest first, then by name.

    Args:
        store: the database.
        limit: greatest number.
        after: name of a change: the list continues behind it.
        **wanted: values of columns, such as `status`, `rejected_by`, `reason`, `repo` and `source`; None selects all.

    Raises:
        InputError: there is no change `after`.
    """
    query = select(*_CHANGES.c).where(*(_CHANGES.c[key] == value for key, value in wanted.items() if value is not None))
    query = query.order_by(_CHANGES.c.merged_at.desc(), _CHANGES.c.name).limit(limit)
    with store.read_transaction() as connection:
        if after is not None:
            named = select(_CHANGES.c.merged_at).where(_CHANGES.c.name == after)
            at = connection.execute(named.order_by(_CHANGES.c.merged_at)).scalar()
            if at is None:
                raise InputError(f"there is no change {after}", advice="mergemill sql lists them")
            # Written so that the date bounds the part of the index that is read.
            query = query.where(_CHANGES.c.merged_at <= at, or_(_CHANGES.c.merged_at < at, _CHANGES.c.name > after))
        return [dict(row) for row in connection.execute(query).mappings()]


# ------------------------------------------------------------------------------------------------------ lookup


def resolve_task(store: Store, word: str) -> Task:
    """Return the task of a name, an id or an unambiguous prefix of an id.

    Raises:
        InputError: none or several match.
    """
    with store.read_transaction() as connection:
        return _resolve_task(connection, word)


def _resolve_task(connection: Connection, word: str) -> Task:
    names = {
        row.id: row.name
        for row in connection.execute(_MATCHING_TASKS, {"word": word, "beyond": _build_upper_bound(word)})
    }
    current = set(names)
    if len(names) > 1:
        current = {row.id for row in execute_in_batches(connection, _CURRENT_TASKS, list(names))}
    # Superseded lineages of the change do not make its name ambiguous.
    if word not in names and len(current) == 1:
        return load_record(connection, Task, current.pop())
    return load_record(connection, Task, _require_single(names, word, "task"))


def resolve_change(store: Store, word: str) -> PullRequest:
    """Return the change of a name (its own or a task's), or of the id of any of its records or its beginning.

    Raises:
        InputError: none or several match.
    """
    with store.read_transaction() as connection:
        return _resolve_change(connection, word)


def _resolve_change(connection: Connection, word: str) -> PullRequest:
    names = {row.pull_request: f"{row.name} of {row.source}" for row in connection.execute(_NAMED, {"word": word})}
    if not names:
        named = connection.execute(_MATCHING_TASKS, {"word": word, "beyond": _build_upper_bound(word)})
        names = {connection.execute(_CHANGE_OF_TASK, {"id": row.id}).scalar_one(): row.name for row in named}
    if not names:
        names = _find_changes_by_id(connection, word)
    return load_record(connection, PullRequest, _require_single(names, word, "change"))


_NAMED = text("SELECT pull_request, source, name FROM changes WHERE name = :word")
_CHANGE_OF_TASK = text("SELECT c.parent FROM task t JOIN candidate c ON c.id = t.candidate WHERE t.id = :id")
_MATCHING_TASKS = text("""SELECT id, name FROM task WHERE name = :word
                          UNION SELECT id, name FROM task WHERE id >= :word AND id < :beyond""")
_CURRENT_TASKS = text("SELECT id FROM task_listing WHERE id IN :keys").bindparams(bindparam("keys", expanding=True))


def _find_changes_by_id(connection: Connection, word: str) -> dict[str, str]:
    changes = {}
    kinds: tuple[type[Record], ...] = (PullRequest, *_WITH_PARENT)
    for kind in kinds:
        whole = get_record_clause(kind)
        ids = connection.execute(
            select(whole.c.id).where(whole.c.id >= word, whole.c.id < _build_upper_bound(word)).limit(9)
        )
        for key in ids.scalars().all():
            oldest = [key, *_list_ancestors(connection, key)][-1]
            changes[oldest] = f"{kind.__name__} {key[:12]}"
    return changes


def _build_upper_bound(beginning: str) -> str:
    """Return a text behind all ids that begin so; ids are hexadecimal digits."""
    return f"{beginning}g"


def _require_single(names: dict[str, str], word: str, what: str) -> str:
    if not names:
        raise InputError(f"there is no {what} {word}", advice="mergemill tasks list and mergemill sql list them")
    if word in names or len(names) == 1:
        return word if word in names else next(iter(names))
    matches = ", ".join(f"{key[:16]} ({name})" for key, name in sorted(names.items())[:5])
    raise InputError(f"{word} is ambiguous, {len(names)} {what}s match: {matches}")


def _list_ancestors(connection: Connection, key: str) -> list[str]:
    """Return the ids of a record's ancestors, its parent first, its change last."""
    above: list[str] = []
    kinds: Sequence[type[Any]] = _WITH_PARENT
    while True:
        for kind in kinds:
            parent = connection.execute(_PARENT_OF[kind], {"id": key}).scalar()
            if parent is not None:
                above.append(parent)
                # The classes that a parent can have are known, so not every table is searched.
                key, kinds = parent, _PARENTS.get(kind, _WITH_PARENT)
                break
        else:
            return above


_WITH_PARENT = tuple(
    kind for kind in TABLE_NAMES if "parent" in kind.model_fields and kind not in RECORDS_WITHOUT_CHANGE
)
# Names of tables cannot be bound parameters; these are our own.
_PARENT_OF = {
    kind: text(f"SELECT parent FROM {TABLE_NAMES[kind]} WHERE id = :id")  # noqa: S608
    for kind in _WITH_PARENT
}
_PARENTS: dict[type[Any], Sequence[type[Any]]] = {
    Candidate: (),
    Tags: (),
    Environment: (Candidate,),
    Verification: (Environment,),
    Verdict: (Verification,),
    Task: (Verification, Environment, Candidate),
    Certificate: (Task,),
}
"""Class of a record -> classes of its parent among those that have a parent themselves; a rejection's may be any."""


# --------------------------------------------------------------------------------------------------------- why


def look_up_change(store: Store, word: str) -> tuple[PullRequest, dict[str, Any]]:
    """Return a change and its events, tasks, tags and attempts, oldest event first, superseded lineages included.

    Raises:
        InputError: as `resolve_change`.
    """
    with store.read_transaction() as connection:
        change = _resolve_change(connection, word)
        key = {"source": change.source, "name": change.name}
        events = [dict(row) for row in connection.execute(_EVENTS, key).mappings()]
        ids = [row.id for row in connection.execute(_TASK_IDS, key)]
        lineage = connection.execute(_LINEAGE_OF_CHANGE, {"id": change.id}).first()
        published = _load_published(connection, lineage) if lineage else None
        tags = _dump_tags(connection, lineage) if lineage else None
        verdict = _dump_verdict(connection, lineage) if lineage else None
        verification = _dump_verification(connection, lineage.verification if lineage else None)
        attempts = read_attempts(connection, lineage.environment, lineage.rejection) if lineage else ()
        runs = read_runs(connection, ids)
        environment = _dump_environment(connection, lineage.environment if lineage else None)
        mirrored = _read_mirrors(connection, ids)
    for event in events:
        event["ok"] = bool(event["ok"])
        if event["kind"] is None:
            del event["kind"]
    return change, {
        "name": change.name,
        "source": change.source,
        "events": events,
        "tasks": ids,
        "published": _dump_published(published),
        "tags": tags,
        "verdict": verdict,
        "verification": verification,
        "environment": environment,
        "attempts": [attempt.model_dump(mode="json") for attempt in attempts],
        "runs": runs,
        "mirrored": mirrored,
    }


def _read_mirrors(connection: Connection, tasks: Sequence[str]) -> list[dict[str, str]]:
    """Return name, mirrored change and its repository of those of some tasks (ids) that mirror a change."""
    rows = list(execute_in_batches(connection, _MIRRORED, list(tasks)))
    return [
        {"task": task.name, "change": task.mirror.name, "repo": task.mirror.repo}
        for task in read_records(connection, Task, rows)
        if task.mirror
    ]


_MIRRORED = text("SELECT id, body FROM task WHERE id IN :keys AND kind = 'mirrored' ORDER BY name, id").bindparams(
    bindparam("keys", expanding=True)
)

_LINEAGE_OF_CHANGE = text(f"""
    SELECT h.task, h.rejection, h.environment, h.verification, {_OF_CHANGE}
    FROM changes h LEFT JOIN tagging g ON g.id = h.tags
    LEFT JOIN verdict j ON j.seq = (SELECT max(seq) FROM verdict WHERE parent = h.verification)
    WHERE h.pull_request = :id""")  # noqa: S608 - constant columns


def _load_published(connection: Connection, lineage: Any) -> PublishedVerdict | None:
    """Return the published verdict on a change that its current task or rejection holds."""
    published: Any = None
    if lineage.task:
        published = load_field(connection, Task, lineage.task, "published")
    elif lineage.rejection:
        published = load_field(connection, Rejection, lineage.rejection, "published")
    return PublishedVerdict.model_validate(published) if published else None


def _dump_tags(connection: Connection, lineage: Any) -> dict[str, Any] | None:
    """Return the tags in a row of a lineage, or None for a change mined before tags existed."""
    if lineage.tags is None:
        return None
    return read_record(connection, Tags, lineage.tags, lineage.tags_body).model_dump(
        mode="json", exclude={"parent", "name"}
    )


def _dump_verdict(connection: Connection, lineage: Any) -> dict[str, Any] | None:
    """Return the verdict in a row of a lineage, or None for an unjudged one."""
    if lineage.verdict is None:
        return None
    return read_record(connection, Verdict, lineage.verdict, lineage.verdict_body).model_dump(
        mode="json", exclude=_CHAIN_FIELDS
    )


def _dump_verification(connection: Connection, key: str | None) -> dict[str, Any] | None:
    """Return what a verification left out, tests with their statuses by kind of run; None for no verification."""
    if key is None:
        return None
    record = load_record(connection, Verification, key)
    written = record.written_tests.model_dump(mode="json") if record.written_tests else None
    return {
        "dropped_canaries": record.dropped_canaries,
        "flaky": dict(record.list_flaky()),
        "weak_tests": [weak.model_dump(mode="json") for weak in record.weak_tests],
        "skipped_share": record.compute_skipped_share(),
        "written_tests": written,
        "incidental_files": _list_left_out(connection, record),
    }


def _dump_environment(connection: Connection, key: str | None) -> dict[str, Any] | None:
    """Return the image of an environment and the tasks that descend from it alone, by kind; None for none."""
    if key is None:
        return None
    image = load_field(connection, Environment, key, "image")
    return {"id": key, "image": image, "tasks": count_of_environment(connection, key)}


def _list_left_out(connection: Connection, verification: Verification) -> list[str]:
    """Return the incidental files that are not in the gold patch of the tasks."""
    if verification.gold_patch is None:
        return []
    return list(load_record(connection, Candidate, verification.candidate).incidental_files)


def _dump_strength(connection: Connection, task: Task) -> dict[str, Any]:
    """Return the number of controls and, where the newest audit measured it, the strength of the tests."""
    audit = connection.execute(_NEWEST_AUDIT, {"task": task.id}).scalar()
    measured = load_record(connection, Audit, audit).strength if audit else None
    return {**(measured or {}), "controls": len(task.controls), "fail_to_pass": len(task.FAIL_TO_PASS)}


def _dump_certificate(connection: Connection, task: Task) -> dict[str, Any] | None:
    """Return the newest certificate of a task without its machine, or None."""
    key = connection.execute(_NEWEST_CERTIFICATE, {"task": task.id}).scalar()
    if key is None:
        return None
    excluded = {"parent", "name", "image_digest", "machine"}
    return load_record(connection, Certificate, key).model_dump(mode="json", exclude=excluded)


def _list_known(*keys: str | None) -> list[str]:
    """Return the ids that are not None, each once."""
    return list(dict.fromkeys(key for key in keys if key))


_CHAIN_FIELDS = {"parent", "candidate", "name"}


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
