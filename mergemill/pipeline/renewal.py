"""Renewal of a verified change: its verification is made again, and its verdict, tasks and certificates from that.

The results replace those of before all at once, or not at all: they are stored only where every certified task is
certified again. Otherwise a rejection of the environment (`not-renewed`) records the reason, and the change keeps the
records that it has.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from mergemill.pipeline.pipeline import (
    ChangeDrained,
    ChangeEvent,
    ChangeName,
    ChangeProcessor,
    ChangeRenewed,
    PipelineStep,
    StageOutcome,
)
from taskdb.records import Certificate, Rejection, Stage, Verification
from taskdb.records.lineage import Lineage
from taskdb.records.verdicts import Verdict
from taskdb.records.work import NOT_RENEWED

LISTS = ("FAIL_TO_PASS", "PASS_TO_PASS")


@dataclass
class ChangeRenewal(ChangeProcessor):
    """A change that is verified again; runs in a worker."""

    def __post_init__(self) -> None:
        self.earlier = self.lineage

    def process(self) -> Generator[ChangeEvent, None, None]:
        """Yield the beginnings of steps, then all results, a rejection of the renewal, or the error that ended it."""
        if self.is_draining():
            yield ChangeDrained(self.lineage.candidate.id)
            return
        outcomes = list[StageOutcome]()
        # A drained run finishes the whole renewal, of which half would be lost.
        self.is_draining = lambda: False
        with closing(super().process()) as events:
            for event in events:
                if not isinstance(event, StageOutcome):
                    yield event
                elif isinstance(event.result, Exception):
                    yield event
                    return
                else:
                    outcomes.append(event)
                    # The change still has its verdict, from which tasks would be derived.
                    if self.lineage.rejected_by is not None:
                        break
        rejection = find_rejection(self.earlier, outcomes)
        yield rejection or ChangeRenewed(tuple(outcomes))

    def _run_change_step(self, step: PipelineStep) -> Iterator[ChangeEvent]:
        """Make the verification again, the image first where it is missing, and the verdict where lists differ."""
        lineage = self.lineage
        if step.stage is Stage.BUILD and self.services.images.inspect(lineage.require_environment().image):
            return
        if step.stage is Stage.JUDGE and (verdict := renew_verdict(self.earlier, lineage.require_verification())):
            self.lineage = lineage.with_record(verdict)
            yield StageOutcome(step.stage, ChangeName.from_candidate(lineage.candidate), verdict, 0.0)
            return
        self.lineage = replace(lineage, next_stage=step.stage)
        yield from super()._run_change_step(step)


def renew_verdict(earlier: Lineage, verification: Verification) -> Verdict | None:
    """Return the verdict of a change for a new verification with the same lists; None where the lists differ."""
    before = earlier.require_verification()
    if earlier.verdict is None or any(getattr(before, name) != getattr(verification, name) for name in LISTS):
        return None
    # Not a copy of the model, which would keep the id of the verdict.
    return Verdict.model_validate({**earlier.verdict.model_dump(), "parent": verification.id})


def find_rejection(earlier: Lineage, outcomes: Sequence[StageOutcome]) -> StageOutcome | None:
    """Return the rejection of a renewal: the change or one of its certified tasks does not pass; None where all pass.

    Args:
        earlier: the change before, with its certified tasks.
        outcomes: results of the renewal.
    """
    rejected = [outcome for outcome in outcomes if isinstance(outcome.result, Rejection)]
    certified = {outcome.result.name for outcome in outcomes if isinstance(outcome.result, Certificate)}
    is_verified = any(isinstance(outcome.result, Verification) for outcome in outcomes)
    lost = next((name for name in earlier.certified if name not in certified), None)
    if is_verified and lost is None:
        return None
    subject = lost if is_verified and lost is not None else earlier.candidate.name
    detail, log = "it is not derived", None
    for outcome in rejected:
        if isinstance(outcome.result, Rejection) and outcome.kind in (None, earlier.certified.get(subject)):
            reason, log = outcome.result.reason, outcome.result.log
            detail = f"{outcome.stage.value}: {reason}: {outcome.result.detail}"
    seconds = sum(outcome.seconds for outcome in outcomes)
    rejection = Rejection(
        parent=earlier.require_environment().id,
        name=earlier.candidate.name,
        source=earlier.candidate.source,
        stage=Stage.VERIFY,
        reason=NOT_RENEWED,
        detail=f"{subject}: {detail}",
        log=log,
        seconds=seconds,
    )
    return StageOutcome(Stage.VERIFY, ChangeName.from_candidate(earlier.candidate), rejection, seconds)
