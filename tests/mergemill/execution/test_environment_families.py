"""Environment families: what ends the reliance on a sibling's exploits, and which tasks are drawn for their own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from backends.sandbox.images import BASE_IMAGE_LABEL, ImageInfo
from backends.services import Services
from builders.layers import LAYER_LABEL
from evaluation.script.harness_version import compute_harness_version
from evaluation.script.render import render_script
from guest.controls import blind
from languages.registry import frameworks_by_name, list_own_version_variables
from mergemill.execution import environment_families, grader_version
from mergemill.execution.environment_families import compute_family, is_drawn, select_reference
from taskdb.artifacts import Artifacts
from taskdb.records import ExploitReference, Kind, Task, TestCommand
from taskdb.records.oracles import PerformanceOracle
from tests import records
from tests.exporters.tasks import PLAN, make_task
from verifiers.certify import MAX_BOUND
from verifiers.probes import PROBES

BASE = "mergemill/base:python3.11-debian-0123456789ab"
PATCH = b"""diff --git a/tests/it's here.py b/tests/it's here.py
new file mode 100644
--- /dev/null
+++ b/tests/it's here.py
@@ -0,0 +1 @@
+x
"""


@dataclass
class LabelledImages:
    """Image store in which every image exists."""

    labels: Mapping[str, str] = field(default_factory=lambda: {BASE_IMAGE_LABEL: BASE})
    digest: str = "sha256:1"
    layers: tuple[str, ...] = ()

    def inspect(self, name: str) -> ImageInfo:
        return ImageInfo(name=name, digest=self.digest, layer_bytes=1, labels=self.labels, layers=self.layers)


@dataclass(frozen=True)
class Case:
    services: Any
    task: Task

    def compute(self, images: LabelledImages | None = None, **changes: Any) -> str:
        services = self.services if images is None else SimpleNamespace(**vars(self.services) | {"images": images})
        return compute_family(self.task.model_copy(update=changes), services)

    def compute_with_log(self, day: str, log: str | None, **changes: Any) -> str:
        """Compute the family of a task with packages of a day, and an environment with a log; None for a lost one."""
        steps = (f"uv pip install --exclude-newer {day}T00:00:00Z pytest",)
        plan = PLAN.model_copy(update={"exclude_newer": day, "dependency_steps": steps} | changes)
        candidate = records.make_candidate(records.make_pull_request())
        digest = "0" * 64 if log is None else self.services.artifacts.put_text(log)
        environment = records.make_environment(candidate, plan=plan, log=digest)
        return compute_family(self.task.model_copy(update={"plan": plan}), self.services, environment)


@pytest.fixture
def case(tmp_path: Path) -> Case:
    services: Any = SimpleNamespace(artifacts=Artifacts(tmp_path / "artifacts"), images=LabelledImages())
    typed: Services = services
    return Case(services, make_task(typed, tmp_path))


def render(**changes: Any) -> str:
    arguments: dict[str, Any] = {"test_patch": b"", "files": (), "canaries_beside": ["tests/test_a.py"]}
    return render_script(PLAN.test, workdir=PLAN.workdir, **arguments | changes)


def test_tasks_with_other_tests_statements_and_commits_are_of_one_family(case: Case) -> None:
    put = case.services.artifacts.put_text
    script = render(test_patch=PATCH, config_patch=PATCH, files=["a.py", "it's.py"], canaries_beside=["x y/test_b.py"])
    assert case.compute(eval_script=put(render())) == case.compute(eval_script=put(script))
    others = {"name": "other", "base_commit": "1" * 40, "problem_statement": "x", "image": "mergemill/env:other"}
    evidence = PLAN.model_copy(update={"evidence": ()})
    assert case.compute() == case.compute(**others, gold_patch=put("x"), plan=evidence)


@pytest.mark.parametrize("framework", sorted(frameworks_by_name()))
def test_scripts_of_each_framework_differ_in_what_is_left_out_alone(framework: str) -> None:
    command = TestCommand(framework=framework, argv=("run",))
    scripts = [
        render_script(
            command, workdir="/testbed", test_patch=patch, config_patch=patch, files=files, canaries_beside=near
        )
        for patch, files, near in ((b"", (), ["tests/test_a.py"]), (PATCH, ["b c.py", "d.py"], ["x y/test_b.py"]))
    ]
    assert len({compute_harness_version(script) for script in scripts}) == 1


def test_another_plan_base_image_or_harness_is_another_family(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    put = case.services.artifacts.put_text
    families = [
        case.compute(),
        case.compute(repo="ada/other"),
        case.compute(plan=PLAN.model_copy(update={"dependency_steps": ("pip install pytest==8.4.0",)})),
        case.compute(plan=PLAN.model_copy(update={"exclude_newer": "2024-04-01"})),
        case.compute(LabelledImages({BASE_IMAGE_LABEL: BASE.replace("0123", "4567")})),
        case.compute(eval_script=put(render().replace("setpriv ", "setpriv --verbose "))),
        case.compute(eval_script=put(render(canaries_beside=()))),
        case.compute(control_bound=None),
    ]
    monkeypatch.setattr(environment_families, "PROBES", PROBES[:-1])
    families.append(case.compute())
    monkeypatch.undo()
    monkeypatch.setattr(grader_version, "GRADING_PACKAGES", ("guest",))
    families.append(case.compute())
    monkeypatch.undo()
    assert len(set(families)) == len(families)
    assert case.compute() == families[0]


def test_tasks_that_excuse_an_exploit_are_of_another_family_whatever_readers_find(case: Case) -> None:
    """Exploits read nothing: only a task in which guesses pass too often excuses one."""
    document = json.loads(case.services.artifacts.get(case.task.blind_controls or ""))
    families = []
    for evaluations in (1, 12):
        put = case.services.artifacts.put_text(json.dumps(document | {"evaluations": evaluations}))
        families.append(case.compute(blind_controls=put, control_bound=0.5))
    assert blind.compute_guess_bound(document | {"evaluations": 1}) > MAX_BOUND
    assert families[0] != families[1] == case.compute(control_bound=0.0001)


def make_log(runner: str = "pytest-9.1.1", plugins: str = "") -> str:
    lines = [
        "==== test session starts ====",
        f"platform linux -- Python 3.13.0, {runner}, pluggy-1.6.0",
        plugins,
        "...",
    ]
    return "\n".join(lines)


def test_the_day_of_the_packages_makes_no_other_family_where_the_runner_is_the_same(case: Case) -> None:
    first = case.compute_with_log("2024-03-01", make_log())
    assert case.compute_with_log("2024-04-01", make_log()) == first
    others = [
        case.compute_with_log("2024-04-01", make_log("pytest-9.2.0")),
        case.compute_with_log("2024-04-01", make_log(plugins="plugins: benchmark-5.2.3")),
        case.compute_with_log("2024-04-01", make_log(plugins="plugins: benchmark-5.3.0")),
        case.compute_with_log("2024-04-01", make_log(), dependency_steps=("uv pip install pytest",)),
        case.compute_with_log("2024-04-01", make_log(), language_version="3.12"),
    ]
    assert len({first, *others}) == 6


@pytest.mark.parametrize("log", [None, "", "2 passed in 0.1s", "plugins: benchmark-5.2.3"])
def test_the_day_of_the_packages_makes_another_family_where_the_runner_is_unknown(log: str | None, case: Case) -> None:
    families = [case.compute_with_log(day, log) for day in ("2024-03-01", "2024-03-01", "2024-04-01")]
    assert families[0] == families[1] != families[2]


@pytest.mark.parametrize("name", list_own_version_variables())
def test_the_version_of_the_project_makes_no_other_family(name: str, case: Case) -> None:
    def compute(*env: tuple[str, str]) -> str:
        script = case.services.artifacts.put_text(render(env=[*PLAN.env, *env]))
        return case.compute(eval_script=script, plan=PLAN.model_copy(update={"env": (*PLAN.env, *env)}))

    first = compute((name, "7.3.1"))
    assert compute((name, "8.0.0.dev1+local")) == first
    assert compute((name, "7.3.1"), ("OTHER_VERSION", "1")) != first
    assert compute((name, "7.3.1; evil")) != first


@pytest.mark.parametrize("word", ["folder=tests; evil", "files=( $(evil) )", '    file="$folder"/$(evil)'])
def test_a_command_in_the_place_of_data_is_part_of_the_harness(word: str) -> None:
    start = word.partition("=")[0]
    lines = render(files=["a.py"]).splitlines(keepends=True)
    place = next(n for n, line in enumerate(lines) if line.startswith(f"{start}=") and line.strip() != "files=()")
    changed = "".join([*lines[:place], f"{word}\n", *lines[place + 1 :]])
    assert compute_harness_version(changed) != compute_harness_version(render())


def test_an_image_without_the_label_shares_a_family_with_itself_alone(case: Case) -> None:
    unlabelled = [case.compute(LabelledImages({}, digest)) for digest in ("sha256:1", "sha256:1", "sha256:2")]
    assert unlabelled[0] == unlabelled[1] != unlabelled[2]
    assert case.compute() not in unlabelled


def test_the_base_of_an_image_without_the_label_is_known_by_its_layers(case: Case) -> None:
    def compute(digest: str, *layers: str, layer: str = "source") -> str:
        return case.compute(LabelledImages({LAYER_LABEL: layer}, digest, layers))

    first = compute("sha256:1", "debian", "python", "packages", "tree")
    assert first == compute("sha256:2", "debian", "python", "other packages", "other tree")
    assert first != compute("sha256:2", "debian", "other python", "packages", "tree")
    # The number of layers above the base is known of images of source trees alone, and none may be left.
    assert first != compute("sha256:1", "debian", "python", "packages", "tree", layer="other")
    assert compute("sha256:1", "packages", "tree") != compute("sha256:2", "packages", "tree")


def test_tasks_without_exploits_have_no_family(case: Case) -> None:
    assert case.compute(image="") == ""
    oracle = PerformanceOracle(workload="1" * 64, tests=("a",), clock="cpu", ratio=2.0, threshold=1.5)
    assert case.compute(kind=Kind.PERFORMANCE, oracle=oracle) == ""


def test_a_share_is_drawn_by_the_hash_of_the_id(case: Case) -> None:
    tasks = [case.task.model_copy(update={"name": f"ada__words-{n}.bugfix"}) for n in range(1000)]
    # A copy keeps the id that was computed for the original.
    tasks = [Task(**task.model_dump()) for task in tasks]
    drawn = [is_drawn(task, 0.05) for task in tasks]
    assert 30 <= sum(drawn) <= 70
    assert drawn == [is_drawn(task, 0.05) for task in tasks]
    assert not any(is_drawn(task, 0) for task in tasks)
    assert all(is_drawn(task, 1) for task in tasks)
    first = ExploitReference(task="0" * 64, name="first")
    relying = [select_reference(task, "family", {"family": first}, 0.05) for task in tasks]
    assert [reference is None for reference in relying] == drawn
    assert set(relying) == {None, first}


def test_a_task_relies_on_another_one_of_its_family_alone(case: Case) -> None:
    first = ExploitReference(task="0" * 64, name="first")
    exploited = {"family": first, "": first, "own": ExploitReference(task=case.task.id, name=case.task.name)}
    assert select_reference(case.task, "family", exploited, 0.0) == first
    assert [select_reference(case.task, family, exploited, 0.0) for family in ("other", "", "own")] == [None] * 3
    # `quick`, `all` and `off` hold for every task.
    assert select_reference(case.task, "family", exploited, None) is None
