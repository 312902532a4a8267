"""A run of `mergemill simulate sft`: seeds, pre-filter, jobs, calls, steps, rows; everything lies in the output folder.

=====================  ==============================================================================
`run.json`             the options that the run was given: domain, profile, options, model, hashes of the seeds
`calls.jsonl`          ledger of answers; `prompts/` their prompts (`backends.llm.ledger`)
`seeds.jsonl`          the pre-filter's verdict on each seed
`trajectories.jsonl`   the conversations that passed, of which all rows are made; `pack.json` their domain
`dropped.jsonl`        the others, each with step, reason and detail
`FORMAT/`              rows, card, and `dataset_info.json` for LLaMA-Factory
=====================  ==============================================================================

All but the ledger is written again by each run, from the answers in the ledger. Conversations and rejections are then
added to the task database (`mergemill.simulation.records`).
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backends.llm.ledger import CALLS_NAME, LOCK_NAME, CallLedger, Pacer
from backends.llm.parallel import ParallelCalls, UsageTotals
from core.errors import InputError, MergemillError, UsageError, make_write_error
from mergemill import __version__
from mergemill.bench.held_out import MARK, refuse_seeds
from mergemill.execution.services import make_model
from mergemill.simulation.records import SimulationRecorder
from simulators.domains.pack import load_pack
from simulators.exports.card import DatasetFacts
from simulators.exports.formats import FORMATS
from simulators.exports.writer import FormatReport, write_exports
from simulators.jobs import SimulationJob, plan_jobs
from simulators.options import SimulationOptions, apply_profile, resolve_options
from simulators.post_processing.context import StepContext
from simulators.post_processing.draft import Draft, DroppedConversation
from simulators.post_processing.grams import load_gram_index
from simulators.post_processing.steps import PostProcessing
from simulators.prefilter import SeedVerdict, judge_by_rules
from simulators.prompting import ConversationPrompts
from simulators.seeds.reading import read_seeds
from simulators.seeds.seed import Seed
from simulators.simulation import JobAnswer, Simulator
from simulators.trajectory import ENVIRONMENT, SimulatedTrajectory, make_trajectory
from taskdb.artifacts import open_artifacts, require_writable_store
from taskdb.store import Store
from training_data.formats import ConversationFormat
from training_data.row_files import open_lines, replace_file

if TYPE_CHECKING:
    from core.config import Settings
    from mergemill.execution.reporter import Reporter

RUN_NAME = "run.json"
SEEDS_NAME = "seeds.jsonl"
TRAJECTORIES_NAME = "trajectories.jsonl"
DROPPED_NAME = "dropped.jsonl"
PACK_NAME = "pack.json"
ALL_FORMATS = tuple(row_format.name for row_format in FORMATS)


@dataclass(frozen=True, kw_only=True)
class SimulationRequest:
    """Options that a run is given, besides settings."""

    seeds: Path
    domain: str
    out: Path
    profile: str
    per_seed: int | None = None
    total: int | None = None
    formats: tuple[str, ...] = ALL_FORMATS
    seeds_license: str = ""
    with_held_out: bool = False
    """Whether conversations on held-out tasks may be seeds."""


def run_simulation(request: SimulationRequest, settings: Settings, reporter: Reporter) -> tuple[dict[str, Any], int]:
    """Simulate and write rows; return the summary and the exit code.

    A run that ended early, by whatever cause, is continued by the same request: answers come from the ledger.

    Raises:
        InputError: seeds, domain, a file of benchmarks or the output folder are not usable, or the endpoint rejects key
            or model.
        UsageError: no model is set, or options exclude each other.
        Transient: the disk is full.
    """
    options = resolve_options(request.profile, settings.simulation)
    settings = apply_profile(request.profile, settings)
    formats = choose_formats(request.formats)
    pack = load_pack(request.domain)
    benchmarks = load_gram_index(options.benchmarks)
    collection = read_seeds(request.seeds, license_id=request.seeds_license)
    seeds, n_held_out = refuse_seeds(
        collection.seeds, settings.storage, reporter.message, with_held_out=request.with_held_out
    )
    model = make_model(settings.llm, settings.host, temperature=options.temperature)
    if model is None:
        raise UsageError("a simulator is needed", advice="set --llm URL and --model NAME")
    check_folder(request.out)
    # A plan that cannot be carried out is an error before anything is paid.
    plan_jobs((), options, per_seed=request.per_seed, total=request.total)
    require_writable_store(settings.storage)
    with Store.open(settings.storage.db, writes=True) as store, CallLedger(request.out) as ledger:
        simulator = Simulator(
            model=model,
            ledger=ledger,
            pacer=Pacer(options.pause),
            options=options,
            pack=pack,
            prompts=ConversationPrompts(pack, options.prompt),
            answer_tokens=settings.llm.answer_tokens,
        )
        run = SimulationRun(
            request=request,
            settings=settings,
            simulator=simulator,
            reporter=reporter,
            formats=formats,
            store=store,
            n_held_out=n_held_out,
        )
        for problem in collection.problems:
            reporter.message(problem.format_line())
        summary, code = run.run(seeds, StepContext(pack=pack, options=options, benchmarks=benchmarks))
        if code:
            store.discard_if_empty()
    if collection.problems and not code:
        code = InputError.exit_code
    refused = len(collection.seeds) - len(seeds)
    return {**summary, "unread": len(collection.problems), "held_out": refused}, code


def choose_formats(names: Sequence[str]) -> tuple[ConversationFormat, ...]:
    """Return the formats of these names.

    Raises:
        UsageError: there is none of a name.
    """
    by_name = {row_format.name: row_format for row_format in FORMATS}
    unknown = [name for name in names if name not in by_name]
    if unknown or not names:
        raise UsageError(f"--format: {', '.join(unknown) or 'none'} is unknown", advice=f"of {', '.join(by_name)}")
    return tuple(by_name[name] for name in dict.fromkeys(names))


def check_folder(out: Path) -> None:
    """Check that a folder is new, empty or that of an earlier run.

    Raises:
        InputError: it is neither.
    """
    try:
        if out.exists() and (not out.is_dir() or (_has_files(out) and not (out / CALLS_NAME).exists())):
            raise InputError(
                f"{out} is no folder of an earlier run", advice="name a new folder, or the one to continue"
            )
    except OSError as error:
        raise InputError(f"cannot read {out}: {error.strerror}", advice="name another folder") from error


def _has_files(folder: Path) -> bool:
    """Return whether a folder has files but the ledger's lock, which a kill at the very start leaves."""
    return any(path.name != LOCK_NAME for path in folder.iterdir())


@dataclass(frozen=True, kw_only=True)
class SimulationRun:
    """A run, with its ledger open."""

    request: SimulationRequest
    settings: Settings
    simulator: Simulator
    reporter: Reporter
    formats: tuple[ConversationFormat, ...]
    store: Store
    n_held_out: int
    """Seeds that are conversations on held-out tasks."""

    def run(self, seeds: Sequence[Seed], context: StepContext) -> tuple[dict[str, Any], int]:
        """Return the summary and the exit code; see `run_simulation`."""
        started, totals = time.monotonic(), UsageTotals()
        self._write_run(seeds)
        verdicts = self._judge(seeds, totals)
        used = [verdict.seed for verdict in verdicts if verdict.reason is None]
        jobs = plan_jobs(used, self._options, per_seed=self.request.per_seed, total=self.request.total)
        answers, failures = self._simulate(jobs, totals)
        facts = self._make_facts(verdicts)
        processing = PostProcessing(context)
        reports = self._write(answers, verdicts, processing, facts)
        n_new = self._record()
        rejected = Counter(verdict.reason.value for verdict in verdicts if verdict.reason)
        summary = {
            "event": "summary",
            "environment": ENVIRONMENT,
            "domain": context.pack.name,
            "profile": self._options.profile,
            "seeds": len(seeds),
            "rejected_seeds": dict(rejected),
            "planned": len(jobs),
            "answered": len(answers),
            "earlier": sum(not answer.fresh and not answer.is_too_long for answer in answers),
            "left": len(jobs) - len(answers),
            "kept": facts.trajectories,
            "new": n_new,
            "dropped": dict(sorted(processing.dropped.items())),
            "steps": facts.steps,
            "rows": {name: report.rows for name, report in reports.items()},
            "left_out": {name: dict(report.left_out) for name, report in reports.items()},
            **asdict(totals),
            "cost": round(totals.cost, 6),
            "seconds": round(time.monotonic() - started, 3),
        }
        for line in describe_failures(failures):
            self.reporter.message(line)
        return summary, failures[0].exit_code if failures else 0

    @property
    def _options(self) -> SimulationOptions:
        return self.simulator.options

    def _judge(self, seeds: Sequence[Seed], totals: UsageTotals) -> list[SeedVerdict]:
        """Return the verdicts on all seeds.

        Raises:
            MergemillError: a seed has none because calls failed: the jobs depend on all of them.
        """
        if self._options.prefilter == "off":
            return [SeedVerdict(seed=seed) for seed in seeds]
        if self._options.prefilter == "rules":
            return [judge_by_rules(seed) for seed in seeds]
        failures: list[MergemillError] = []
        with self.reporter.open_progress("seed", len(seeds)) as progress:

            def report(seed: Seed, outcome: object) -> None:
                del seed
                progress.advance()
                if isinstance(outcome, MergemillError):
                    failures.append(outcome)

            calls = ParallelCalls(
                work=self.simulator.judge,
                workers=self.settings.cluster.workers,
                report=report,
                stop=self.simulator.stop,
            )
            outcomes = calls.run(seeds)
        verdicts = []
        for outcome in outcomes:
            if isinstance(outcome, tuple):
                totals.add(outcome[1])
                verdicts.append(outcome[0])
                self.reporter.event({"event": "seed", **outcome[0].to_json()})
        # All verdicts are needed, since the number of jobs for each seed depends on how many seeds are used.
        if failures:
            for line in describe_failures(failures):
                self.reporter.message(line)
            raise failures[0]
        return verdicts

    def _simulate(
        self, jobs: Sequence[SimulationJob], totals: UsageTotals
    ) -> tuple[list[JobAnswer], list[MergemillError]]:
        """Return the answers of all jobs in their order, and the failures of those that have none."""
        failures: list[MergemillError] = []
        with self.reporter.open_progress("conversation", len(jobs)) as progress:

            def report(job: SimulationJob, outcome: JobAnswer | MergemillError) -> None:
                progress.advance()
                if isinstance(outcome, MergemillError):
                    failures.append(outcome)
                    self.reporter.event(
                        {
                            "event": "problem",
                            "name": job.name,
                            "problem": type(outcome).__name__,
                            "detail": str(outcome),
                        }
                    )
                    return
                totals.add(outcome.meter)
                self.reporter.event(describe_answer(outcome))

            calls = ParallelCalls(
                work=self.simulator.simulate,
                workers=self.settings.cluster.workers,
                report=report,
                stop=self.simulator.stop,
            )
            outcomes = calls.run(jobs)
        return [outcome for outcome in outcomes if isinstance(outcome, JobAnswer)], failures

    def _write(
        self,
        answers: Sequence[JobAnswer],
        verdicts: Sequence[SeedVerdict],
        processing: PostProcessing,
        facts: DatasetFacts,
    ) -> dict[str, FormatReport]:
        out = self.request.out
        try:
            with open_lines(out / SEEDS_NAME) as write_seed:
                for verdict in verdicts:
                    write_seed(verdict.to_json())
            with (
                open_lines(out / TRAJECTORIES_NAME) as write_trajectory,
                open_lines(out / DROPPED_NAME) as write_dropped,
            ):
                for outcome in processing.process(self._iterate_drafts(answers)):
                    if isinstance(outcome, DroppedConversation):
                        write_dropped(describe_dropped(outcome))
                    else:
                        write_trajectory(self._make_trajectory(outcome).to_json())
        except OSError as error:
            raise make_write_error(
                f"cannot write to {out}", error, advice="free some space, then run it again"
            ) from error
        facts.steps = [
            {
                "step": count.name,
                "before": count.before,
                "repaired": count.repaired,
                "dropped": {reason.value: number for reason, number in sorted(count.dropped.items())},
                "after": count.after,
            }
            for count in processing.counts
        ]
        pack, options = self.simulator.pack, self._options
        return write_exports(read_trajectories(out), out, self.formats, pack=pack, options=options, facts=facts)

    def _record(self) -> int:
        """Add the records that the folder holds to the task database; return how many records are new."""
        out = self.request.out
        recorder = SimulationRecorder(
            store=self.store,
            artifacts=open_artifacts(self.settings.storage),
            domain=self.simulator.pack.name,
            profile=self._options.profile,
            simulator=self.simulator.model.name,
            pack=(out / PACK_NAME).read_bytes(),
        )
        n_new = recorder.add_conversations(read_trajectories(out))
        return n_new + recorder.add_rejections(read_lines(out / SEEDS_NAME), read_lines(out / DROPPED_NAME))

    def _iterate_drafts(self, answers: Sequence[JobAnswer]) -> Iterator[Draft]:
        """Yield the answers in the order of their jobs, each read from the ledger when it is needed."""
        for answer in answers:
            # A conversation that is too long has no answer in the ledger.
            line = self.simulator.ledger.find(answer.key) or {"text": "", "finish_reason": ""}
            yield Draft(
                job=answer.job,
                key=answer.key,
                answer=line["text"],
                finish_reason=line["finish_reason"],
                is_too_long=answer.is_too_long,
            )

    def _make_trajectory(self, draft: Draft) -> SimulatedTrajectory:
        return make_trajectory(
            draft,
            self.simulator.pack,
            self._options,
            model=self.simulator.model.name,
            prompt=self.simulator.prompts.version,
        )

    def _make_facts(self, verdicts: Sequence[SeedVerdict]) -> DatasetFacts:
        pack = self.simulator.pack
        return DatasetFacts(
            domain=pack.name,
            pack_version=pack.version,
            profile=self._options.profile,
            prompt=self.simulator.prompts.version,
            simulator=self.simulator.model.name,
            n_seeds_read=len(verdicts),
            rejected_seeds=Counter(verdict.reason.value for verdict in verdicts if verdict.reason),
            warnings={MARK: self.n_held_out} if self.n_held_out else {},
        )

    def _write_run(self, seeds: Sequence[Seed]) -> None:
        pack = self.simulator.pack
        run = {
            "kind": "mergemill-simulation",
            "mergemill": __version__,
            "environment": ENVIRONMENT,
            "domain": pack.name,
            "pack_version": pack.version,
            "options": asdict(self._options),
            "prompt": self.simulator.prompts.version,
            "model": self.simulator.model.name,
            "per_seed": self.request.per_seed,
            "total": self.request.total,
            "seeds": [seed.id for seed in seeds],
            **({"held_out": self.n_held_out} if self.n_held_out else {}),
        }
        held = {"name": pack.name, "version": pack.version, "policy": pack.policy, "tools": list(pack.tools.values())}
        try:
            replace_file(self.request.out / RUN_NAME, json.dumps(run, indent=1) + "\n")
            replace_file(self.request.out / PACK_NAME, json.dumps(held, indent=1, ensure_ascii=False) + "\n")
        except OSError as error:
            raise make_write_error(f"cannot write to {self.request.out}", error, advice="free some space") from error


def read_trajectories(out: Path) -> Iterator[SimulatedTrajectory]:
    """Yield the trajectories of a run's folder."""
    return map(SimulatedTrajectory.from_json, read_lines(out / TRAJECTORIES_NAME))


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of a file, a line each."""
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def describe_answer(answer: JobAnswer) -> dict[str, Any]:
    """Return the event of an answer."""
    return {
        "event": "conversation",
        "name": answer.job.name,
        "seed": answer.job.seed.id,
        "sample": answer.job.sample,
        "scenario": answer.job.scenario.name,
        "failure": answer.job.failure.name if answer.job.failure else None,
        "answer": answer.key or None,
        "fresh": answer.fresh,
        "prompt_tokens": answer.meter.prompt_tokens,
        "completion_tokens": answer.meter.completion_tokens,
        "cost": round(answer.meter.cost, 6),
        "seconds": round(answer.meter.seconds, 3),
    }


def describe_dropped(dropped: DroppedConversation) -> dict[str, Any]:
    """Return the line of `dropped.jsonl`."""
    return {
        "environment": ENVIRONMENT,
        "name": dropped.job.name,
        "seed": dropped.job.seed.id,
        "sample": dropped.job.sample,
        "step": dropped.step,
        "reason": dropped.reason.value,
        "detail": dropped.detail,
        "answer": dropped.key or None,
    }


def describe_failures(failures: Sequence[MergemillError]) -> list[str]:
    """Return a line for each kind of failure, with how often it came."""
    # An endpoint that is down fails thousands of calls in the same way.
    counts = Counter(error.format_line() for error in failures)
    return [f"{number} calls failed: {line}; the same command continues" for line, number in counts.most_common(3)]
