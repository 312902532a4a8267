"""Processes and threads build the same images while others prune: each image is built once and none is lost."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

from backends.git import GitRepository
from backends.sandbox.docker import DockerSandbox
from builders.layers import compute_source_image_name
from taskdb.records import BuildPlan
from tests import records
from tests.helpers import TinyRepo

ROOT = Path(__file__).parents[2]

BUILDER = """
import json, sys, threading
from pathlib import Path
from backends.git import GitRepository
from builders import layers
from taskdb.records import BuildPlan
from tests.containers import make_services

folder, mark = Path(sys.argv[1]), sys.argv[2]
services = make_services(folder)
plan = BuildPlan.model_validate_json((folder / "plan.json").read_text())
clone, commit = GitRepository(folder / "repo"), (folder / "commit").read_text()
made, problems = [], []

def build():
    try:
        for _ in range(2):
            with services.images.hold():
                deps = layers.build_dependency_layer(plan, clone, services)
                source = layers.build_source_layer(plan, clone, commit, f"ada/{mark}", services)
                assert deps.image and source.image, (deps, source)
                command = ["cat", "/built", "a.py"]
                result = services.sandbox.run(source.image.name, command, limits=services.test_limits())
                assert result.exit_code == 0, result.output
                made.append([deps.result is not None, source.result is not None, deps.image.name, source.image.name])
    except BaseException as error:
        problems.append(repr(error))

threads = [threading.Thread(target=build) for _ in range(2)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(json.dumps({"made": made, "problems": problems}))
"""

PRUNER = """
import sys, time
from pathlib import Path
from backends.sandbox.docker import DockerSandbox

images, stop, names, pruned = DockerSandbox().images, Path(sys.argv[1]), sys.argv[2:], 0
while not stop.exists():
    time.sleep(0.05)
    pruned += sum(images.prune(name) for name in names if images.inspect(name) is not None)
print(pruned)
"""


@pytest.mark.docker
def test_concurrent_builders_and_a_pruner_lose_no_image(tmp_path: Path) -> None:
    mark = f"t{uuid.uuid4().hex[:10]}"
    repo = TinyRepo(tmp_path / "repo")
    commit = repo.commit("one", {"a.py": "print(1)\n", "mark": mark})
    plan = BuildPlan.model_validate(
        records.PLAN.model_dump() | {"dependency_steps": (f"sleep 0.3; echo {mark} > /built",)}
    )
    (tmp_path / "plan.json").write_text(plan.model_dump_json())
    (tmp_path / "commit").write_text(commit)
    stop = tmp_path / "stop"
    names = [compute_source_image_name(plan, GitRepository(repo.path), commit, f"ada/{mark}"), plan.dependency_image]
    pruner = subprocess.Popen(
        [sys.executable, "-c", PRUNER, str(stop), *names], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    builders = [
        subprocess.Popen([sys.executable, "-c", BUILDER, str(tmp_path), mark], cwd=ROOT, stdout=subprocess.PIPE)
        for _ in range(2)
    ]
    results = [json.loads(builder.communicate(timeout=120)[0]) for builder in builders]
    while left := [
        name for name in names if DockerSandbox().images.inspect(name) is not None
    ]:  # until all holds are released
        assert pruner.poll() is None, left
        time.sleep(0.2)
    stop.touch()
    pruned = int(pruner.communicate(timeout=30)[0].split()[-1])
    assert [result["problems"] for result in results] == [[], []]
    made = [row for result in results for row in result["made"]]
    assert len(made) == 8
    # Each image is built once, and once more after each time it was pruned while it was not held.
    builds = sum(deps + source for deps, source, _, _ in made)
    assert builds == pruned >= len(names)
    assert {name for row in made for name in row[2:]} == set(names)
