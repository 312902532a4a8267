"""Gates by samples: without tools, with tools, and the replay of a right sample's calls."""

from __future__ import annotations

from backends.llm.base import ToolCall
from explorers.answering.agent import AnswerAgent, AnswerSample, count_samples
from explorers.answering.matching import is_verbatim
from explorers.gates.subject import GateFailure, GateFindings, GateSubject
from explorers.reasons import Reason
from explorers.walking.tools import CorpusTools


def make_agent(subject: GateSubject) -> AnswerAgent:
    """Return the agent that answers a question."""
    return AnswerAgent(corpus=subject.corpus, models=subject.models, max_turns=subject.options.turns)


def check_closed_book(subject: GateSubject, findings: GateFindings) -> GateFailure | None:
    """Reject a question that a sample without tools answers right."""
    agent = make_agent(subject)
    for model in subject.models.solvers:
        for number in range(1, subject.options.closed_samples + 1):
            sample = agent.answer_without_tools(subject.question, model, number, subject.meter)
            findings.closed.append(sample)
            findings.log.append(sample.to_json("closed"))
            if sample.is_right:
                detail = f"sample {number} of {model} without tools is right"
                return GateFailure(reason=Reason.KNOWN_WITHOUT_SEARCH, detail=detail)
    findings.closed_book = count_samples(findings.closed)
    findings.add("closed-book", 0, 0, f"{len(findings.closed)} samples without tools")
    return None


def run_solvers(subject: GateSubject, findings: GateFindings) -> GateFailure | None:
    """Take the samples of the solvers; they are judged after the search for rivals, to which they contribute."""
    agent = make_agent(subject)
    for model in subject.models.solvers:
        for number in range(1, subject.options.samples + 1):
            sample = agent.solve(subject.question, model, number, subject.meter)
            findings.samples.append(sample)
            findings.log.append(sample.to_json("solver"))
    findings.solvers = count_samples(findings.samples)
    return None


def check_difficulty(subject: GateSubject, findings: GateFindings) -> GateFailure | None:
    """Reject a question that no sample solves, or every sample in few turns."""
    judged = [sample for sample in findings.samples if sample.is_right is not None]
    right = [sample for sample in judged if sample.is_right]
    if not right:
        return GateFailure(reason=Reason.UNSOLVED, detail=f"0 of {len(judged)} samples are right")
    longest = max(sample.turns for sample in right)
    if len(right) == len(judged) and longest < subject.options.easy_turns:
        detail = f"all of {len(judged)} samples are right in at most {longest} turns"
        return GateFailure(reason=Reason.TOO_EASY, detail=detail)
    findings.add("solved", len(right) / len(judged), None, f"{len(right)} of {len(judged)} samples")
    return None


def check_path(subject: GateSubject, findings: GateFindings) -> GateFailure | None:
    """Replay the calls of right samples, the shortest first, until one has the same results and leads to its quotes."""
    right = [sample for sample in findings.samples if sample.is_right]
    for sample in sorted(right, key=lambda sample: (len(sample.steps), sample.model, sample.number)):
        if replay(subject, sample):
            quoted = {_find_id(subject, quote.page) for quote in sample.answer.quotes}
            findings.evidence = tuple(sorted({clue.page for clue in subject.active_clues} | quoted))
            findings.path = [
                {"tool": step.tool, "arguments": step.arguments, "result": step.digest} for step in sample.steps
            ]
            findings.add("path", len(sample.steps), None, f"sample {sample.number} of {sample.model}")
            return None
    return GateFailure(reason=Reason.PATH_NOT_REPEATABLE, detail="no right sample quotes the pages that its calls open")


def replay(subject: GateSubject, sample: AnswerSample) -> bool:
    """Return whether the calls of a sample give the same results again, and open the pages that it quotes verbatim."""
    tools = CorpusTools(pages=subject.corpus)
    calls = [ToolCall(id=str(at), name=step.tool, arguments=step.arguments) for at, step in enumerate(sample.steps)]
    steps = [tools.call(call) for call in calls]
    if [step.digest for step in steps] != [step.digest for step in sample.steps]:
        return False
    opened = {step.page for step in steps if step.page}
    quotes = sample.answer.quotes
    return bool(quotes) and all(
        (page := subject.corpus.find_page(quote.page)) is not None
        and page.id in opened
        and is_verbatim(quote.quote, page.text)
        for quote in quotes
    )


def _find_id(subject: GateSubject, word: str) -> str:
    page = subject.corpus.find_page(word)
    return page.id if page is not None else word
