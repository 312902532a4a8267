"""Records of benches: frozen sets of subjects, and runs of a scaffold and model on them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from taskdb.records.base import LATER, MEASURED, ArtifactHash, Part, Record


class BenchSubject(Part):
    """A task or scenario of a set."""

    name: str
    id: str
    """Id of the Task or Scenario."""
    kind: str
    """Kind of the task, or `scenario`."""
    grading: str
    """Sha256 (hex) of everything that decides its grading: lists of tests, patches, script, oracle, image digest; in a
    set with `rebuilt_images` without the digest."""


class BenchLimits(Part):
    """Limits of a rollout on each subject of a set."""

    turns: int
    seconds: float


class BenchSet(Record):
    """A frozen set of subjects. Of several of a name the newest counts; all that are held out stay so."""

    name: str
    version: str
    """A number, from 1, which each other content under the same name raises."""
    held_out: bool
    """Whether its subjects and their families are refused as training data."""
    canary: str
    """Text that stands in its exports, by which they are recognised in training data."""
    subjects: tuple[BenchSubject, ...]
    """By name."""
    limits: BenchLimits
    rebuilt_images: Annotated[bool, LATER] = False
    """Whether images may be built again elsewhere: hashes have their names, which are hashes of their inputs, and no
    digests; a subject with an image needs a certificate of the machine on which it is run."""


JUDGE, PREDICTIONS = "judge", "predictions"
"""Scaffolds of runs that no agent made: judges on labelled findings, and submissions from a file."""


class BenchRun(Record):
    """A scaffold and model on a set, k rollouts of each subject. Of several of equal settings the newest counts.

    The calibration of a judge on labelled findings is a run as well: of the scaffold `judge`, without rollouts.
    """

    parent: str
    """Id of the BenchSet."""
    name: str
    """Name of the set."""
    scaffold: str
    scaffold_version: str
    model: str
    """Empty where the scaffold uses none."""
    checkpoint: str = ""
    sampling: dict[str, Any] = Field(default_factory=dict)
    """Sampling settings by the names of the OpenAI API."""
    runs: int
    """Rollouts of each subject: k."""
    left_out: tuple[str, ...] = ()
    """Names of subjects that were not run: those that have changed, and of a file of predictions the scenarios."""
    rollouts: tuple[str, ...]
    """Ids of the rollouts with a result, sorted; fewer than k of each subject where the run is not complete."""
    result: Annotated[ArtifactHash | None, LATER] = None
    """JSON: verdicts of judges and runs of tests on its submissions, as `mergemill.bench.measurements` describes; of
    the scaffold `judge` its calibration."""
    cutoff: Annotated[str, LATER] = ""
    """ISO date; reports have subjects from before it apart, which the model may have seen. Empty for none."""
    graders: Annotated[tuple[str, ...], MEASURED] = ()
    """Versions of the grader that their scores have, sorted."""
    at: Annotated[str, MEASURED] = ""
    """Time of the record (ISO 8601, UTC)."""
