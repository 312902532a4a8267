"""Stage `certify`: a task is written as a bundle, unpacked in another place, and graded from there alone."""

from __future__ import annotations

import tempfile
from pathlib import Path

import verifiers
from backends.sandbox.container_names import make_folder_prefix
from backends.services import Services
from core.errors import MergemillError
from exporters.bundle_reader import read_bundle
from exporters.records_bundle import write_records_bundle
from mergemill.bundles.contents import open_bundle
from mergemill.execution.environment_families import compute_family, select_reference
from mergemill.execution.gold_trees import compute_gold_key, select_gradings
from taskdb.records import Certificate, Rejection
from taskdb.records.lineage import Lineage


def certify(lineage: Lineage, services: Services) -> Certificate | Rejection:
    """Certify a task from a written bundle, which has its record, patches, script, controls and base tree.

    A task without an image is graded by its own oracle as it is. Where the settings draw the tasks that get exploits,
    the certificate relies on those of a task of the same environment family, and on gradings of gold of one with the
    same gold tree (`lineage.history`).

    Args:
        lineage: the task.
        services: sandbox, clones, artifacts and settings.

    Raises:
        InputError: the task's base tree or any of its artifacts is missing.
        Transient: the engine failed, or the disk is full.
    """
    task = lineage.require_task()
    if not task.image:
        return verifiers.certify(lineage, services)
    family = compute_family(task, services, lineage.environment)
    share = services.settings.certify.exploit_share
    exploits_of = select_reference(task, family, lineage.history.exploited_families, share)
    with tempfile.TemporaryDirectory(prefix=make_folder_prefix("certify"), ignore_cleanup_errors=True) as temporary:
        folder = Path(temporary) / "bundle"
        write_records_bundle(task, folder, services)
        with open_bundle(folder, services) as bundle_services:
            (bundled,) = read_bundle(folder)
            certified = lineage.with_record(bundled.task)
            gold_tree = compute_gold_key(bundled.task, bundle_services, family)
            return verifiers.certify(
                certified,
                bundle_services,
                family=family,
                exploits_of=exploits_of,
                gold_tree=gold_tree,
                gold_of=select_gradings(task, gold_tree, lineage.history, share),
            )


def find_family(lineage: Lineage, services: Services) -> str:
    """Return the environment family of a task whose certificate may rely on exploits of another task; empty if none."""
    task = lineage.require_task()
    if not task.image or services.settings.certify.exploit_share is None:
        return ""
    try:
        return compute_family(task, services, lineage.environment)
    except MergemillError:
        return ""  # certification meets the same error, and reports it
