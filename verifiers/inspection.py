"""Whether a task can be trusted: image, statement, submissions that must earn nothing, and how strong its tests are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from backends.git import touched
from backends.services import Services
from backends.testing.bench import Bench
from taskdb.records import RunKind, Score, Task
from verifiers import statement
from verifiers.audit import audit_image
from verifiers.base import Base, Files, cloned_files, read_base
from verifiers.grade import bench_of, score
from verifiers.probes import NOTHING, PROBES, Probe, Target, patch_of, wanted
from verifiers.rewards import reward_of


@dataclass(frozen=True, kw_only=True)
class Fault:
    """What speaks against a task: `kind` is image, statement, gold or exploit, `where` a path, a quote or a name."""

    kind: str
    where: str
    what: str


@dataclass(frozen=True, kw_only=True)
class Tried:
    """A submission that was graded and what it came to; `value` is null when it was not scored."""

    name: str
    value: float | None
    tampering: tuple[str, ...]
    explanation: str


@dataclass(frozen=True, kw_only=True)
class Strength:
    """How many FAIL_TO_PASS tests have a sabotaged twin that the gold patch was seen to fail; `share` 0..1."""

    fail_to_pass: int
    twins: int
    share: float


@dataclass(frozen=True, kw_only=True)
class Inspection:
    """All that was found of one task. Without findings it can be trusted as far as this looks."""

    findings: tuple[Fault, ...]
    probes: tuple[Tried, ...]
    strength: Strength


def inspect(task: Task, services: Services, files: Files | None = None, probes: Sequence[Probe] = PROBES) -> Inspection:
    """Read the task's image and statement, and try on it what must earn nothing.

    Args:
        task: its image must be in the engine.
        services: sandbox and artifacts; clones where `files` is not given.
        files: the base tree; read from the clone of the task's source when not given.
        probes: what is tried.

    Raises:
        InputError: image, clone or an artifact is not there.
        Transient: the engine failed.
    """
    if task.oracle is not None or not task.image:
        return _by_oracle(task, services, files)
    gold = services.artifacts.get(task.gold_patch)
    gold_files = touched(gold)
    base = read_base(cloned_files(task, services) if files is None else files, wanted(task, gold_files))
    target = Target(task=task, gold_files=gold_files, base=base.files)
    with bench_of(task, services) as bench:
        done = bench.run(RunKind.SOLVED, patch=gold)
        tried = [_tried("gold", score(task, services, bench, done, gold))]
        tried += [one for probe in probes if (one := _probe(probe, target, bench))]
    twins, tests = len(task.twins) if task.twin_patch else 0, len(task.FAIL_TO_PASS)
    return Inspection(
        findings=(*_leaks(task, gold, base, services), *_earned(tried)),
        probes=tuple(tried),
        strength=Strength(fail_to_pass=tests, twins=twins, share=twins / tests if tests else 0.0),
    )


def _by_oracle(task: Task, services: Services, files: Files | None) -> Inspection:
    """A task with an oracle of its own, or without a box: what leaks, and whether its extremes are worth their due."""
    base = read_base(cloned_files(task, services) if files is None else files)
    reward = reward_of(task)
    tried = [
        _tried("gold", reward.grade(task, services, reward.gold(task, services))),
        _tried(NOTHING.name, reward.grade(task, services, b"")),
    ]
    gold = services.artifacts.get(task.gold_patch)
    return Inspection(
        findings=(*_leaks(task, gold, base, services), *_earned(tried)), probes=tuple(tried),
        strength=Strength(fail_to_pass=len(task.FAIL_TO_PASS), twins=0, share=0.0),
    )  # fmt: skip


def _leaks(task: Task, gold: bytes, base: Base, services: Services) -> Iterator[Fault]:
    for leak in audit_image(task, services, base) if task.image else ():
        yield Fault(kind="image", where=f"/{leak.path}", what=f"{leak.what}, in layer {leak.layer[:19]}")
    for quote, what in statement.leaks(task.problem_statement, gold, task.repo, base.lines):
        yield Fault(kind="statement", where=quote, what=what)


def _probe(probe: Probe, target: Target, bench: Bench) -> Tried | None:
    """What the probe is worth; None when this task has nothing that it could be made of."""
    changes = probe.make(target)
    if not changes and probe is not NOTHING:
        return None
    return _tried(probe.name, _worth(target.task, bench, patch_of(changes, target.base)))


def _worth(task: Task, bench: Bench, patch: bytes) -> Score:
    """The patch's score; only a patch that gets past the FAIL_TO_PASS tests' own files costs a run of all others."""
    files = sorted({test.partition("::")[0] for test, _ in task.FAIL_TO_PASS})
    fewer = task.model_copy(update={"PASS_TO_PASS": ()})
    first = score(fewer, bench.services, bench, bench.run(RunKind.SOLVED, patch=patch, files=files), patch)
    if first.value == 0.0:
        return first
    return score(task, bench.services, bench, bench.run(RunKind.SOLVED, patch=patch), patch)


def _tried(name: str, scored: Score) -> Tried:
    said = scored.infrastructure_error or scored.explanation
    return Tried(name=name, value=scored.value, tampering=scored.tampering, explanation=said)


def _earned(tried: list[Tried]) -> Iterator[Fault]:
    """Submissions that came to something else than they must."""
    known = {probe.name: probe.what for probe in PROBES}
    for one in tried:
        worth = "is not scored" if one.value is None else f"is worth {one.value:g}"
        if one.name == "gold" and one.value != 1.0:
            yield Fault(kind="gold", where="gold", what=f"the gold patch {worth}: {one.explanation}")
        elif one.name != "gold" and one.value != 0.0:
            yield Fault(kind="exploit", where=one.name, what=f"{known[one.name]} {worth}: {one.explanation}")
