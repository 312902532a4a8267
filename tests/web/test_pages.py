"""Every page of `mergemill serve`, read over HTTP."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from core.config import Settings
from mergemill.web.application import make_application
from mergemill.web.request_guard import make_access_rules
from taskdb.artifacts import open_artifacts
from taskdb.queries import tasks as queries
from taskdb.queries.evidence import MIN_RANKED
from taskdb.queries.task_filters import TaskFilters
from taskdb.records import ExploitReference, TestOrigin
from taskdb.store import Store
from tests import records
from tests.taskdb.lineages import add_lineage
from tests.web.conftest import HOST
from tests.web.seed import GOLD_PATCH, TEST_PATCH, SeededDatabase, add_change, make_texts


def read_text(html: str) -> str:
    """Return the text of a page without its tags."""
    return unescape(re.sub(r"<[^>]*>", " ", html))


def test_the_overview_shows_counts_reasons_tasks_and_the_run(client: TestClient) -> None:
    page = client.get("/")
    text = read_text(page.text)
    assert page.status_code == 200
    assert "Changes mined" in text
    assert "no-tests" in text
    assert "expressjs__express-23" in text
    assert "128" in text


def test_the_list_shows_facets_with_counts_and_links_that_add_them(client: TestClient, seeded: SeededDatabase) -> None:
    page = client.get("/tasks").text
    with Store.open(seeded.settings.storage.db) as store:
        n_go = len(queries.list_tasks(store, TaskFilters(language="go")))
    link = re.search(r'<a href="(/tasks\?language=go)".*?<span class="n">(\d+)</span>', page)
    assert link is not None
    assert int(link[2]) == n_go > 0
    chosen = client.get(link[1]).text
    assert chosen.count("<tr data-row>") == n_go
    assert 'aria-current="true"' in chosen


@pytest.mark.parametrize(
    ("query", "present", "absent"),
    [
        ("kind=feature", "is-feature", "is-review"),
        ("status=derived", "is-derived", "is-certified"),
        ("repo=spf13/cobra", "spf13__cobra-2.", "ada__greet-"),
        ("license=Apache-2.0", "spf13__cobra-2.", "pallets__flask-"),
        ("change-kind=bugfix", "ada__greet-", "No task matches"),
        ("min-f2p=3", "No task matches", "data-row"),
        ("q=pallets", "pallets__flask-5.", "ada__greet-"),
        ("q=friend+slug&kind=bugfix", "No task matches", "data-row"),
    ],
)
def test_filters_of_the_command_line_are_parameters(client: TestClient, query: str, present: str, absent: str) -> None:
    page = client.get(f"/tasks?{query}")
    rows = page.text.partition("</aside>")[2]
    assert page.status_code == 200
    assert present in rows
    assert absent not in rows


def test_pages_of_the_list_contain_each_task_once(client: TestClient, seeded: SeededDatabase) -> None:
    names: list[str] = []
    address: str | None = "/tasks"
    while address:
        page = client.get(address).text
        names += re.findall(r'<th scope="row" data-label="Task"><a href="/tasks/([^"]+)"', page)
        following = re.search(r'rel="next" href="([^"]+)"', page)
        address = unescape(following[1]) if following else None
    with Store.open(seeded.settings.storage.db) as store:
        assert names == [row["name"] for row in queries.list_tasks(store, TaskFilters())]


@pytest.mark.parametrize("query", ["colour=red", "min-f2p=many", "after=nothing"])
def test_a_wrong_parameter_is_an_error_page_without_traceback(client: TestClient, query: str) -> None:
    page = client.get(f"/tasks?{query}")
    assert page.status_code in (400, 404)
    assert "Traceback" not in page.text
    assert '<section class="card error">' in page.text


def test_a_task_shows_statement_patches_tests_environment_and_scores(
    client: TestClient, seeded: SeededDatabase
) -> None:
    page = client.get(f"/tasks/{seeded.task}")
    text = read_text(page.text)
    assert page.status_code == 200
    assert "<mark>must not raise</mark>" in page.text
    assert '<a href="https://example.org/discuss/12" rel="noopener noreferrer nofollow"' in page.text
    assert "<img" not in page.text
    for words in (
        "Gold patch", "DEFAULT_NAME", "Test patch", "test_calm", "assertion", "message-not-stated", "tox.ini:4",
        "gold: passed 2, failed 1", "libffi-dev", "gold scored 1, 1, 1", "a file names the fix", "control",
        "Underspecified", "Completed by rules",
    ):  # fmt: skip
        assert words in text, words
    assert '<tr class="added">' in page.text
    assert '<span class="k">def</span>' in page.text


def test_a_task_is_found_by_name_and_id(client: TestClient, seeded: SeededDatabase) -> None:
    with Store.open(seeded.settings.storage.db) as store:
        key = queries.resolve_task(store, seeded.task).id
    assert client.get(f"/tasks/{key[:16]}").text == client.get(f"/tasks/{seeded.task}").text


def test_the_funnel_leads_to_reasons_changes_and_why(client: TestClient) -> None:
    funnel = client.get("/funnel").text
    link = re.search(r'href="(/changes\?rejected_by=build&amp;reason=tests-not-collected)"', funnel)
    assert link is not None
    changes = client.get(unescape(link[1])).text
    change = re.search(r'href="(/changes/ada__greet-\d+)"', changes)
    assert change is not None
    assert changes.count("<tr data-row>") == 3
    why = client.get(change[1]).text
    assert "Rejected by build: tests-not-collected" in why
    assert "add-system-package libffi-dev" in why
    log = re.search(r'href="(/artifacts/[0-9a-f]{64})">rejection by build', why)
    assert log is not None
    shown = client.get(log[1]).text
    assert "2 failed, 14 passed" in shown
    assert "[31m" not in shown


def test_a_change_shows_its_tasks_and_runs(client: TestClient, seeded: SeededDatabase) -> None:
    page = client.get(f"/changes/{seeded.change}").text
    assert f'href="/tasks/{seeded.task}"' in page
    assert "test-only run, seed 0" in page


def test_an_artifact_is_sent_as_text_alone(client: TestClient, seeded: SeededDatabase) -> None:
    raw = client.get(f"/artifacts/{seeded.artifact}?raw")
    assert raw.headers["content-type"] == "text/plain; charset=utf-8"
    assert raw.headers["x-content-type-options"] == "nosniff"
    assert raw.text.startswith("\x1b[31m2 failed")


def test_a_rollout_is_a_conversation(client: TestClient, seeded: SeededDatabase) -> None:
    page = client.get(f"/rollouts/{seeded.rollout}").text
    assert page.count('class="turn role-assistant"') == 4
    assert "grep -rn" in page
    assert "2 failed, 14 passed" in page
    assert "mini-swe-agent" in page


def test_runs_show_counts_rate_and_time_left(client: TestClient) -> None:
    page = client.get("/runs").text
    assert '<td class="n" data-count="build passed">96</td>' in page
    assert 'data-field="eta">' in page
    assert "is-running" in page


@pytest.mark.parametrize(
    "path",
    [
        "/nothing",
        "/tasks/nothing",
        "/changes/nothing",
        "/rollouts/nothing",
        "/rollouts/..%2f..%2fmergemill",
        "/artifacts/..%2f..%2fmergemill.db",
        f"/artifacts/{'0' * 64}",
        "/static/..%2frendering.py",
    ],
)
def test_what_is_not_there_is_a_404(client: TestClient, path: str) -> None:
    page = client.get(path)
    assert page.status_code == 404
    assert "Traceback" not in page.text


def test_pages_answer_head_requests(client: TestClient) -> None:
    assert client.head("/tasks").status_code == 200


def test_an_empty_database_has_all_pages(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("empty")
    settings = Settings(db=f"sqlite:///{folder}/m.db", store=folder / "store")
    with Store.open(settings.storage.db) as store:
        application = make_application(store, settings, make_access_rules("127.0.0.1", None))
        empty = TestClient(application, base_url="http://localhost")
        for path in ("/", "/tasks", "/funnel", "/changes", "/bench", "/runs"):
            assert empty.get(path).status_code == 200, path


def test_facets_count_what_was_found(client: TestClient) -> None:
    page = client.get("/tasks?q=cobra").text
    counted = re.search(r'href="/tasks\?q=cobra&amp;repo=spf13%2Fcobra".*?<span class="n">(\d+)</span>', page)
    assert counted is not None
    assert int(counted[1]) == 15
    assert "pallets%2Fflask" not in page.partition("</aside>")[0]


def test_a_task_shows_that_a_model_wrote_its_tests(tmp_path: Path) -> None:
    settings = Settings(db=f"sqlite:///{tmp_path}/m.db", store=tmp_path / "store")
    with Store.open(settings.storage.db) as store:
        names = {
            origin: add_change(store, open_artifacts(settings.storage), number, make_texts(number), tests=origin)
            for number, origin in enumerate(TestOrigin)
        }
        application = make_application(store, settings, make_access_rules("127.0.0.1", None))
        with TestClient(application, base_url=HOST) as client:
            pages = {origin: client.get(f"/tasks/{name}") for origin, name in names.items()}
    assert all(page.status_code == 200 for page in pages.values())
    assert "tests: model-written" in pages[TestOrigin.MODEL_WRITTEN].text
    assert "model-written" not in pages[TestOrigin.HUMAN].text


def test_a_task_names_the_one_whose_exploits_its_certificate_relies_on(tmp_path: Path) -> None:
    settings = Settings(db=f"sqlite:///{tmp_path}/m.db", store=tmp_path / "store")
    reference = ExploitReference(task="0" * 64, name="<b>of another database</b>")
    with Store.open(settings.storage.db) as store:
        names = [add_change(store, open_artifacts(settings.storage), number, make_texts(number)) for number in (1, 2)]
        for name, fields in zip(names, ({"exploits": {"stray-file": 0.0}}, {"exploits_of": reference}), strict=True):
            store.add(records.make_certificate(queries.resolve_task(store, name), **fields))
        application = make_application(store, settings, make_access_rules("127.0.0.1", None))
        with TestClient(application, base_url=HOST) as client:
            own, relying = (read_text(client.get(f"/tasks/{name}").text) for name in names)
    assert "exploits graded: 1" in own
    assert "relies on" not in own
    line = f"it relies on the exploits of {reference.name} , a task of the same environment family"
    assert line in " ".join(relying.split())


def test_a_task_without_a_finding_shows_what_was_seen_and_no_share_of_fault(tmp_path: Path) -> None:
    settings = Settings(db=f"sqlite:///{tmp_path}/m.db", store=tmp_path / "store")
    artifacts = open_artifacts(settings.storage)
    patches = {"gold_patch": artifacts.put_text(GOLD_PATCH), "test_patch": artifacts.put_text(TEST_PATCH)}
    with Store.open(settings.storage.db) as store:
        application = make_application(store, settings, make_access_rules("127.0.0.1", None))
        with TestClient(application, base_url=HOST) as client:
            for number in range(MIN_RANKED):
                fields = {"underspecified": 0.5, "unfair_tests": 0.62 + number / 100}
                task = add_lineage(
                    store, number, verdict_fields=fields, task_fields={"control_bound": 0.0003}, **patches
                )
                page = client.get(f"/tasks/{task.name}").text
                if number == 0:
                    alone = read_text(page)
    tiles = dict(re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", page))
    assert (tiles["Gold passed"], tiles["Forger passes"]) == ("3 of 3", "0.0003")
    assert "Gold fails" not in page
    assert "0.56" not in page
    assert "No finding." in alone
    assert not re.search(r"\d %|Unfair tests", alone)
    assert "81 %" not in read_text(page)
    assert tiles["Unfair tests"] == "more than 95 % of 20 tasks here"
    assert page.index("No finding.") < page.index("Unfair tests")
