"""`--cluster ray` on nodes with engines: the records of one machine, graded and sampled there as well."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from benchmarks.isolated_engine import IsolatedEngine, remove_built_images, start_engine
from tests.cli import run_mergemill
from tests.command_server import SHORT_CERTIFICATES
from tests.containers import make_services
from tests.ray_nodes import QUICK, RayNodes, start_ray_nodes
from tests.registry import LocalRegistry, find_bridge_address
from tests.sample import ALIKE, make_sample
from tests.samplers.scripted_model import ScriptedModel
from tests.samplers.worlds.database import make_database
from tests.samplers.worlds.player import AGENT, ScenarioPlayer
from tests.small_base import name_base, open_small_base
from tests.taskdb.conftest import PostgresServer, server  # noqa: F401 - the databases of those tests
from tests.taskdb.content import read_records


@dataclass(frozen=True)
class Site:
    """Two nodes, each with an engine, a network and a store of its own, and a registry between them."""

    nodes: RayNodes
    engines: tuple[IsolatedEngine, ...]
    registry: LocalRegistry


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = Path(tempfile.mkdtemp(prefix="mm-engines-", dir="/var/tmp"))  # overlay needs a real file system
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        registry = LocalRegistry(folder / "registry", address=find_bridge_address())
        registry.start()
        stack.callback(registry.stop)
        cluster = stack.enter_context(start_ray_nodes())
        tag, base = stack.enter_context(open_small_base(make_services(folder)))
        engines = []
        for name in ("node-a", "node-b"):
            engine = start_engine(folder / name, (tag,), registries=[registry.host])
            engines.append(stack.enter_context(engine))
            name_base(engines[-1], tag, base)
            store = tmp_path_factory.mktemp(name)
            cluster.add(name, env={"DOCKER_HOST": engines[-1].host, "MERGEMILL_NODE_STORE": str(store)})
        yield Site(cluster, tuple(engines), registry)


def grade_nothing(folder: Path, tasks: Sequence[str], *cluster: str) -> list[tuple[str, float | None]]:
    """Grade an empty patch for each task on the nodes; return the scores by task."""
    rows = [{"instance_id": name, "model_patch": "", "model_name_or_path": "noop"} for name in tasks]
    (folder / "p.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    out = folder / "s.jsonl"
    out.unlink(missing_ok=True)
    done = run_mergemill("grade", "--predictions", "p.jsonl", "--out", out.name, *cluster, cwd=folder, **QUICK)
    assert done.exit_code == 0, done.stderr
    scores = [json.loads(line) for line in out.read_text().splitlines()]
    return sorted((score["instance_id"], score["value"]) for score in scores)


@pytest.mark.ray
@pytest.mark.docker
@pytest.mark.postgres
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "names", [["greet"], pytest.param(["greet", "salute", "hail"], marks=pytest.mark.slow)], ids=len
)
def test_nodes_with_engines_build_verify_grade_and_sample_as_one_machine_does(
    site: Site,
    tmp_path: Path,
    server: PostgresServer,  # noqa: F811
    names: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sources = []
    for name in names:
        make_sample(tmp_path / f"ada__{name}")
        sources.append(f"git:ada__{name}")
    calm, spread = server.create_database(), server.create_database()
    whole = {SHORT_CERTIFICATES: ""}  # as the nodes make them
    done = run_mergemill("run", *sources, "--db", calm, "--json", cwd=tmp_path, **ALIKE, **whole)
    assert done.exit_code == 0, done.stderr
    assert done.lines[-1]["certified"] == 2 * len(names)
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere")  # the driver's machine needs no engine
    cluster = ("--db", spread, "--cluster", site.nodes.url, "--json")
    registry = ("--node-registry", f"{site.registry.host}/mergemill")
    done = run_mergemill("run", *sources, *cluster, *registry, cwd=tmp_path, **QUICK, **ALIKE)
    assert done.exit_code == 0, done.stderr
    assert read_records(spread) == read_records(calm)

    tasks = [row["name"] for row in run_mergemill("tasks", "list", "--db", spread, "--json", cwd=tmp_path).lines]
    for engine in site.engines:  # what they have not built they pull
        remove_built_images(engine)
    assert grade_nothing(tmp_path, tasks, *cluster) == [(name, 0.0) for name in sorted(tasks)]

    done = run_mergemill("sample", "--scaffold", "oracle,noop", *cluster, cwd=tmp_path, **QUICK)
    assert done.exit_code == 0, done.stderr
    assert (done.lines[-1]["new"], done.lines[-1]["resolved"]) == (4 * len(names), 2 * len(names))


@pytest.mark.ray
@pytest.mark.docker
@pytest.mark.timeout(300)
def test_scenarios_are_sampled_in_containers_of_the_nodes(site: Site, tmp_path: Path) -> None:
    make_database(tmp_path, ["library_loans"])
    words = ("sample", "--environment", "synthetic", "--scaffold", "tools,oracle,noop", "--model", AGENT, "--json")
    with ScriptedModel(ScenarioPlayer()) as model:
        words += ("--upstream", model.url, "--cluster", site.nodes.url)
        done = run_mergemill(*words, cwd=tmp_path, DOCKER_HOST="unix:///nowhere", **QUICK)
        assert done.exit_code == 0, done.stderr
        paid = model.paid
        again = run_mergemill(*words, cwd=tmp_path, DOCKER_HOST="unix:///nowhere", **QUICK)
        assert model.paid == paid
    *rollouts, summary = done.lines
    assert sorted((line["task"].partition(".")[0], line["scaffold"], line["value"]) for line in rollouts) == [
        *[("library_loans", "noop", 0.0)] * 2,
        *[("library_loans", "oracle", 1.0)] * 2,
        *[("library_loans", "tools", 1.0)] * 2,
    ]
    assert (summary["new"], summary["left"]) == (6, 0)
    assert (again.exit_code, again.lines[-1]["new"]) == (0, 0)


@pytest.mark.ray
@pytest.mark.docker
@pytest.mark.timeout(300)
def test_the_doctor_examines_the_nodes_and_needs_no_engine_here(site: Site, tmp_path: Path) -> None:
    def examine() -> dict[str, dict[str, object]]:
        words = ("doctor", "--cluster", site.nodes.url, "--json")
        done = run_mergemill(*words, cwd=tmp_path, DOCKER_HOST="unix:///nowhere", **QUICK)
        return {line["name"]: line for line in done.lines}

    well = examine()
    assert (well["cluster"]["ok"], well["cluster"]["detail"]) == (True, "node-a for 2 workers, node-b for 2 workers")
    assert "docker engine" not in well
    site.nodes.add("node-c", env={"DOCKER_HOST": "unix:///nowhere"})
    try:
        ill = examine()
    finally:
        site.nodes.nodes["node-c"].kill()
    assert not ill["cluster"]["ok"]
    assert "; a node is left out: node-c: no Docker engine answers" in str(ill["cluster"]["detail"])
    assert ill["database"]["ok"]
