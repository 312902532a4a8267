"""`--cluster ray` on nodes with engines: the records of one machine, graded and sampled there as well."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from benchmarks.isolated_engine import start_engine
from tests.cli import run_mergemill
from tests.ray_nodes import QUICK, RayNodes, start_ray_nodes
from tests.sample import ALIKE, make_sample
from tests.taskdb.conftest import PostgresServer, server  # noqa: F401 - the databases of those tests
from tests.taskdb.content import read_records


@pytest.fixture(scope="module")
def engine_nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RayNodes]:
    """Two nodes, each with an engine, a network and a store of its own."""
    folder = Path(tempfile.mkdtemp(prefix="mm-engines-", dir="/var/tmp"))  # overlay needs a real file system
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        cluster = stack.enter_context(start_ray_nodes())
        for name in ("node-a", "node-b"):
            engine = stack.enter_context(start_engine(folder / name, ("python3.11-*",)))
            store = tmp_path_factory.mktemp(name)
            cluster.add(name, env={"DOCKER_HOST": engine.host, "MERGEMILL_NODE_STORE": str(store)})
        yield cluster


@pytest.mark.ray
@pytest.mark.docker
@pytest.mark.postgres
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "names", [["greet"], pytest.param(["greet", "salute", "hail"], marks=pytest.mark.slow)], ids=len
)
def test_nodes_with_engines_build_verify_grade_and_sample_as_one_machine_does(
    engine_nodes: RayNodes,
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
    done = run_mergemill("run", *sources, "--db", calm, "--json", cwd=tmp_path, **ALIKE)
    assert done.exit_code == 0, done.stderr
    assert done.lines[-1]["certified"] == 2 * len(names)
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere")  # the driver's machine needs no engine
    cluster = ("--db", spread, "--cluster", engine_nodes.url, "--json")
    done = run_mergemill("run", *sources, *cluster, cwd=tmp_path, **QUICK, **ALIKE)
    assert done.exit_code == 0, done.stderr
    assert read_records(spread) == read_records(calm)

    tasks = [row["name"] for row in run_mergemill("tasks", "list", "--db", spread, "--json", cwd=tmp_path).lines]
    rows = [{"instance_id": name, "model_patch": "", "model_name_or_path": "noop"} for name in tasks]
    (tmp_path / "p.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = run_mergemill("grade", "--predictions", "p.jsonl", "--out", "s.jsonl", *cluster, cwd=tmp_path, **QUICK)
    assert done.exit_code == 0, done.stderr
    scores = [json.loads(line) for line in (tmp_path / "s.jsonl").read_text().splitlines()]
    assert sorted((score["instance_id"], score["value"]) for score in scores) == [(name, 0.0) for name in sorted(tasks)]

    done = run_mergemill("sample", "--scaffold", "oracle,noop", *cluster, cwd=tmp_path, **QUICK)
    assert done.exit_code == 0, done.stderr
    assert (done.lines[-1]["new"], done.lines[-1]["resolved"]) == (4 * len(names), 2 * len(names))
