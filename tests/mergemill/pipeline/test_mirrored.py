"""Mirrored issues from the command line, and what the driver lets workers mirror."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from backends.cluster.local import LocalCluster
from backends.services import Services
from core.config import Settings
from derivers.base import KindRejection
from mergemill.bundles.filter_resolution import resolve_filters
from mergemill.execution.progress import JsonLinesProgress
from mergemill.pipeline.environment_tasks import EnvironmentTaskRequest
from mergemill.pipeline.kinds import TASK_KINDS
from mergemill.pipeline.pipeline import PipelineRun
from mergemill.pipeline.runs import process_environments
from mergemill.pipeline.similar_changes import SimilarChangeFinder
from taskdb.queries import tasks as queries
from taskdb.queries.task_filters import parse_filters
from taskdb.records import Candidate, Kind, MirrorOrigin, Stage, Task, WrittenTests
from taskdb.records.lineage import Lineage
from taskdb.store import Store
from tests import records
from tests.backends.llm.conftest import server
from tests.backends.llm.server import ModelServer, ScriptedAnswer
from tests.cli import WITHOUT_CONTROLS, run_mergemill
from tests.containers import make_services
from tests.derivers.injected.test_tasks import CART, LABEL, TEST_CART, TEST_LABEL
from tests.derivers.mirrored.answers import GOLD, GOOD, STATEMENT, TESTS
from tests.helpers import TinyRepo
from tests.mergemill.pipeline.test_environment_tasks import make_services as make_fakes
from tests.sample import ALIKE, LICENSE, describe_project
from tests.scopes import make_scope
from tests.taskdb.lineages import add_lineage, make_url

__all__ = ["server"]
RECEIPT = '''"""Receipts."""


def receipt(line, columns):
    """The line as the printer gets it."""
    if len(line) - 1 > columns:
        return line[:columns]
    return line
'''
TEST_RECEIPT = "from till.receipt import receipt\n\n\ndef test_short():\n    assert receipt('ab', 4) == 'ab'\n"
TEST_CUT = f"{TEST_RECEIPT}\n\ndef test_one_sign_too_wide():\n    assert receipt('abcde', 4) == 'abcd'\n"
MODEL = {
    "NO_PROXY": "127.0.0.1",
    "MERGEMILL_CERTIFY_EXPLOITS": "off",
    "MERGEMILL_REPEATS": "1",
    **ALIKE,
    **WITHOUT_CONTROLS,
}


def make_projects(folder: Path) -> None:
    """Make the project `ada/shop`, in which issues are mirrored, and `eve/till`, which has had one."""
    shop, till = TinyRepo(folder / "ada__shop"), TinyRepo(folder / "eve__till")
    common: dict[str, str | bytes | None] = {"LICENSE": LICENSE, "README.md": "# A project\n"}
    modules = {"cart/__init__.py": "", "cart/cart.py": CART, "cart/label.py": LABEL}
    tests = {"tests/test_cart.py": TEST_CART, "tests/test_label.py": TEST_LABEL}
    shop.commit("Begin", {**common, **modules, **tests, "pyproject.toml": describe_project("cart")})
    fixed = CART.replace("return result - discount", "return max(result - discount, 0)")
    more = f"{TEST_CART}\n\ndef test_large_discount():\n    assert total([1], discount=4) == 0\n"
    message = "Fix totals below zero (#1)\n\n`total([1], discount=4)` is -3, it should be 0: nobody gets money back."
    shop.commit(message, {"cart/cart.py": fixed, "tests/test_cart.py": more})
    project = describe_project("till")
    receipt = {"till/__init__.py": "", "till/receipt.py": RECEIPT, "tests/test_receipt.py": TEST_RECEIPT}
    till.commit("Begin", {**common, **receipt, "pyproject.toml": project})
    title, _, body = STATEMENT.partition("\n")
    right = RECEIPT.replace("len(line) - 1", "len(line)")
    till.commit(f"Fix: {title} (#7)\n{body}", {"till/receipt.py": right, "tests/test_receipt.py": TEST_CUT})


def answer_request(request: Mapping[str, Any]) -> ScriptedAnswer:
    """Mirror the issue of `eve/till`; give no opinion on statements."""
    is_mirror = request["response_format"]["json_schema"]["name"] == "mirroranswer"
    return ScriptedAnswer(text=json.dumps(GOOD) if is_mirror else "No opinion.")


@pytest.mark.docker
def test_a_run_mirrors_the_issue_of_a_source_that_is_mined_later(tmp_path: Path, server: ModelServer) -> None:
    server.script = answer_request
    make_projects(tmp_path)
    words = ("run", "git:ada__shop", "git:eve__till", "--kind", "mirrored", "--workers", "1", "--json")
    model = ("--llm", server.url, "--model", "scripted")
    only = ("--only", "ada__shop-1,eve__till-7")
    done = run_mergemill(*words, *only, *model, cwd=tmp_path, **MODEL)
    assert done.exit_code == 0, done.stderr
    assert done.lines[-1]["certified"] == 1, done.stdout + done.stderr
    assert run_mergemill("tasks", "list", "--json", cwd=tmp_path).lines == []
    (listed,) = run_mergemill("tasks", "list", "--tests", "all", "--json", cwd=tmp_path).lines
    assert (listed["name"], listed["status"]) == ("ada__shop-1.mirrored-1", "certified")
    shown = run_mergemill("tasks", "show", listed["name"], "--json", cwd=tmp_path).json
    assert (shown["mirror"]["name"], shown["mirror"]["repo"]) == ("eve__till-7", "eve/till")
    why = run_mergemill("why", "ada__shop-1", cwd=tmp_path)
    assert "ada__shop-1.mirrored-1 mirrors eve__till-7 of eve/till" in why.stdout
    n_requests = len(server.requests)
    again = run_mergemill(*words, *only, *model, cwd=tmp_path, **MODEL)
    assert (again.exit_code, again.lines[-1]["new"], len(server.requests)) == (0, 0, n_requests)


def test_without_a_model_the_kind_is_refused_in_a_line(tmp_path: Path) -> None:
    with Store.open(make_url(tmp_path)) as store:
        add_lineage(store)
        lineage = Lineage(candidate=store.load_all(Candidate)[0], kinds=(Kind.MIRRORED,))
        services = make_services(tmp_path)
        assert SimilarChangeFinder(store, services).add_similar(lineage) == lineage


@pytest.fixture
def services(tmp_path: Path) -> Services:
    return make_services(tmp_path, llm="http://localhost:1", model="scripted")


def change_mining(services: Services, **mining: object) -> Services:
    settings = services.settings
    return replace(services, settings=settings.model_copy(update={"mining": settings.mining.model_copy(update=mining)}))


def test_only_changes_that_the_mining_rules_allow_are_mirrored(tmp_path: Path, services: Services) -> None:
    benchmark = tmp_path / "lists.jsonl"
    with Store.open(make_url(tmp_path)) as store:
        patches = {"gold_patch": services.artifacts.put(GOLD), "test_patch": services.artifacts.put(TESTS)}
        pull = records.make_pull_request(7, source="git:till", repo="eve/till", name="eve__till-7")
        other = records.make_candidate(pull, problem_statement=STATEMENT, change_kind="bugfix", **patches)
        store.add_mined_changes((pull, other, 0.0), tags=[records.make_tags(pull)])
        shop = records.make_pull_request(1, source="git:shop", repo="ada/shop", name="ada__shop-1")
        lineage = Lineage(candidate=records.make_candidate(shop), kinds=(Kind.MIRRORED,))

        def find(**mining: object) -> list[str]:
            finder = SimilarChangeFinder(store, change_mining(services, **mining))
            return [similar.name for similar in finder.add_similar(lineage).similar or ()]

        assert find() == ["eve__till-7"]
        assert find(licenses=("MIT",)) == ["eve__till-7"]
        assert find(licenses=("Apache-2.0",)) == []
        for row, expected in (
            ({"repo": "eve/till"}, []),
            ({"repo": "eve/till", "number": 7}, []),
            ({"repo": "eve/till", "number": 8}, ["eve__till-7"]),
            ({"repo": "eve/till", "base_commit": other.base_commit}, []),
            ({"repo": "bob/copy", "number": 1, "patch": GOLD.decode(), "test_patch": TESTS.decode()}, []),
        ):
            benchmark.write_text(json.dumps(row))
            assert find(benchmarks=(str(benchmark),)) == expected, row
            benchmark = benchmark.with_name(f"{benchmark.stem}x.jsonl")
        existing = replace(lineage, existing=(make_mirrored(store, other),))
        similar = SimilarChangeFinder(store, services).add_similar(existing).similar or ()
        assert [change.name for change in similar] == ["ada__greet-40"], "a bug fix that was added with the task"
        unwanted = replace(lineage, kinds=(Kind.BUGFIX,))
        assert SimilarChangeFinder(store, services).add_similar(unwanted).similar is None


def test_environments_are_given_changes_for_as_many_tasks_as_they_are_to_give(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[str, int | None, list[str]]] = []

    def derive(lineage: Lineage, _: Services) -> KindRejection:
        seen.append((lineage.candidate.name, lineage.wanted, [other.name for other in lineage.similar or ()]))
        return KindRejection("no-answer", "")

    monkeypatch.setitem(TASK_KINDS, Kind.MIRRORED, replace(TASK_KINDS[Kind.MIRRORED], derive=derive))
    settings = Settings.model_validate({"llm": "http://localhost:1", "model": "scripted", "store": tmp_path / "store"})
    with Store.open(make_url(tmp_path)) as store:
        add_lineage(store, 1, to=Stage.BUILD)
        for number in range(20):
            pull = records.make_pull_request(number, source="git:till", repo="eve/till", name=f"eve__till-{number}")
            other = records.make_candidate(pull, problem_statement=f"{STATEMENT} {number}")
            store.add_mined_changes((pull, other, 0.0), tags=[records.make_tags(pull)])
        progress = JsonLinesProgress(out=StringIO(), err=StringIO())
        fakes = replace(make_fakes(), settings=settings)
        run = PipelineRun(store, fakes, LocalCluster(workers=1), progress, 1)
        scope = make_scope(kinds=(Kind.MIRRORED,), stages=(Stage.DERIVE,))
        (short,) = process_environments(run, Stage.DERIVE, scope, EnvironmentTaskRequest(per_environment=5))
    ((name, wanted, similar),) = seen
    assert (name, wanted, len(similar)) == ("ada__greet-1", 5, 15)
    assert (short["tasks"], short["wanted"], short["reason"]) == (0, 5, "no-answer")


def make_mirrored(store: Store, mirrored: Candidate) -> Task:
    """Add a task that mirrors a change, in an environment of ada/greet, and return it."""
    task = add_lineage(store, 40)
    written = WrittenTests(
        patch="", files=(), model="m", prompt="p", attempt=1, transcript="", faults=0, faults_detected=0, variants=0
    )
    mirror = MirrorOrigin(
        candidate=mirrored.id, name=mirrored.name, repo=mirrored.repo, license="MIT", written_tests=written
    )
    fields = {"kind": Kind.MIRRORED, "name": "ada__greet-40.mirrored-1", "mirror": mirror}
    made = Task(**task.model_dump() | fields)
    store.add(made, records.make_certificate(made))
    return made


def test_a_task_that_mirrors_a_benchmarks_change_is_contaminated(tmp_path: Path, services: Services) -> None:
    lists = tmp_path / "lists.txt"
    lists.write_text("eve/till#7\n")
    with Store.open(make_url(tmp_path)) as store:
        pull = records.make_pull_request(7, source="git:till", repo="eve/till", name="eve__till-7")
        other = records.make_candidate(pull)
        store.add_mined_changes((pull, other, 0.0))
        make_mirrored(store, other)
        filters = parse_filters({"decontaminated": str(lists)})
        resolved = resolve_filters(filters, services.settings.storage, store)
        assert [row["name"] for row in queries.list_tasks(store, resolved)] == ["ada__greet-40.bugfix"]
