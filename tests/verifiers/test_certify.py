"""A certificate needs fresh gradings: every reason for a rejection is provoked by a task that verification accepted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from backends.services import Services
from core.settings.group import replace_values
from exporters.records_bundle import write_records_bundle
from mergemill.execution.environment_families import compute_family
from mergemill.pipeline import certification
from taskdb.records import Certificate, ExploitReference, Rejection, Task
from taskdb.records.lineage import Lineage, RepositoryHistory
from tests.containers import record_containers
from tests.short_certificates import certify_shortly
from tests.verifiers.shop import SHOP, SHOP_RIGHT, open_shop_task, set_evaluations
from verifiers.certify import Reason, certify
from verifiers.probes import make_patch

pytestmark = pytest.mark.docker

SOMETIMES_RIGHT = SHOP.replace(
    "return sum(prices[1:])", "import os\n    return sum(prices) if os.urandom(1)[0] % 2 else sum(prices[1:])"
)
# As `total`, with what it returns where a condition does not hold.
UNDER_A_CONDITION = SHOP.replace(
    "return sum(prices[1:])", "import os, pathlib, time\n    return sum(prices) if {condition} else sum(prices[1:])"
)
AT_FULL_SPEED = """any(
        path.exists() and path.read_text().split()[0] in ("100000", "max")
        for path in map(pathlib.Path, ("/sys/fs/cgroup/cpu.max", "/sys/fs/cgroup/cpu/cpu.cfs_quota_us"))
    )"""
UNSCORED = 'mkdir -p "$MERGEMILL_REPORT_DIR"\necho trouble > "$MERGEMILL_REPORT_DIR/error"\nexit 97\n'


@dataclass(frozen=True)
class CertifiedTask:
    services: Services
    lineage: Lineage
    task: Task

    def certify(self, **changes: object) -> Certificate | Rejection:
        return certify(self.lineage.with_record(self.task.model_copy(update=changes)), self.services)

    def make_task(self, gold_patch: str) -> Task:
        return Task(**self.task.model_dump() | {"gold_patch": gold_patch})

    def put_gold(self, content: str) -> str:
        patch = make_patch({"shop/__init__.py": content.encode()}, {"shop/__init__.py": SHOP.encode()})
        return self.services.artifacts.put(patch)


@pytest.fixture(scope="module")
def verified_task(tmp_path_factory: pytest.TempPathFactory) -> CertifiedTask:
    """The task with two evaluations in a grading."""
    made = open_shop_task(tmp_path_factory, test_timeout=20)
    return CertifiedTask(made.services, made.lineage, set_evaluations(made.task, made.services, 2))


@pytest.fixture(scope="module")
def certified_task(verified_task: CertifiedTask) -> CertifiedTask:
    """The task with a single evaluation in a grading."""
    return replace(verified_task, task=set_evaluations(verified_task.task, verified_task.services, 1))


def test_the_gold_patch_earns_1_in_three_fresh_gradings(
    verified_task: CertifiedTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    containers = record_containers(monkeypatch)
    outcome = verified_task.certify()
    assert isinstance(outcome, Certificate), outcome
    assert (outcome.gold, outcome.noop) == ((1.0, 1.0, 1.0), 0.0)
    assert outcome.conditions == (
        "seed 0, files in the project's order, UTC, 1 CPUs, no network",
        "seed 1, files in order 1, Pacific/Chatham, 0.5 CPUs, no network",
        "seed 2, files in order 2, America/St_Johns, 1 CPUs, no network",
    )
    assert len(outcome.exploits) == 9
    assert set(outcome.exploits.values()) == {0.0}
    assert [len(names) for names in outcome.combined_exploits.values()] == [6, 2]
    others = 1 + 3
    per_grading = verified_task.task.evaluations
    assert per_grading == 2
    # Gold takes all evaluations once, and one under each other condition; what fails ends with its first.
    assert outcome.evaluations == per_grading + 2 + others
    assert len(containers) == outcome.evaluations, "each has a container of its own"
    assert {"architecture", "cpus", "memory_mb", "kernel", "engine", "storage_driver"} == set(outcome.machine)


@pytest.mark.parametrize("condition", ["time.timezone == 0", 'os.environ["PYTHONHASHSEED"] == "0"', AT_FULL_SPEED])
def test_a_gold_patch_that_depends_on_the_conditions_is_rejected(condition: str, certified_task: CertifiedTask) -> None:
    gold = certified_task.put_gold(UNDER_A_CONDITION.format(condition=condition))
    outcome = certified_task.certify(gold_patch=gold)
    assert isinstance(outcome, Rejection), outcome
    assert outcome.reason == Reason.GOLD_FAILS
    assert "scored 1.0, 0.0, at last with seed 1, files in order 1, Pacific/Chatham, 0.5 CPUs" in outcome.detail


def test_an_exploit_that_is_paid_is_a_reason_for_rejection_where_controls_should_expose_it(
    certified_task: CertifiedTask,
) -> None:
    changes = {"gold_patch": certified_task.put_gold(SHOP_RIGHT), "blind_controls": None, "controls": ()}

    def certify_with(bound: float | None) -> Certificate | Rejection:
        task = certified_task.task.model_copy(update={**changes, "control_bound": bound})
        return certify_shortly(certified_task.lineage.with_record(task), certified_task.services)

    outcome = certify_with(0.001)
    assert isinstance(outcome, Rejection), outcome
    assert outcome.reason == Reason.EXPLOIT_PASSES
    assert "source-forges scored 1.0" in outcome.detail
    unbound = certify_with(None)
    assert isinstance(unbound, Certificate), unbound
    assert unbound.exploits["source-forges"] == 1.0
    assert sum(value or 0.0 for value in unbound.exploits.values()) == 1.0


@pytest.mark.parametrize("gold", [SHOP + "\n# nothing\n", SOMETIMES_RIGHT])
def test_a_gold_patch_that_fails_now_is_rejected_whatever_verification_saw(
    gold: str, certified_task: CertifiedTask
) -> None:
    outcome = certified_task.certify(gold_patch=certified_task.put_gold(gold))
    assert isinstance(outcome, Rejection)
    assert outcome.reason == Reason.GOLD_FAILS
    assert "0.0" in outcome.detail


def test_the_stage_grades_what_the_written_bundle_has(
    certified_task: CertifiedTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = certified_task.make_task(certified_task.put_gold(SHOP_RIGHT))
    lineage = certified_task.lineage.with_record(task)
    settings = replace_values(certified_task.services.settings, {"certify_exploits": "off"})
    services = replace(certified_task.services, settings=settings)
    outcome = certification.certify(lineage, services)
    assert isinstance(outcome, Certificate), outcome
    assert (outcome.parent, outcome.gold) == (task.id, (1.0, 1.0, 1.0))

    def write_another(_: Task, folder: Path, services: Services) -> str:
        wrong = certified_task.make_task(certified_task.put_gold(SHOP + "\n# nothing\n"))
        return write_records_bundle(wrong, folder, services)

    monkeypatch.setattr(certification, "write_records_bundle", write_another)
    assert isinstance(rejected := certification.certify(lineage, services), Rejection)
    assert rejected.reason == Reason.GOLD_FAILS


def test_tests_that_pass_anyway_are_rejected(certified_task: CertifiedTask) -> None:
    passing = tuple((test, certified_task.task.FAIL_TO_PASS[0][1]) for test in certified_task.task.PASS_TO_PASS)
    outcome = certified_task.certify(FAIL_TO_PASS=passing, blind_controls=None, controls=())
    assert isinstance(outcome, Rejection)
    assert (outcome.reason, outcome.detail) == (Reason.NOOP_PASSES, "an empty submission scored 1.0")


def test_a_task_whose_image_is_gone_is_rejected(certified_task: CertifiedTask) -> None:
    outcome = certified_task.certify(image="mergemill/env:gone")
    assert isinstance(outcome, Rejection)
    assert outcome.reason == Reason.NO_IMAGE
    assert "mergemill/env:gone" in outcome.detail


def test_a_task_that_cannot_be_scored_is_rejected(certified_task: CertifiedTask) -> None:
    outcome = certified_task.certify(eval_script=certified_task.services.artifacts.put_text(UNSCORED))
    assert isinstance(outcome, Rejection)
    assert (outcome.reason, outcome.detail) == (Reason.NOT_SCORED, "trouble")


def test_a_certificate_relies_on_the_exploits_of_its_family(certified_task: CertifiedTask) -> None:
    task = certified_task.make_task(certified_task.put_gold(SHOP_RIGHT))
    log = certified_task.services.artifacts.put_text("platform linux -- Python 3.13.0, pytest-9.1.1, pluggy-1.6.0\n")
    environment = certified_task.lineage.require_environment().model_copy(update={"log": log})
    family = compute_family(task, certified_task.services, environment)
    reference = ExploitReference(task="0" * 64, name="ada__shop-1.bugfix")
    history = RepositoryHistory(exploited_families={family: reference})
    lineage = replace(certified_task.lineage, task=task, environment=environment, history=history)
    # A twentieth of all tasks, drawn by their ids, get exploits of their own by default.
    settings = replace_values(certified_task.services.settings, {"certify_exploits": "sample:0"})
    outcome = certification.certify(lineage, replace(certified_task.services, settings=settings))
    assert isinstance(outcome, Certificate), outcome
    assert (outcome.gold, outcome.noop, outcome.exploits) == ((1.0, 1.0, 1.0), 0.0, {})
    assert (outcome.environment_family, outcome.exploits_of) == (family, reference)
    assert outcome.evaluations <= 4 * task.evaluations


@pytest.mark.parametrize(("exploits", "number"), [("quick", 9), ("off", 0)])
def test_the_settings_decide_on_exploits_of_its_own(exploits: str, number: int, certified_task: CertifiedTask) -> None:
    task = certified_task.make_task(certified_task.put_gold(SHOP_RIGHT))
    family = compute_family(task, certified_task.services)
    history = RepositoryHistory(exploited_families={family: ExploitReference(task="0" * 64, name="ada__shop-1.bugfix")})
    lineage = replace(certified_task.lineage, task=task, history=history)
    settings = replace_values(certified_task.services.settings, {"certify_exploits": exploits})
    outcome = certification.certify(lineage, replace(certified_task.services, settings=settings))
    assert isinstance(outcome, Certificate), outcome
    assert (len(outcome.exploits), outcome.exploits_of) == (number, None)
    assert outcome.environment_family == (family if number else "")
