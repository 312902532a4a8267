"""All steps in order, and a count of the changes of each.

The numbered steps are those of the paper's released code.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from simulators.options import SimulationOptions
from simulators.post_processing.answers import check_answer, drop_duplicate, parse_answer_text
from simulators.post_processing.calls import drop_several_calls, read_calls, repair_arguments
from simulators.post_processing.context import StepContext
from simulators.post_processing.draft import Draft, DroppedConversation, DroppedError, DropReason
from simulators.post_processing.further_checks import (
    check_benchmarks,
    check_failure,
    check_ids,
    check_language,
    check_turn_count,
    check_turn_order,
    drop_near_duplicate,
)
from simulators.post_processing.system_prompt import set_system
from simulators.post_processing.think import settle_thoughts
from simulators.post_processing.tool_checks import apply_validators, check_tools


@dataclass(frozen=True)
class PostStep:
    """A step. `apply` returns the draft, changed or not, or raises DroppedError."""

    name: str
    apply: Callable[[Draft, StepContext], Draft]
    is_released: bool = True
    """Whether the released code has it, and profile `simia` with it."""


STEPS: tuple[PostStep, ...] = (
    PostStep("answer", check_answer),
    PostStep("parse", parse_answer_text),
    PostStep("duplicates", drop_duplicate),
    PostStep("1 several-calls", drop_several_calls),
    PostStep("2 arguments", repair_arguments),
    PostStep("3 calls", read_calls),
    PostStep("4 tools", check_tools),
    PostStep("5 validators", apply_validators),
    PostStep("6 think", settle_thoughts),
    PostStep("7 system-prompt", set_system),
    PostStep("turn-order", check_turn_order, is_released=False),
    PostStep("turn-count", check_turn_count, is_released=False),
    PostStep("language", check_language, is_released=False),
    PostStep("failure", check_failure, is_released=False),
    PostStep("ids", check_ids, is_released=False),
    PostStep("benchmarks", check_benchmarks, is_released=False),
    PostStep("near-duplicates", drop_near_duplicate, is_released=False),
)


@dataclass
class StepCount:
    """What a step did: conversations that came to it, turns that it repaired, and its dropped conversations."""

    name: str
    before: int = 0
    repaired: int = 0
    """Conversations with a turn that the step repaired."""
    dropped: Counter[DropReason] = field(default_factory=Counter)

    @property
    def after(self) -> int:
        """Conversations that passed."""
        return self.before - self.dropped.total()


def choose_steps(options: SimulationOptions) -> tuple[PostStep, ...]:
    """Return the steps of a profile, those without effect by their settings left out.

    In profile `simia` a further step runs where its own setting is on.
    """
    switched_on = {
        "ids": options.seen_ids,
        "benchmarks": bool(options.benchmarks),
        "near-duplicates": options.near_duplicates < 1,
        "failure": options.failures > 0,
    }
    return tuple(step for step in STEPS if step.is_released or switched_on.get(step.name, not options.released_rules))


class PostProcessing:
    """The steps of a run, with their counts. Conversations must come in the order of their jobs."""

    def __init__(self, context: StepContext) -> None:
        self.context = context
        self.steps = choose_steps(context.options)
        self.counts = [StepCount(step.name) for step in self.steps]

    def process(self, drafts: Iterable[Draft]) -> Iterator[Draft | DroppedConversation]:
        """Yield for each draft the drafts that the steps make of it."""
        for draft in drafts:
            yield self._process_one(draft)

    def _process_one(self, draft: Draft) -> Draft | DroppedConversation:
        for step, count in zip(self.steps, self.counts, strict=True):
            count.before += 1
            n_repairs = len(draft.repairs)
            try:
                draft = step.apply(draft, self.context)
            except DroppedError as drop:
                count.dropped[drop.reason] += 1
                return DroppedConversation(
                    job=draft.job, key=draft.key, step=step.name, reason=drop.reason, detail=drop.detail
                )
            count.repaired += len(draft.repairs) > n_repairs
        return draft

    @property
    def dropped(self) -> Counter[str]:
        """Reason -> conversations, over all steps."""
        total: Counter[str] = Counter()
        for count in self.counts:
            total.update({reason.value: number for reason, number in count.dropped.items()})
        return total
