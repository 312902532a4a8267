"""`--sandbox kubernetes`: tests that run in pods give the records that containers of an engine give."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli import run_mergemill
from tests.sample import ALIKE, make_sample
from tests.taskdb.content import read_records
from tests.taskdb.lineages import make_url

NAMES = ("greet", "salute", "hail")


@pytest.mark.kubernetes
@pytest.mark.timeout(1500)
def test_pods_build_verify_grade_and_sample_as_an_engine_does(tmp_path: Path, cluster_registry: str) -> None:
    for name in NAMES:
        make_sample(tmp_path / f"ada__{name}")
    sources = [f"git:ada__{name}" for name in NAMES]
    for folder in ("engine", "pods"):
        (tmp_path / folder).mkdir()
    on_engine, in_pods = make_url(tmp_path / "engine"), make_url(tmp_path / "pods")
    done = run_mergemill("run", *sources, "--db", on_engine, "--json", cwd=tmp_path, **ALIKE)
    assert done.exit_code == 0, done.stderr
    assert done.lines[-1]["certified"] == 2 * len(NAMES)
    pods = ("--db", in_pods, "--sandbox", "kubernetes", "--kubernetes-registry", cluster_registry, "--json")
    done = run_mergemill("run", *sources, *pods, cwd=tmp_path, **ALIKE)
    assert done.exit_code == 0, done.stderr
    assert read_records(in_pods) == read_records(on_engine)

    tasks = [row["name"] for row in run_mergemill("tasks", "list", "--db", in_pods, "--json", cwd=tmp_path).lines]
    rows = [{"instance_id": name, "model_patch": "", "model_name_or_path": "noop"} for name in tasks]
    (tmp_path / "p.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = run_mergemill("grade", "--predictions", "p.jsonl", "--out", "s.jsonl", *pods, cwd=tmp_path)
    assert done.exit_code == 0, done.stderr
    scores = [json.loads(line) for line in (tmp_path / "s.jsonl").read_text().splitlines()]
    assert sorted((score["instance_id"], score["value"]) for score in scores) == [(name, 0.0) for name in sorted(tasks)]

    done = run_mergemill("sample", "--scaffold", "oracle,noop", *pods, cwd=tmp_path)
    assert done.exit_code == 0, done.stderr
    assert (done.lines[-1]["new"], done.lines[-1]["resolved"]) == (4 * len(NAMES), 2 * len(NAMES))
