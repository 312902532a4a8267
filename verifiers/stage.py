"""The stage `verify`: with the tests of the change, or with tests that a model writes for it."""

from __future__ import annotations

from backends.services import Services
from taskdb.records import Rejection, TestOrigin, Verification
from taskdb.records.lineage import Lineage
from verifiers.verify import verify as verify_with_own_tests
from verifiers.written_tests import verify_with_written_tests


def verify(lineage: Lineage, services: Services) -> Verification | Rejection:
    """Run a candidate's tests with and without the gold patch.

    Args:
        lineage: a candidate with its environment, and the verification that is made again, if any.
        services: sandbox, clones, artifacts, settings, and the model where tests are to be written.

    Raises:
        Transient: engine, disk, network or endpoint failed.
    """
    written = lineage.verification.written_tests if lineage.verification else None
    if lineage.candidate.tests is TestOrigin.MODEL_WRITTEN and written is None:
        return verify_with_written_tests(lineage, services)
    result = verify_with_own_tests(lineage, services)
    # A verification that is made again keeps the tests that were accepted.
    return result.model_copy(update={"written_tests": written}) if isinstance(result, Verification) else result
