"""`--cluster ray`: the same command on several machines gives the same records."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli import run_mergemill
from tests.history import make_history
from tests.namespaces import require_bubblewrap
from tests.ray_nodes import QUICK, RayNodes, start_ray_nodes
from tests.samplers.scripted_model import ScriptedModel
from tests.simulators.swe import sampling as swe
from tests.taskdb.conftest import PostgresServer, empty_postgresql, server  # noqa: F401 - the databases of those tests
from tests.taskdb.content import read_content
from tests.taskdb.lineages import make_url

CHANGES = 12
RUN = ("run", "git:ada__sums", "--kind", "review")


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, list[str]]]:
    """Folder with the repository, and the content of a database that one machine wrote."""
    folder = tmp_path_factory.mktemp("ray")
    make_history(folder / "ada__sums", CHANGES)
    url = make_url(folder)
    done = run_mergemill(*RUN, "--db", url, cwd=folder)
    assert done.exit_code == 0, done.stderr
    content = read_content(url)
    assert len(content["tasks"]) >= CHANGES
    return folder, content


@pytest.fixture(scope="module")
def nodes() -> Iterator[RayNodes]:
    with start_ray_nodes() as cluster:
        cluster.add("node-a")
        cluster.add("node-b")
        yield cluster


@pytest.mark.ray
@pytest.mark.postgres
@pytest.mark.timeout(300)
def test_a_run_on_two_nodes_writes_what_one_machine_writes(
    nodes: RayNodes,
    calm: tuple[Path, dict[str, list[str]]],
    empty_postgresql: str,  # noqa: F811
) -> None:
    folder, content = calm
    done = run_mergemill(*RUN, "--db", empty_postgresql, "--cluster", nodes.url, "--json", cwd=folder, **QUICK)
    assert done.exit_code == 0, done.stderr
    assert done.stderr == ""
    assert read_content(empty_postgresql) == content
    again = run_mergemill(*RUN, "--db", empty_postgresql, "--cluster", nodes.url, "--json", cwd=folder, **QUICK)
    assert again.lines[-1]["new"] == 0


@pytest.mark.ray
@pytest.mark.timeout(300)
def test_simulated_tasks_are_sampled_on_nodes_without_engines(nodes: RayNodes, tmp_path: Path) -> None:
    require_bubblewrap()
    swe.make_task(tmp_path)
    words = ("--environment", "simulated", "--scaffold", "react,oracle,noop", "--attempts", "2")
    with ScriptedModel(swe.answer) as model:
        done = swe.sample(tmp_path, model, *words, "--cluster", nodes.url, named=False, variables=QUICK)
        assert done.exit_code == 0, done.stderr
        again = swe.sample(tmp_path, model, *words, "--cluster", nodes.url, named=False, variables=QUICK)
    *rollouts, summary = done.lines
    assert sorted((line["scaffold"], line["value"], line["simulated_calls"]) for line in rollouts) == [
        *[("noop", 0.0, 0)] * 2,
        *[("oracle", 1.0, 0)] * 2,
        *[("react", 1.0, 2)] * 2,
    ]
    answers = summary["simulated_calls"]
    assert answers["known"] + answers["fresh"] == 6  # as on one machine, where no worker asks what another one has
    assert (again.exit_code, again.lines[-1]["new"]) == (0, 0)


@pytest.mark.timeout(300)
def test_a_cluster_of_this_machine_needs_no_server(calm: tuple[Path, dict[str, list[str]]]) -> None:
    folder, content = calm
    url = f"sqlite:///{folder}/local-ray.db"
    done = run_mergemill(*RUN, "--db", url, "--cluster", "ray", "--json", cwd=folder, RAY_AUTH_MODE="disabled")
    assert (done.exit_code, done.stderr) == (0, "")
    assert read_content(url) == content


@pytest.mark.parametrize(
    ("options", "code", "expected"),
    [
        (("--cluster", "slurm"), 2, "--cluster: slurm is unknown (one of local, ray, ray://HOST:PORT)"),
        (("--cluster", "ray", "--node-registry", "Not A Registry"), 2, "'Not A Registry' is not a registry"),
        (("--cluster", "ray://127.0.0.1:1"), 4, "no Ray cluster answers at ray://127.0.0.1:1: Connection refused"),
    ],
)
def test_a_cluster_that_cannot_be_used_is_one_line(
    calm: tuple[Path, dict[str, list[str]]], options: tuple[str, ...], code: int, expected: str
) -> None:
    done = run_mergemill(*RUN, "--db", "sqlite:///other.db", *options, cwd=calm[0])
    assert done.exit_code == code
    assert expected in done.stderr
    assert "Traceback" not in done.stderr
