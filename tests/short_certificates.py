"""Certificates with a single grading of the gold submission, for tests that need a certified task.

A certificate takes at least three, each in one or two containers, and in twenty where submitted tests are graded. That
takes more than half of the containers of a command such as `mergemill run`. Three gradings, their conditions and the
exploits are tested in tests/verifiers/test_certify.py, and in test_end_to_end.py by the command. A certificate that is
compared with one of another process must be whole: new processes, such as the nodes of a cluster, make no short ones.

Controls take two of the four containers of a verification, in one of which the tests run several times. Commands whose
variables are those of `tests.cli.WITHOUT_CONTROLS` make none; they are tested in tests/evaluation and tests/verifiers.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import verifiers
from backends.services import Services
from evaluation.controls.controls import BlindControls
from evaluation.runner import evaluator
from evaluation.runner.evaluator import EvaluationRun, Evaluator
from taskdb.records import Certificate, Rejection
from taskdb.records.lineage import Lineage

certify = verifiers.certify


def certify_shortly(lineage: Lineage, services: Services, *arguments: Any, **named: Any) -> Certificate | Rejection:
    """Do what `verifiers.certify` does, with one grading of the gold submission where that takes containers."""
    if not lineage.require_task().image:
        return certify(lineage, services, *arguments, **named)
    settings = services.settings
    # A copy is not validated: the settings of users allow no fewer than three.
    once = settings.model_copy(update={"certify": settings.certify.model_copy(update={"runs": 1})})
    return certify(lineage, replace(services, settings=once), *arguments, **named)


def shorten_certificates() -> None:
    """Let the stage `certify` of this process grade the gold submission once."""
    verifiers.certify = certify_shortly


def leave_out_controls(set_attribute: Callable[[object, str, object], None] = setattr) -> None:
    """Let the stage `verify` of this process make no controls, and prepare no container for them."""
    module = importlib.import_module("verifiers.verify")  # whose name in the package is that of its function
    set_attribute(module, "build_controls", lambda *_, **__: BlindControls())
    run = Evaluator.run

    def run_as_last(*arguments: Any, **named: Any) -> EvaluationRun:
        return run(*arguments, **named | {"last": True})

    set_attribute(Evaluator, "run", run_as_last)
    set_attribute(evaluator, "run_in_turn", partial(evaluator.run_in_turn, last=True))
