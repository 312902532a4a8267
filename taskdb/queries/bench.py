"""Queries over benches: frozen sets, runs on them, and the tasks and scenarios that sets hold out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from sqlalchemy import bindparam, select, text

from core.errors import InputError
from taskdb.queries.task_filters import TASKS
from taskdb.records import Kind, Record, Task
from taskdb.records.bench import JUDGE, BenchRun, BenchSet
from taskdb.records.rollouts import Rollout, Trajectory
from taskdb.records.worlds import Scenario
from taskdb.schema.batches import execute_in_batches
from taskdb.schema.word_lists import select_words
from taskdb.store import Store

R = TypeVar("R", bound=Record)
SCENARIO = "scenario"
"""Kind of the subjects that are scenarios of worlds."""
SHOWN_DIGITS = 12
_HASH = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True)
class HeldOut:
    """Subjects that are no training data, with their families.

    `ids` and `names` are those of tasks and scenarios. `families` are names of changes and worlds: earlier records of
    them have other ids.
    """

    ids: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    families: frozenset[str] = frozenset()

    def covers(self, key: str, name: str) -> bool:
        """Return whether a task or scenario, by id and name, is held out."""
        return key in self.ids or name in self.names or get_family(name) in self.families

    def covers_world(self, name: str, scenarios: Iterable[str]) -> bool:
        """Return whether a world is held out, by its name and the names of its scenarios."""
        return name in self.families or any(self.covers("", scenario) for scenario in scenarios)


def get_family(name: str) -> str:
    """Return the name of the change or world that the name of a task or scenario begins with."""
    return name.rpartition(".")[0] or name


def list_sets(store: Store) -> list[BenchSet]:
    """Return all sets, oldest first."""
    return list(store.load_all(BenchSet))


def list_runs(store: Store) -> list[BenchRun]:
    """Return the newest record of each run, by set, scaffold, model and checkpoint."""
    runs = {_get_run_key(run): run for run in store.load_all(BenchRun) if run.scaffold != JUDGE}
    return sorted(runs.values(), key=lambda run: (run.name, run.scaffold, run.model, run.checkpoint, run.runs, run.id))


def find_newest_run(store: Store, run: BenchRun) -> BenchRun | None:
    """Return the newest stored record of the same run, whatever its results are; None where there is none."""
    key = _get_run_key(run)
    records = [known for known in store.load_all(BenchRun) if known.parent == run.parent and _get_run_key(known) == key]
    return records[-1] if records else None


def _get_run_key(run: BenchRun) -> str:
    """Return the set and settings of a run as text, which all its records share."""
    return run.model_dump_json(exclude={"rollouts", "graders", "at", "left_out", "result", "cutoff"})


def list_run_results(store: Store, set_id: str) -> list[str]:
    """Return the results of all runs on a set, artifacts of their earlier records included, oldest first."""
    records = [run for run in store.load_all(BenchRun) if run.parent == set_id and run.scaffold != JUDGE]
    return list(dict.fromkeys(run.result for run in records if run.result))


def find_calibration(store: Store, set_id: str, judge: str, prompt: str) -> BenchRun | None:
    """Return the newest calibration of a judge on labelled findings of a set; None where there is none."""
    records = [
        run
        for run in store.load_all(BenchRun)
        if (run.parent, run.scaffold, run.model, run.scaffold_version) == (set_id, JUDGE, judge, prompt)
    ]
    return records[-1] if records else None


def resolve_set(store: Store, word: str) -> BenchSet:
    """Return the set of a name, the newest of its versions, or of an id or its beginning.

    Raises:
        InputError: there is none, or several ids begin so.
    """
    sets = list_sets(store)
    if named := [bench_set for bench_set in sets if bench_set.name == word]:
        return named[-1]
    return _choose([bench_set for bench_set in sets if word and bench_set.id.startswith(word)], "set", word)


def resolve_run(store: Store, word: str) -> BenchRun:
    """Return the run of an id, its beginning, or a name as `name_run` returns it.

    Raises:
        InputError: there is none, or several match.
    """
    runs = list_runs(store)
    matches = [run for run in runs if word and (run.id.startswith(word) or name_run(run) == word)]
    return _choose(matches, "run", word)


def name_run(run: BenchRun) -> str:
    """Return the name of a run for people: `SET/SCAFFOLD`, or `SET/SCAFFOLD/MODEL@CHECKPOINT` where a model acts."""
    words = [run.name, run.scaffold]
    if run.model:
        words.append(f"{run.model}@{run.checkpoint}" if run.checkpoint else run.model)
    return "/".join(words)


def _choose(matches: Sequence[R], noun: str, word: str) -> R:
    if not matches:
        raise InputError(f"there is no {noun} {word}", advice="mergemill bench list lists sets and runs")
    if len(matches) > 1:
        ids = ", ".join(match.id[:SHOWN_DIGITS] for match in matches[:5])
        raise InputError(f"{word} is ambiguous, {len(matches)} match: {ids}", advice="give the beginning of an id")
    return matches[0]


def find_held_out(store: Store) -> HeldOut:
    """Return the tasks and scenarios that sets of the database hold out.

    A family is held out as a whole: tasks of the change, variants, tasks that combine or mirror it, and all scenarios
    of a world.
    """
    subjects = [subject for bench_set in list_sets(store) if bench_set.held_out for subject in bench_set.subjects]
    if not subjects:
        return HeldOut()
    records = store.get_many(Task, [subject.id for subject in subjects])
    scenarios = store.get_many(Scenario, [subject.id for subject in subjects if subject.kind == SCENARIO])
    candidates = {candidate for task in records.values() for candidate in task.family}
    # Names of imported scenarios need not begin with that of their world.
    worlds = {scenario.world for scenario in scenarios.values()}
    families = worlds | {get_family(subject.name) for subject in subjects if subject.id not in scenarios}
    families |= {get_family(task.variant_of) for task in records.values() if task.variant_of}
    names = {subject.id: subject.name for subject in subjects} | _find_relatives(store, candidates, families)
    names |= _find_scenarios(store, families)
    return HeldOut(ids=frozenset(names), names=frozenset(names.values()), families=frozenset(families))


def find_held_out_sources(store: Store, sources: Sequence[Iterable[str]]) -> list[bool]:
    """Return for each of some conversations from files whether it is on a held-out task or scenario.

    Args:
        store: the database with the sets.
        sources: words by which the source of each conversation names it or its subject: names and ids of tasks and
            scenarios, ids of trajectories of the database (`ID` or `ID-NUMBER`), `SCENARIO/CONVERSATION` of a bundle of
            worlds. Others are of no subject that is known.
    """
    held_out = find_held_out(store)
    if not held_out.ids:
        return [False] * len(sources)
    named = [{part for word in words for part in (word, word.partition("/")[0])} for words in sources]
    keys = {word.partition("-")[0] for words in named for word in words}
    trajectories = store.get_many(Trajectory, sorted(key for key in keys if _HASH.fullmatch(key)))
    tasks = {key: trajectory.name for key, trajectory in trajectories.items()}
    return [any(held_out.covers(word, tasks.get(word.partition("-")[0], word)) for word in words) for words in named]


def find_current_tasks(store: Store, names: Sequence[str]) -> dict[str, set[str]]:
    """Return name -> ids of the tasks of current lineages that have one of some names."""
    ids_of: dict[str, set[str]] = {}
    query = select(TASKS.c.id, TASKS.c.name).where(TASKS.c.name.in_(select_words(names)))
    with store.read_transaction() as connection:
        for row in connection.execute(query):
            ids_of.setdefault(row.name, set()).add(row.id)
    return ids_of


def find_certified_tasks(store: Store, ids: Sequence[str]) -> frozenset[str]:
    """Return those of some ids of tasks that are certified."""
    query = select(TASKS.c.id).where(TASKS.c.id.in_(select_words(ids)), TASKS.c.certificate.is_not(None))
    with store.read_transaction() as connection:
        return frozenset(connection.execute(query).scalars())


def find_results(store: Store, plans: Sequence[str]) -> dict[str, Rollout]:
    """Return plan (key) -> its first rollout that is a result, for those of some plans that have any."""
    with store.read_transaction() as connection:
        rows = list(execute_in_batches(connection, _RESULTS, list(plans)))
    first: dict[str, str] = {}
    for row in sorted(rows, key=lambda row: row.seq):
        first.setdefault(row.plan, row.id)
    rollouts = store.get_many(Rollout, list(first.values()))
    return {plan: rollouts[key] for plan, key in first.items()}


_RESULTS = text("SELECT seq, id, plan FROM rollout WHERE plan IN :keys AND status <> 'infrastructure'").bindparams(
    bindparam("keys", expanding=True)
)


def _find_scenarios(store: Store, worlds: Iterable[str]) -> dict[str, str]:
    """Return id -> name of all scenarios of the worlds of some names, earlier versions among them."""
    with store.read_transaction() as connection:
        return {row.id: row.name for row in execute_in_batches(connection, _SCENARIOS, sorted(worlds))}


_SCENARIOS = text("SELECT id, name FROM scenario WHERE world IN :keys").bindparams(bindparam("keys", expanding=True))


def _find_relatives(store: Store, candidates: set[str], families: set[str]) -> dict[str, str]:
    """Return id -> name of the tasks that share a candidate with a family, or have its name."""
    view = TASKS.c
    of_several = (Kind.COMBINED.value, Kind.MIRRORED.value)
    with store.read_transaction() as connection:
        query = select(view.id, view.name, view.family, view.candidate, view.kind)
        rows = connection.execute(query).all()
    near = {row.id: row.name for row in rows if row.family in families or row.candidate in candidates}
    others = store.get_many(Task, [row.id for row in rows if row.kind in of_several and row.id not in near])
    return near | {key: task.name for key, task in others.items() if task.family & candidates}
