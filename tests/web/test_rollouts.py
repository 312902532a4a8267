"""Pages of rollouts that are in the database, and their list on the page of the task."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from core.config import Settings
from mergemill.web.application import make_application
from mergemill.web.request_guard import make_access_rules
from taskdb.records.rollouts import Rollout, Trajectory, TrajectoryRole
from taskdb.store import Store
from tests.samplers.stored import make_database
from tests.taskdb.lineages import make_url

HOST = "127.0.0.1"


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    make_database(tmp_path)
    settings = Settings(db=make_url(tmp_path))
    with Store.open(settings.storage.db, create=False) as store:
        yield TestClient(make_application(store, settings, make_access_rules(HOST, None)), base_url=f"http://{HOST}")


def load(tmp_path: Path) -> tuple[list[Rollout], list[Trajectory]]:
    with Store.open(make_url(tmp_path)) as store:
        return store.load_all(Rollout), store.load_all(Trajectory)


def test_a_rollout_is_shown_by_its_main_conversation_with_links_to_the_others(
    client: TestClient, tmp_path: Path
) -> None:
    (first, *_), trajectories = load(tmp_path)
    page = client.get(f"/rollouts/{first.id}").text
    assert page.count('class="turn role-assistant"') == 2
    assert "<dd>react</dd>" in page
    [side] = [
        trajectory
        for trajectory in trajectories
        if trajectory.parent == first.id and trajectory.role is TrajectoryRole.SIDE
    ]
    assert f'href="/rollouts/{side.id}"' in page
    assert "Greetings" in client.get(f"/rollouts/{side.id}").text


def test_the_page_of_a_task_lists_its_rollouts(client: TestClient, tmp_path: Path) -> None:
    (first, *_), _ = load(tmp_path)
    page = client.get(f"/tasks/{first.name}").text
    assert page.count('href="/rollouts/') == 5
    assert f'href="/rollouts/{first.id}"' in page


def test_a_rollout_that_is_not_there_is_a_404(client: TestClient) -> None:
    assert client.get(f"/rollouts/{'0' * 64}").status_code == 404
