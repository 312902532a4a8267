"""Pages of benches, read over HTTP: sets, runs, figures with bounds, comparisons, and texts of others."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from core.config import Settings
from mergemill.bench.sets import freeze
from mergemill.web import bench_page
from mergemill.web.application import make_application
from mergemill.web.request_guard import make_access_rules
from taskdb.records import Task
from taskdb.records.bench import PREDICTIONS, BenchRun, BenchSet
from taskdb.store import Store
from tests.mergemill.bench.making import LIMITS, add_run, find_row, make_set, report
from tests.mergemill.bench.test_sets import replace_task
from tests.taskdb.lineages import add_lineage, make_url
from tests.taskdb.worlds import make_scenario, make_world
from tests.web.conftest import HOST
from tests.web.seed import SeededDatabase

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture
def bench(tmp_path: Path) -> tuple[BenchSet, list[Task], list[BenchRun]]:
    """A set of twelve tasks with a run that lacks a rollout, and one whose model has a hostile name."""
    bench_set, tasks = make_set(tmp_path, 12)
    first = add_run(tmp_path, bench_set, tasks, lambda n, a: None if n == a == 1 else float(n % 2), runs=2)
    second = add_run(tmp_path, bench_set, tasks, lambda n, _: float(n < 9), runs=2, model=HOSTILE)
    return bench_set, tasks, [first, second]


def open_page(folder: Path, path: str) -> tuple[int, str]:
    """Return status and text of a page of the database in a folder."""
    settings = Settings(db=make_url(folder), store=folder / "mergemill-store")
    with Store.open(settings.storage.db, create=False) as store:
        application = make_application(store, settings, make_access_rules("127.0.0.1", None))
        page = TestClient(application, base_url=HOST, raise_server_exceptions=False).get(path)
        return page.status_code, page.text


def read_table(html: str, caption: str) -> list[list[str]]:
    """Return the cells of the table with a caption, its head first."""
    tables = html.split('<table class="figures">')[1:]
    (table,) = [part.partition("</table>")[0] for part in tables if f">{caption}</caption>" in part]
    cells = re.compile(r"<t[hd][^>]*>(.*?)</t[hd]>", re.DOTALL)
    return [[read_cell(cell) for cell in cells.findall(row)] for row in table.split("<tr")[1:]]


def read_cell(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]*>", "", html)).split())


def test_the_list_has_sets_and_runs(client: TestClient, seeded: SeededDatabase) -> None:
    html = client.get("/bench").text
    assert read_table(html, "Frozen sets")[1][:3] == [seeded.bench, "1", "15"]
    rows = read_table(html, "Runs on sets")
    assert [row[0] for row in rows[1:]] == [
        f"{seeded.bench}/react/{model}@step-200" for model in ("qwen3-coder", "qwen3-coder-rl")
    ]
    assert [row[-2:] for row in rows[1:]] == [["29", "30"], ["30", "30"]]
    assert '<a href="/bench" aria-current="page">Bench</a>' in html
    (address, *_) = re.findall(r'<a href="(/bench/[0-9a-f]{64})">', html)
    assert client.get(address).text == client.get(f"/bench/{seeded.bench}").text


def test_a_set_has_the_figures_of_its_report(
    tmp_path: Path, bench: tuple[BenchSet, list[Task], list[BenchRun]]
) -> None:
    bench_set, tasks, (first, _) = bench
    status, html = open_page(tmp_path, "/bench/first")
    assert (status, bench_set.canary in html) == (200, True)
    expected = find_row(report(tmp_path, first)["figures"], column="resolved")
    head, *rows = read_table(html, "Figures of first/react/m")
    assert head == ["Column", "mean", "95 % from", "to", "bounds", "median", "subjects", "families"]
    (row,) = [row for row in rows if row[0] == "resolved"]
    assert row[1:] == [
        *(f"{expected[name]:.4g}" for name in ("mean", "low", "high")),
        " to ".join(f"{end:.4g}" for end in expected["bounds"]),
        *("-", "12", "12"),
    ]
    assert "23 of 24 rollouts scored, k = 2 · 1 subjects with fewer than k" in html
    assert '<span class="chip is-incomplete">incomplete</span>' in html
    subjects = {row[0]: row for row in read_table(html, "Subjects of first and their rollouts")[1:]}
    assert list(subjects) == [task.name for task in sorted(tasks, key=lambda task: task.name)]
    assert subjects[tasks[1].name][1:5] == ["bugfix", "no", "1 1", "1"]
    assert f'<a href="/rollouts/{first.rollouts[0]}" aria-label="Attempt ' in html
    assert f'<a href="/tasks/{tasks[0].name}">' in html


def test_names_of_others_are_text(tmp_path: Path, bench: tuple[BenchSet, list[Task], list[BenchRun]]) -> None:
    for path in ("/bench", "/bench/first", f"/bench/first?against={bench[2][0].id}"):
        status, html = open_page(tmp_path, path)
        assert (status, HOSTILE in html, HOSTILE in unescape(html)) == (200, False, True)


def test_runs_are_chosen_compared_and_grouped(
    tmp_path: Path, bench: tuple[BenchSet, list[Task], list[BenchRun]]
) -> None:
    first, second = bench[2]
    status, html = open_page(tmp_path, f"/bench/first?against={first.id}&by=kind")
    expected = report(tmp_path, second, against=first)["differences"][0]
    head, row, *_ = read_table(html, "Differences from first/react/m")
    assert (status, head[-3:]) == (200, ["detectable", "subjects", "families"])
    assert row[1:4] == ["resolved", *(f"{expected[name]:.4g}" for name in ("difference", "low"))]
    assert ["resolved", "kind=bugfix"] in [row[:2] for row in read_table(html, "Figures of first/react/m")]
    alone = open_page(tmp_path, f"/bench/first?run={second.id}&metric=parts")[1]
    assert "Figures of first/react/m<" not in alone
    assert "No rollout was scored." in alone


def test_what_cannot_be_compared_is_a_line_beside_the_figures(tmp_path: Path) -> None:
    bench_set, tasks = make_set(tmp_path, 3)
    first = add_run(tmp_path, bench_set, tasks, lambda *_: 1.0, runs=1)
    add_run(tmp_path, bench_set, tasks, lambda *_: 1.0, runs=1, checkpoint="b", grader="2")
    lost = BenchRun(**first.model_dump() | {"checkpoint": "lost", "rollouts": ("0" * 64,)})
    with Store.open(make_url(tmp_path)) as store:
        store.add(lost)
        replace_task(store, tasks[0], hints="Look.")
    status, html = open_page(tmp_path, f"/bench/first?against={first.id}")
    notices = re.findall(r'<p class="notice">(.*?)</p>', html)
    assert (status, len(notices)) == (200, 2)
    assert "rollouts of first are not in the database" in notices[0]
    assert notices[1].startswith("changed-grader: ")
    assert read_table(html, "Figures of first/react/m@b")
    assert read_table(html, "Subjects of first and their rollouts")[1][2].startswith("its id is")


def test_scenarios_that_take_no_predictions_are_named(tmp_path: Path) -> None:
    world = make_world()
    scenario = make_scenario(world)
    with Store.open(make_url(tmp_path)) as store:
        task = add_lineage(store, 1)
        store.add(world, scenario)
        bench_set = freeze(store, "first", [task, scenario], LIMITS, held_out=False)
    scored = add_run(tmp_path, bench_set, [task], lambda *_: 1.0, runs=1, scaffold=PREDICTIONS)
    with Store.open(make_url(tmp_path)) as store:
        scored = scored.model_copy(update={"left_out": (scenario.name,)})
        store.add(scored)
    html = open_page(tmp_path, "/bench/first")[1]
    assert f"1 subjects take no predictions: {scenario.name}" in html
    assert "changed-subject" not in html
    # A run of agents that left the same scenario out did so since it has changed.
    played = add_run(tmp_path, bench_set, [task], lambda *_: 1.0, runs=1)
    joined = report(tmp_path, scored, played.model_copy(update={"left_out": (scenario.name,)}))
    assert (joined["left_out"], joined["unpredicted"]) == ([scenario.name], [scenario.name])


def test_subjects_come_in_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_page, "SUBJECTS", 2)
    make_set(tmp_path, 5)
    names, path = [], "/bench/first"
    while path:
        html = open_page(tmp_path, path)[1]
        names += [row[0] for row in read_table(html, "Subjects of first and their rollouts")[1:]]
        following = re.search(r'rel="next" href="([^"]+)"', html)
        path = f"/bench/first{unescape(following[1])}" if following else ""
    assert names == [f"ada__greet-{number}.bugfix" for number in range(1, 6)]


@pytest.mark.parametrize("query", ["run=x", "against=x", "by=moon", "metric=moon", "metric=os:system"])
def test_wrong_parameters_are_an_error_page(client: TestClient, seeded: SeededDatabase, query: str) -> None:
    page = client.get(f"/bench/{seeded.bench}?{query}")
    assert (page.status_code, "there is no" in page.text) == (404, True)
    assert client.get("/bench/none").status_code == 404
