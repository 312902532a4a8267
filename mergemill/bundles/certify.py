"""Fresh gradings of the tasks of a bundle, with nothing but the bundle's own files and the images it names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from exporters.bundle_reader import read_bundle
from mergemill.bundles.contents import fetch_image, open_bundle, require_sound_bundle
from mergemill.execution.environment_families import compute_family, select_reference
from mergemill.execution.services import make_services
from taskdb.records import ExploitReference
from verifiers.certify import describe_machine, iterate_gradings

if TYPE_CHECKING:
    from backends.services import Services
    from core.config import Settings
    from exporters.bundle_reader import BundledTask
    from taskdb.records import Task


@dataclass(frozen=True, kw_only=True)
class BundleCertificate:
    """Gradings of a task. A value is None where it could not be scored."""

    task: str
    id: str
    gold: list[float | None] = field(default_factory=list)
    noop: float | None = None
    exploits: dict[str, float | None] = field(default_factory=dict)
    """Name of a probe -> value of its submission, which must be 0."""
    combined_exploits: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Name of a submission that made several exploits at once -> their names."""
    exploits_of: str | None = None
    """Name of the task of the bundle on whose exploits it relies; None where its own were graded, or none."""
    conditions: list[str] = field(default_factory=list)
    """Conditions of each grading of gold, the limits of the runs, and whether the image is the certified image."""
    machine: dict[str, Any]
    evaluations: int = 0
    """Runs of the tests that the gradings took."""
    problems: list[str] = field(default_factory=list)
    """Why the task is not certified; empty if it is."""


def certify_bundle(folder: Path, settings: Settings, only: Sequence[str] = ()) -> Iterator[BundleCertificate]:
    """Yield fresh gradings of each task: gold, an empty submission, and submissions that must earn 0.

    Args:
        folder: folder of the bundle.
        settings: engine, limits and number of gradings.
        only: names of tasks; empty for all.

    Raises:
        InputError: the bundle has a problem.
        MachineError: no engine answers.
        Transient: the engine failed.
    """
    require_sound_bundle(folder)
    services = make_services(settings, engine=True)
    machine = describe_machine(services)
    exploited: dict[str, ExploitReference] = {}
    with open_bundle(folder, services) as bundle_services:
        for bundled in read_bundle(folder):
            if not only or bundled.task.name in only:
                with services.images.hold():
                    yield _certify_task(bundled, folder, bundle_services, machine, exploited)


def _certify_task(
    bundled: BundledTask,
    folder: Path,
    services: Services,
    machine: dict[str, Any],
    exploited: dict[str, ExploitReference],
) -> BundleCertificate:
    """Grade a task afresh.

    `exploited`: environment family -> task of the bundle whose exploits earned what they must just now; the
    certificates in the bundle are what is to be checked, and count for nothing.
    """
    task = bundled.task
    if not fetch_image(bundled, folder, services):
        problem = f"the image {task.image} is neither in the engine nor in the bundle, nor in a registry that it names"
        return BundleCertificate(task=task.name, id=task.id, machine=machine, problems=[problem])
    family = compute_family(task, services)
    reference = select_reference(task, family, exploited, services.settings.certify.exploit_share)
    *_, gradings = iterate_gradings(task, services, bundled.read_files(), with_exploits=reference is None)
    if family and gradings.exploits and not gradings.problems:
        exploited.setdefault(family, ExploitReference(task=task.id, name=task.name))
    return BundleCertificate(
        task=task.name,
        id=task.id,
        gold=gradings.gold,
        noop=gradings.noop,
        exploits=gradings.exploits,
        combined_exploits=gradings.combined_exploits,
        exploits_of=reference.name if reference else None,
        conditions=[*gradings.conditions, *describe_limits(task, services)],
        machine=machine,
        evaluations=gradings.evaluations,
        problems=[problem.detail for problem in gradings.problems],
    )


def describe_limits(task: Task, services: Services) -> list[str]:
    """Return the limits of every run and the origin of the image, a line each."""
    limits = services.test_limits(task.language)
    memory = f"{limits.memory_mb} MB of memory ({limits.shm_mb} MB of /dev/shm)"
    lines = [
        f"{limits.cpus} cpus, {memory}, {limits.seconds:.0f} s for one run",
        "fresh containers without network",
    ]
    image = services.images.inspect(task.image) if task.image else None
    if image is not None:
        same = image.digest == task.image_digest
        lines.append(
            "the image that was verified" if same else f"image {image.digest}, verified was {task.image_digest}"
        )
    return lines
