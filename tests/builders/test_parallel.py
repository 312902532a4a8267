"""Several processes and threads build the same images while others prune: each is made once, and none is lost."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

from backends.git import Repository
from backends.sandbox.docker import DockerSandbox
from builders.layers import source_name
from taskdb.records import BuildPlan
from tests import records
from tests.helpers import TinyRepo

ROOT = Path(__file__).parents[2]

BUILDER = """
import json, sys, threading
from pathlib import Path
from backends.git import Repository
from builders import layers
from taskdb.records import BuildPlan
from tests.boxes import make_services

folder, mark = Path(sys.argv[1]), sys.argv[2]
services = make_services(folder)
plan = BuildPlan.model_validate_json((folder / "plan.json").read_text())
clone, commit = Repository(folder / "repo"), (folder / "commit").read_text()
made, problems = [], []

def build():
    try:
        for _ in range(2):
            with services.sandbox.holding():
                deps = layers.dependencies(plan, clone, services)
                source = layers.source(plan, clone, commit, f"ada/{mark}", services)
                assert deps.image and source.image, (deps, source)
                ran = services.sandbox.run(source.image.name, ["cat", "/built", "a.py"], limits=services.test_limits())
                assert ran.exit_code == 0, ran.output
                made.append([deps.ran is not None, source.ran is not None, deps.image.name, source.image.name])
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

sandbox, stop, names, gone = DockerSandbox(), Path(sys.argv[1]), sys.argv[2:], 0
while not stop.exists():
    time.sleep(0.05)
    gone += sum(sandbox.prune_image(name) for name in names if sandbox.image(name) is not None)
print(gone)
"""


@pytest.mark.docker
def test_builders_and_a_pruner_at_once_lose_nothing(tmp_path: Path) -> None:
    mark = f"t{uuid.uuid4().hex[:10]}"
    repo = TinyRepo(tmp_path / "repo")
    commit = repo.commit("one", {"a.py": "print(1)\n", "mark": mark})
    plan = BuildPlan.model_validate(
        records.PLAN.model_dump() | {"dependency_steps": (f"sleep 0.3; echo {mark} > /built",)}
    )
    (tmp_path / "plan.json").write_text(plan.model_dump_json())
    (tmp_path / "commit").write_text(commit)
    stop = tmp_path / "stop"
    names = [source_name(plan, Repository(repo.path), commit, f"ada/{mark}"), plan.dependency_image]
    pruner = subprocess.Popen(
        [sys.executable, "-c", PRUNER, str(stop), *names], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    builders = [
        subprocess.Popen([sys.executable, "-c", BUILDER, str(tmp_path), mark], cwd=ROOT, stdout=subprocess.PIPE)
        for _ in range(2)
    ]
    told = [json.loads(builder.communicate(timeout=120)[0]) for builder in builders]
    while left := [name for name in names if DockerSandbox().image(name) is not None]:  # nobody holds them any more
        assert pruner.poll() is None, left
        time.sleep(0.2)
    stop.touch()
    gone = int(pruner.communicate(timeout=30)[0].split()[-1])
    assert [one["problems"] for one in told] == [[], []]
    made = [row for one in told for row in one["made"]]
    assert len(made) == 8
    # Each image was built once, and once more for each time that it was pruned while nobody worked with it.
    builds = sum(deps + source for deps, source, _, _ in made)
    assert builds == gone >= len(names)
    assert {name for row in made for name in row[2:]} == set(names)
