"""The steps from seeds to certified questions. The database is the queue: each processes its pending items."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from backends.llm.meter import UsageMeter
from core.errors import InputError
from core.files import read_text
from explorers.evolution.evolving import QuestionEvolver
from explorers.gates.assessing import assess_question
from explorers.gates.benchmarks import Benchmarks, read_benchmarks
from explorers.gates.subject import GateFailure, GateFindings, GateSubject
from explorers.model_requests import ExplorerRole
from explorers.questions.writing import QuestionWriter
from explorers.reasons import CURABLE
from explorers.search.tokens import normalize_text
from explorers.walking.walk import WALK_PROMPT, Walker
from mergemill.explore.seeds import read_seeds
from mergemill.explore.work import ExploreItem, ExploreWork
from taskdb.artifacts import Artifacts
from taskdb.queries.questions import (
    ChainRound,
    find_pending_questions,
    find_pending_walks,
    list_chains,
    list_comparable_questions,
    list_done_seeds,
)
from taskdb.records import Record
from taskdb.records.questions import (
    ExploreStep,
    Question,
    QuestionCertificate,
    Walk,
    compute_seed_id,
)

NAME_DIGITS = 8
"""Hex digits of the seed's id in the name of a walk."""


def make_walks(work: ExploreWork) -> None:
    """Walk from the seeds that have no walk."""
    options, corpus = work.settings.explore, work.corpus
    seeds = read_seeds(work.request.seeds, work.reader, options.draw)
    done = list_done_seeds(work.store, corpus, retry=work.request.retry)
    keys = {seed: compute_seed_id(corpus.id, seed) for seed in seeds}
    walker = Walker(corpus=work.reader, models=work.models, options=options)

    def name(seed: str) -> ExploreItem:
        return ExploreItem(parent=keys[seed], walk="", name=f"{corpus.name}-{keys[seed][:NAME_DIGITS]}")

    def walk(seed: str, meter: UsageMeter) -> Record:
        finished = walker.walk(seed, keys[seed], meter)
        return Walk(
            parent=corpus.id,
            corpus=corpus.name,
            name=name(seed).name,
            seed=seed,
            facts=finished.facts,
            pages=finished.pages,
            steps=work.artifacts.put(finished.steps),
            n_calls=finished.n_calls,
            model=work.models.names[ExplorerRole.WALKER],
            prompt=WALK_PROMPT,
        )

    # A seed whose walk was rejected stays done: the same model would take the same walk from the ledger.
    pending = [seed for seed in seeds if keys[seed] not in done and work.request.includes(name(seed).name, seed)]
    work.process(ExploreStep.WALK, pending, name=name, work=walk)


def write_questions(work: ExploreWork) -> None:
    """Write a question for each walk that has none."""
    writer = QuestionWriter(corpus=work.reader, models=work.models)
    walks = find_pending_walks(work.store, work.corpus, retry=work.request.retry)
    work.process(
        ExploreStep.WRITE,
        [walk for walk in walks if work.request.includes(walk.name, walk.id)],
        name=lambda walk: ExploreItem(parent=walk.id, walk=walk.id, name=f"{walk.name}.0"),
        work=writer.write,
    )


# ---------------------------------------------------------------------------------------------------------- evolution


@dataclass(frozen=True, kw_only=True)
class NextRound:
    """A round that is to be made. `problem`: why the round before was rejected, or empty."""

    walk: Walk
    base: Question
    number: int
    problem: str


def plan_next_round(rounds: Sequence[ChainRound], most: int) -> tuple[str, int, str] | None:
    """Return base (id), number and problem of the next round of a chain; None where there is none to make.

    The next round is made of the last question that is certified or was rejected for a reason that a round may cure.
    A chain whose first question is rejected for another reason has ended.
    """
    if any(chain.status == "waiting" for chain in rounds) or rounds[-1].round >= most:
        return None
    usable = [chain for chain in rounds if chain.question and (chain.status == "certified" or chain.reason in CURABLE)]
    if not usable or usable[0].round != 0:
        return None
    base, last = usable[-1], rounds[-1]
    return base.question, last.round + 1, "" if last.status == "certified" else last.reason or ""


def evolve_questions(work: ExploreWork) -> int:
    """Make the next round of each chain that may have one; return how many there were."""
    evolver = QuestionEvolver(corpus=work.reader, models=work.models)
    pending = [
        next_round
        for next_round in _plan_rounds(work)
        if work.request.includes(next_round.walk.name, next_round.base.id)
    ]

    def name(item: NextRound) -> ExploreItem:
        new = f"{item.walk.name}.{item.number}"
        return ExploreItem(parent=item.base.id, walk=item.walk.id, name=new, round=item.number)

    def evolve(item: NextRound, meter: UsageMeter) -> Record:
        return evolver.evolve(item.base, item.walk, item.number, item.problem, meter)

    work.process(ExploreStep.EVOLVE, pending, name=name, work=evolve)
    return len(pending)


def _plan_rounds(work: ExploreWork) -> list[NextRound]:
    chains = list_chains(work.store, work.corpus)
    plans = {
        walk: plan
        for walk, rounds in chains.items()
        if (plan := plan_next_round(rounds, work.settings.explore.rounds)) is not None
    }
    # Loaded at once: a chain each would be as many transactions as there are walks.
    walks = work.store.get_many(Walk, list(plans))
    bases = work.store.get_many(Question, [base for base, _, _ in plans.values()])
    rounds = [
        NextRound(walk=walks[walk], base=bases[base], number=number, problem=problem)
        for walk, (base, number, problem) in plans.items()
    ]
    return sorted(rounds, key=lambda item: item.walk.name)


# -------------------------------------------------------------------------------------------------------------- gates


@dataclass(frozen=True, kw_only=True)
class GateInputs:
    """Input of the gates of all questions of a batch: first question and walk of each, texts of others, files."""

    walks: Mapping[str, Walk]
    first: Mapping[str, Question]
    texts: Mapping[str, str]
    others: Sequence[tuple[str, str, int, bool, str]]
    benchmarks: Benchmarks
    places: Mapping[str, str]


def gate_questions(work: ExploreWork) -> None:
    """Assess the questions that have neither certificate nor rejection."""
    pending = find_pending_questions(work.store, work.corpus, retry=work.request.retry)
    questions = [question for question in pending if work.request.includes(question.name, question.id)]
    inputs = _load_inputs(work, questions)

    def name(question: Question) -> ExploreItem:
        return ExploreItem(parent=question.id, walk=question.walk, name=question.name, round=question.round)

    def assess(question: Question, meter: UsageMeter) -> Record:
        subject = _make_subject(work, question, inputs, meter)
        findings, failure = assess_question(subject)
        if failure is not None:
            return _reject(work, name(question), findings, failure)
        return _certify(work.artifacts, question, findings)

    work.process(ExploreStep.GATE, questions, name=name, work=assess)


def _load_inputs(work: ExploreWork, questions: Sequence[Question]) -> GateInputs:
    options, store = work.settings.explore, work.store
    chains = list_chains(store, work.corpus)
    roots = [chains[question.walk][0].question for question in questions]
    comparable = list_comparable_questions(store, work.corpus)
    return GateInputs(
        walks=store.get_many(Walk, [question.walk for question in questions]),
        first={root.walk: root for root in store.get_many(Question, roots).values()},
        texts={key: other.text for key, other in store.get_many(Question, [row[4] for row in comparable]).items()},
        others=comparable if questions else (),
        benchmarks=read_benchmarks(options.benchmarks, work.reader.tokenizer) if options.benchmarks else Benchmarks(),
        places=read_places(options.places) if options.places else {},
    )


def _make_subject(work: ExploreWork, question: Question, inputs: GateInputs, meter: UsageMeter) -> GateSubject:
    first = inputs.first[question.walk]
    # By name and not by time: questions of a batch may be stored in any order. Those of the same round count whatever
    # becomes of them, as that is not known yet.
    others = [
        (name, inputs.texts[key])
        for name, walk, number, is_rejected, key in inputs.others
        if walk != question.walk and name < question.name and (number == question.round or not is_rejected)
    ]
    return GateSubject(
        question=question,
        walk=inputs.walks[question.walk],
        answer=first.answer,
        aliases=first.aliases,
        corpus=work.reader,
        models=work.models,
        options=work.settings.explore,
        meter=meter,
        others=others,
        benchmarks=inputs.benchmarks,
        places=inputs.places,
    )


def read_places(path: Path) -> dict[str, str]:
    """Return place -> larger place of a file, names as they are compared.

    Raises:
        InputError: it is no JSON object of texts.
    """
    try:
        places = json.loads(read_text(path, f"--explore-places: {path} cannot be read"))
    except ValueError as error:
        raise InputError(f"the places {path} cannot be read: {error}") from error
    if not isinstance(places, dict) or not all(isinstance(larger, str) for larger in places.values()):
        raise InputError(f"{path} is no JSON object of texts", advice='write {"place": "larger place"}')
    return {normalize_text(place): normalize_text(larger) for place, larger in places.items()}


def _reject(work: ExploreWork, item: ExploreItem, findings: GateFindings, failure: GateFailure) -> Record:
    return work.make_rejection(
        ExploreStep.GATE,
        item,
        failure.reason.value,
        failure.detail,
        entry_rank=findings.entry_rank,
        solvers=findings.solvers,
        log=_put_log(work.artifacts, findings),
    )


def _certify(artifacts: Artifacts, question: Question, findings: GateFindings) -> QuestionCertificate:
    return QuestionCertificate(
        parent=question.id,
        name=question.name,
        entry_rank=findings.entry_rank,
        gates=tuple(findings.gates),
        solvers=findings.solvers,
        closed_book=findings.closed_book,
        rivals=tuple(findings.rivals),
        path=artifacts.put(json.dumps(findings.path, sort_keys=True, ensure_ascii=False).encode(errors="replace")),
        n_path_calls=len(findings.path),
        evidence=findings.evidence,
        log=_put_log(artifacts, findings),
    )


def _put_log(artifacts: Artifacts, findings: GateFindings) -> str | None:
    lines = [json.dumps(line, ensure_ascii=False).encode(errors="replace") + b"\n" for line in findings.log]
    return artifacts.put(b"".join(lines)) if lines else None
