"""Exports of sets: a folder with the subjects as bundles, the rollouts of all runs, and the report of them.

Every file that is written here begins with the canary of the set; of the bundles, every file of a name in
`training_data.canaries.MARKED`.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import exporters
from core.errors import InputError, make_write_error
from core.text import format_count
from exporters.item import make_folder_name
from mergemill.bench.held_out import HELD_OUT
from mergemill.bench.metrics import Metric, OpenValue, Values
from mergemill.bench.octo_export import NO_CHECKLIST, explain_octo_exclusion, make_octo_row
from mergemill.bench.reports import ReportRequest, build_report, prepare_metrics, render_markdown
from mergemill.bench.results import SIZE, load_results, load_subjects
from mergemill.bench.review_material import ReviewMaterials
from mergemill.bench.running import check_subjects
from mergemill.bench.sets import CHANGED, SET_NAME, describe_set, read_set
from mergemill.bundles.export import ItemReader
from mergemill.execution.services import make_services
from mergemill.worlds.bundles.export import WorldExportRequest, export_worlds
from taskdb.queries.bench import SCENARIO, list_runs, name_run
from taskdb.queries.images import load_image_copies
from taskdb.queries.task_filters import TaskFilters
from taskdb.records import Score, Task
from taskdb.records.bench import BenchRun, BenchSet
from taskdb.records.rollouts import Rollout
from taskdb.records.worlds import Scenario
from taskdb.schema.measures import get_material
from taskdb.store import Store
from training_data.canaries import add_canary
from training_data.card import Card, Section, make_left_out_section, render_card, render_table
from verifiers.rewards import select_reward

if TYPE_CHECKING:
    from core.config import Settings
    from mergemill.execution.reporter import Reporter
    from mergemill.worlds.containers import OpenServer

BUNDLE_FORMAT = "harbor"
"""Format of the bundles of tasks and of worlds."""
OCTO = "octo"
"""Format of instruction tasks alone (`mergemill.bench.octo_rows`)."""
TASKS, WORLDS, PREDICTIONS = "tasks", "worlds", "predictions"
OCTO_NAME = "octo.jsonl"
"""File of the rows of OCTO."""
CARD_NAME, REPORT_NAME, RESULTS_NAME = "README.md", "report.md", "results.jsonl"
EXPORTED = frozenset({TASKS, WORLDS, PREDICTIONS, OCTO_NAME, CARD_NAME, REPORT_NAME, RESULTS_NAME, SET_NAME})
FIELDS = {"patch": "model_patch", "tests": "tests", "review": "review", "rollout": "rollout"}
"""Form of a submission -> field of a prediction."""
CHANGED_REASON = f"{CHANGED}: it is not as it was when the set was frozen"
CALLS = "calls"
"""Field of the calls of a scenario, which no other tool reads as a prediction."""
FACTS = (
    *("scaffold", "scaffold_version", "model", "checkpoint", "sampling", "attempt", "retry", "origin", "environment"),
    *("status", "reason", "value", "resolved", "requests", "prompt_tokens", "completion_tokens", "cost"),
    *("start_seconds", "agent_seconds", "grade_seconds", "seconds", "submission", "exchanges", "log", "at"),
)
"""Fields of a rollout in its row; `submission`, `exchanges` and `log` are hashes."""


@dataclass(frozen=True, kw_only=True)
class BenchExport:
    """Set that is exported, and how."""

    bench_set: BenchSet
    out: Path
    metrics: Sequence[Metric]
    skip: bool = False
    """Whether changed subjects are left out; otherwise they stop the export."""
    format: str = BUNDLE_FORMAT
    """BUNDLE_FORMAT or OCTO."""


def export_bench(
    export: BenchExport, settings: Settings, reporter: Reporter, open_server: OpenServer | None = None
) -> dict[str, Any]:
    """Write the folder of a set and return a summary.

    Args:
        export: set, folder and metrics.
        settings: database, store, and the engine in which scenarios are played first.
        reporter: receiver of messages and progress.
        open_server: function that starts the server of worlds on this machine; None for a container.

    Raises:
        InputError: subjects have changed since the set was frozen, the folder has other files, a rollout is missing, or
            the format can carry none of the subjects.
        MachineError: no engine answers, and the set has scenarios.
        Transient: the disk is full.
    """
    out = export.out.resolve()
    _check_folder(out)
    partial = out.with_name(f".{out.name}.partial")
    try:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        try:
            summary = _write(export, partial, settings, reporter, open_server)
            old = out.with_name(f".{out.name}.old")
            shutil.rmtree(old, ignore_errors=True)
            if out.exists():
                out.rename(old)
            partial.rename(out)
            shutil.rmtree(old, ignore_errors=True)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    except OSError as error:
        raise make_write_error(f"cannot write {out}", error, advice="free some space, then run it again") from error
    return summary | {"out": str(export.out)}


def _check_folder(out: Path) -> None:
    """Raise InputError where a folder has files, and is no export of a set and nothing else."""
    if not out.exists():
        return
    if not out.is_dir():
        raise InputError(f"{out} is not a folder", advice="choose another --out")
    names = {path.name for path in out.iterdir()}
    if names and (SET_NAME not in names or names - EXPORTED):
        raise InputError(f"{out} has files that are of no exported set", advice="choose another --out")
    if names:
        read_set(out / SET_NAME)


def flatten_columns(values: Values) -> dict[str, float | None]:
    """Return the columns of a rollout as numbers; a value that is open has its bounds in `NAME.low` and `NAME.high`."""
    columns: dict[str, float | None] = {}
    for name, value in values.items():
        if isinstance(value, OpenValue):
            columns |= {name: None, f"{name}.low": value.low, f"{name}.high": value.high}
        else:
            columns[name] = value
    return columns


class _SetWriter:
    """Writer of the files of a set into an empty folder. `left_out` counts: (kind, reason) -> subjects."""

    def __init__(self, store: Store, export: BenchExport, folder: Path, settings: Settings, reporter: Reporter) -> None:
        self._store, self._export, self._folder = store, export, folder
        self._settings, self._reporter = settings, reporter
        self._set = export.bench_set
        self._services = make_services(settings, engine=False)
        self.left_out: Counter[tuple[str, str]] = Counter()
        changed = check_subjects(store, self._set, skip=export.skip)
        if changed:
            self.left_out["subject", CHANGED_REASON] = len(changed)
        self.subjects = [subject for subject in self._set.subjects if subject.name not in changed]
        self.tasks = store.get_many(Task, self._list_ids(of_scenarios=False))
        self.scenarios = store.get_many(Scenario, self._list_ids(of_scenarios=True))
        self.runs = [run for run in list_runs(store) if run.parent == self._set.id]
        self._reported = load_subjects(store, self._set)
        self._materials = ReviewMaterials.open(settings.storage, self._services.artifacts)

    def _list_ids(self, *, of_scenarios: bool) -> list[str]:
        return [subject.id for subject in self.subjects if (subject.kind == SCENARIO) == of_scenarios]

    def write_text(self, name: str, text: str) -> None:
        """Write a text file with the canary."""
        marked = add_canary(text, self._set.canary, suffix=Path(name).suffix)
        (self._folder / name).write_text(marked, encoding="utf-8", errors="replace")

    def write_set(self) -> None:
        """Write the set, whose canary is its first field."""
        document = {"canary": self._set.canary, **describe_set(self._set)}
        (self._folder / SET_NAME).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")

    def write_tasks(self) -> None:
        """Write the bundle of the tasks that its format can carry, where there are any."""
        carried = self._select_carried(exporters.FORMATS[BUNDLE_FORMAT].explain_exclusion)
        if not carried:
            return
        reader = self._open_reader(carried)
        with (
            self._reporter.open_progress("task", len(carried)) as progress,
            closing(reader.iterate(progress)) as items,
        ):
            exporters.export_items(
                BUNDLE_FORMAT, items, self._folder / TASKS, self._services, load_lineage=reader.get_lineage
            )

    def write_octo_rows(self) -> None:
        """Write the rows of the instruction tasks.

        Raises:
            InputError: there is none.
        """
        carried = self._select_carried(explain_octo_exclusion)
        if self.scenarios:
            self.left_out[SCENARIO, NO_CHECKLIST] = len(self.scenarios)
        if not carried:
            raise InputError(f"{OCTO} can carry none of the subjects: {NO_CHECKLIST}")
        reader = self._open_reader(carried)
        with (
            self._reporter.open_progress("task", len(carried)) as progress,
            closing(reader.iterate(progress)) as items,
            _open_rows(self._folder / OCTO_NAME) as file,
        ):
            for item in items:
                lineage = [*reader.get_lineage(item.task), item.task]
                lineage += [item.certificate] if item.certificate else []
                row = make_octo_row(item.task, lineage, self._services.artifacts, self._set.canary)
                file.write(_dump_row(row))

    def _open_reader(self, tasks: Mapping[str, Task]) -> ItemReader:
        filters = TaskFilters(ids=tuple(sorted(tasks)))
        copies = load_image_copies(self._store)
        return ItemReader(self._store, filters, lambda _: True, copies, canary=self._set.canary)

    def _select_carried(self, explain_exclusion: Callable[[Task], str | None]) -> dict[str, Task]:
        """Return the tasks that a format can carry, by id; the others are counted as left out."""
        carried = {}
        # A writer of bundles ends with an error where it can carry no task, and a set has more than tasks.
        for key, task in self.tasks.items():
            if reason := explain_exclusion(task):
                self.left_out[task.kind.value, reason] += 1
            else:
                carried[key] = task
        return carried

    def write_scenarios(self, open_server: OpenServer | None) -> None:
        """Write the bundle of the worlds with the scenarios, where there are any."""
        if not self.scenarios:
            return
        request = WorldExportRequest(
            words=sorted({scenario.parent for scenario in self.scenarios.values()}),
            formats=(BUNDLE_FORMAT,),
            out=self._folder / WORLDS,
            scenarios=frozenset(scenario.name for scenario in self.scenarios.values()),
            canary=self._set.canary,
            with_held_out=True,
        )
        (worlds,) = export_worlds(request, self._settings, self._reporter, open_server)
        self.left_out.update({(SCENARIO, reason): number for reason, number in worlds["left_out"].items()})

    def write_results(self) -> int:
        """Write the rows of all rollouts, their submissions, and the report; return the number of rows."""
        if not self.runs:
            return 0
        number = 0
        prepare_metrics(self._store, self._materials, self._set, self._reported, self._export.metrics)
        (self._folder / PREDICTIONS).mkdir()
        with _open_rows(self._folder / RESULTS_NAME) as file:
            for run in self.runs:
                results = load_results(self._store, self._services.artifacts, run)
                rollouts = [rollout for name in sorted(results.rollouts) for rollout in results.rollouts[name]]
                for metric in self._export.metrics:
                    metric.begin_run([rollout for rollout in rollouts if rollout.value is not None])
                for rollout in rollouts:
                    file.write(_dump_row(self._describe_rollout(rollout, run, results.first_scores.get(rollout.id))))
                number += len(rollouts)
                self._write_predictions(run, rollouts)
        request = ReportRequest(runs=self.runs, metrics=self._export.metrics)
        self.write_text(REPORT_NAME, render_markdown(build_report(self._store, self._materials, request)))
        return number

    def _describe_rollout(self, rollout: Rollout, run: BenchRun, first: Score | None) -> dict[str, Any]:
        """Return the row of a rollout: set, subject, run, facts, hashes, and the columns of all metrics.

        `first`: the score that a rollout was stored with that was graded again since.
        """
        reported = self._reported[rollout.name]
        subject, task = reported.subject, self.tasks.get(reported.subject.id)
        columns: dict[str, float | None] = {}
        if rollout.value is not None:
            for metric in self._export.metrics:
                columns |= flatten_columns(metric.score(subject, rollout))
        facts = rollout.model_dump(mode="json", include=set(FACTS))
        return {
            "canary": self._set.canary,
            "set": self._set.name,
            "version": self._set.version,
            "set_id": self._set.id,
            "instance_id": subject.name,
            "subject_id": subject.id,
            "kind": subject.kind,
            "grading": subject.grading,
            "family": reported.family,
            **reported.origin,
            SIZE: get_material(task, "n_bytes") if task else None,
            "created_at": reported.created_at,
            "base_commit": task.base_commit if task else "",
            "image_digest": task.image_digest if task else "",
            "run": name_run(run),
            "run_id": run.id,
            "rollout_id": rollout.id,
            **{name: facts[name] for name in FACTS},
            "grader": rollout.score.grader if rollout.score else None,
            "first_value": first.value if first else None,
            "first_grader": first.grader if first else None,
            "leaks": [leak.name for leak in rollout.leaks],
            "columns": columns,
        }

    def _write_predictions(self, run: BenchRun, rollouts: Sequence[Rollout]) -> None:
        """Write the submissions of a run as SWE-bench's predictions, a file for each attempt.

        Calls of scenarios have files of their own, as no other tool reads them.
        """
        # Runs that differ in sampling alone have the same name.
        stem = f"{make_folder_name(name_run(run))}-{run.id[:8]}"
        groups: dict[str, list[Rollout]] = {}
        for rollout in rollouts:
            ending = f"-{CALLS}" if self._reported[rollout.name].subject.kind == SCENARIO else ""
            groups.setdefault(f"{stem}-{rollout.attempt}{ending}.jsonl", []).append(rollout)
        for name, group in sorted(groups.items()):
            with _open_rows(self._folder / PREDICTIONS / name) as file:
                for rollout in group:
                    file.write(_dump_row({"canary": self._set.canary, **self._make_prediction(rollout, run)}))

    def _make_prediction(self, rollout: Rollout, run: BenchRun) -> dict[str, Any]:
        """Return the row of a submission, under the field of its form; of a scenario the calls that were made."""
        text = self._services.artifacts.get_text(rollout.submission) if rollout.submission else ""
        task = self.tasks.get(rollout.parent)
        field = FIELDS[select_reward(task).submission] if task else CALLS
        named = {"instance_id": rollout.name, "model_name_or_path": name_run(run), "attempt": rollout.attempt}
        return named | {field: text}


def _write(
    export: BenchExport, folder: Path, settings: Settings, reporter: Reporter, open_server: OpenServer | None
) -> dict[str, Any]:
    with Store.open(settings.storage.db, create=False) as store:
        writer = _SetWriter(store, export, folder, settings, reporter)
        writer.write_set()
        if export.format == OCTO:
            writer.write_octo_rows()
        else:
            writer.write_tasks()
        n_rows = writer.write_results()
    # Rows of octo need no container, in which scenarios would be played.
    if export.format != OCTO:
        writer.write_scenarios(open_server)
    reasons = {f"{kind}: {reason}": number for (kind, reason), number in sorted(writer.left_out.items())}
    licenses = [task.license for task in writer.tasks.values()]
    writer.write_text(CARD_NAME, render_card(_build_card(export, writer.runs, n_rows, reasons, licenses)))
    return {
        "set": export.bench_set.name,
        "version": export.bench_set.version,
        "subjects": len(writer.subjects),
        "tasks": len(writer.tasks),
        "scenarios": len(writer.scenarios),
        "runs": len(writer.runs),
        "rows": n_rows,
        "left_out": reasons,
    }


def _open_rows(path: Path) -> IO[str]:
    return path.open("w", encoding="ascii", newline="\n")


def _dump_row(row: Mapping[str, Any]) -> str:
    return json.dumps(row) + "\n"


def _build_card(
    export: BenchExport, runs: Sequence[BenchRun], n_rows: int, left_out: Mapping[str, int], licenses: Sequence[str]
) -> Card:
    """Return the card of an exported set."""
    bench_set = export.bench_set
    kinds = Counter(subject.kind for subject in bench_set.subjects)
    held_out = f"**{HELD_OUT}: neither these subjects nor their families may be training data.**"
    canary = (
        f"Each file begins with `{bench_set.canary}`, in JSON as the first field. Data with this text is of this set."
    )
    subjects = "`octo.jsonl` has a row of OctoCodingBench for each instruction task"
    if export.format != OCTO:
        subjects = "`tasks` and `worlds` are bundles of Harbor"
    files = f"{subjects}, `predictions` has a file for each run and attempt, \
`results.jsonl` a row for each rollout."
    table = render_table(
        ("run", "k", "rollouts"),
        [(f"`{name_run(run)}`", run.runs, len(run.rollouts)) for run in runs],
        numbers=("k", "rollouts"),
    )
    counted = ", ".join(format_count(number, kind) for kind, number in sorted(kinds.items()))
    size = format_count(len(bench_set.subjects), "subject")
    return Card(
        title=f"{bench_set.name} {bench_set.version}",
        tags=("software-engineering", "benchmark"),
        licenses=licenses or ("NOASSERTION",),
        rows=n_rows,
        data_files={"test": RESULTS_NAME} if n_rows else None,
        sections=(
            Section("", (f"A frozen set of {size}: {counted}.", held_out if bench_set.held_out else "", canary, files)),
            Section("Runs", (table if runs else "None.", "`report.md` has their figures." if runs else "")),
            make_left_out_section(left_out, "subject"),
        ),
    )
