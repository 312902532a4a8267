"""A certificate needs fresh gradings: every reason for a rejection is provoked by a task that verification accepted."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from backends.services import Services
from mergemill.kinds import derive
from taskdb.lineage import Lineage
from taskdb.records import Certificate, Rejection, Task, Verification
from tests.containers import make_lineage, make_services
from tests.helpers import TinyRepo
from tests.verifiers.shop import SHOP, SHOP_RIGHT, make_shop
from verifiers.certify import Reason, certify
from verifiers.probes import make_patch
from verifiers.verify import verify

pytestmark = pytest.mark.docker

SOMETIMES_RIGHT = SHOP.replace(
    "return sum(prices[1:])", "import os\n    return sum(prices) if os.urandom(1)[0] % 2 else sum(prices[1:])"
)
UNSCORED = 'mkdir -p "$MERGEMILL_REPORT_DIR"\necho trouble > "$MERGEMILL_REPORT_DIR/error"\nexit 97\n'


@dataclass(frozen=True)
class CertifiedTask:
    services: Services
    lineage: Lineage
    task: Task

    def certify(self, **changes: object) -> Certificate | Rejection:
        return certify(self.lineage.with_record(self.task.model_copy(update=changes)), self.services)

    def put_gold(self, content: str) -> str:
        patch = make_patch({"shop/__init__.py": content.encode()}, {"shop/__init__.py": SHOP.encode()})
        return self.services.artifacts.put(patch)


@pytest.fixture(scope="module")
def certified_task(tmp_path_factory: pytest.TempPathFactory) -> CertifiedTask:
    folder = tmp_path_factory.mktemp("certified_task")
    services = make_services(folder, repeats=1, test_timeout=20)
    repo = TinyRepo(folder / "repo")
    lineage = make_lineage(repo, services, *make_shop(repo))
    verification = verify(lineage, services)
    assert isinstance(verification, Verification), verification
    made = derive(lineage.with_record(verification), services)
    assert not isinstance(made, Rejection)
    return CertifiedTask(services, lineage.with_record(verification), made[0])


def test_the_gold_patch_earns_1_in_three_fresh_gradings(certified_task: CertifiedTask) -> None:
    found = certified_task.certify(gold_patch=certified_task.put_gold(SHOP_RIGHT))
    assert isinstance(found, Certificate), found
    assert (found.gold, found.noop) == ((1.0, 1.0, 1.0), 0.0)


@pytest.mark.parametrize("gold", [SHOP + "\n# nothing\n", SOMETIMES_RIGHT])
def test_a_gold_patch_that_fails_now_is_rejected_whatever_verification_saw(
    gold: str, certified_task: CertifiedTask
) -> None:
    found = certified_task.certify(gold_patch=certified_task.put_gold(gold))
    assert isinstance(found, Rejection)
    assert found.reason == Reason.GOLD_FAILS
    assert "0.0" in found.detail


def test_tests_that_pass_anyway_are_rejected(certified_task: CertifiedTask) -> None:
    passing = tuple((test, certified_task.task.FAIL_TO_PASS[0][1]) for test in certified_task.task.PASS_TO_PASS)
    found = certified_task.certify(FAIL_TO_PASS=passing, blind_controls=None, controls=())
    assert isinstance(found, Rejection)
    assert (found.reason, found.detail) == (Reason.NOOP_PASSES, "an empty submission scored 1.0")


def test_a_task_whose_image_is_gone_is_rejected(certified_task: CertifiedTask) -> None:
    found = certified_task.certify(image="mergemill/env:gone")
    assert isinstance(found, Rejection)
    assert found.reason == Reason.NO_IMAGE
    assert "mergemill/env:gone" in found.detail


def test_a_task_that_cannot_be_scored_is_rejected(certified_task: CertifiedTask) -> None:
    found = certified_task.certify(eval_script=certified_task.services.artifacts.put_text(UNSCORED))
    assert isinstance(found, Rejection)
    assert (found.reason, found.detail) == (Reason.NOT_SCORED, "trouble")
