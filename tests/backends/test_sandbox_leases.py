"""Images in use are not pruned: not between two containers, not while another process works with them."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from backends.sandbox.base import Limits
from backends.sandbox.docker import DockerSandbox
from backends.sandbox.inventory import chained, of_layers
from tests.registry import tiny_image

LIMITS = Limits(seconds=60, memory_mb=256, disk_mb=400, pids=64, cpus=1, output_bytes=100_000)

HOLDER = """
import sys, time
from backends.sandbox.docker import DockerSandbox
sandbox = DockerSandbox()
with sandbox.holding():
    sandbox.image(sys.argv[1])
    print("in", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def image(sandbox):
    """A tiny image, which is removed afterwards."""
    name = tiny_image(sandbox)
    yield name
    sandbox.remove_image(name)


@pytest.mark.docker
def test_an_image_that_a_thread_holds_stays_until_it_is_done(sandbox, image):
    holds, done = threading.Event(), threading.Event()

    def hold():
        with sandbox.holding():
            sandbox.image(image)
            holds.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    holds.wait()
    assert not sandbox.prune_image(image)
    done.set()
    thread.join()
    assert sandbox.prune_image(image)
    assert sandbox.image(image) is None


@pytest.mark.docker
def test_an_image_that_another_process_holds_stays_until_that_is_dead(sandbox, image):
    with subprocess.Popen([sys.executable, "-c", HOLDER, image], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"in\n"
        assert not sandbox.prune_image(image)
        holder.kill()
    assert sandbox.prune_image(image)


@pytest.mark.docker
def test_an_image_of_a_container_stays(sandbox, image):
    client = sandbox._client()
    container = client.create_container(image, ["/what"])["Id"]
    try:
        assert not sandbox.prune_image(image)
    finally:
        client.remove_container(container)
    assert sandbox.prune_image(image)


@pytest.mark.docker
def test_who_looked_for_an_image_that_is_not_there_holds_nothing(sandbox, image):
    sandbox.remove_image(image)
    with sandbox.holding():
        assert sandbox.image(image) is None
        assert DockerSandbox().prune_image(image)


@pytest.mark.docker
def test_every_use_of_an_image_is_told_and_so_is_the_end_of_work_on_it(base, image):
    used = []
    sandbox = DockerSandbox(used=used.append)
    sandbox.image(image)
    assert used == []
    sandbox.run(base, ["true"], limits=LIMITS)
    assert used == [base]
    with sandbox.holding():
        sandbox.image(image)
    assert used == [base, image]


@pytest.mark.docker
def test_an_inventory_tells_layers_with_their_sizes(sandbox, image):
    name = tiny_image(sandbox, f"{image}-above", under=image, size=5008)
    alone = tiny_image(sandbox, under=tiny_image(sandbox, image.replace("tiny:", "tiny:hidden-")))
    sandbox.remove_image(image.replace("tiny:", "tiny:hidden-"))  # its layer stays, and only the history tells its size
    try:
        assert [layer.size for layer in sandbox.inventory(alone)[0].layers] == [8000, 8000]
        under, above = sandbox.inventory(image)
        assert [layer.size for layer in under.layers] == [8000]
        assert [layer.size for layer in above.layers] == [8000, 5008]
        assert above.layers[0] == under.layers[0]
        assert sandbox.taken(image) == 13_008
    finally:
        sandbox.remove_image(name)
        sandbox.remove_image(alone)


def test_steps_without_a_layer_take_no_room_and_a_layer_is_named_with_all_below_it():
    assert of_layers(2, [10, 0, 20, 0]) == [10, 20]
    assert of_layers(2, [10, 0]) == [10, 0]
    assert of_layers(3, [0, 10]) == [10, 0, 0]
    first = chained(["sha256:a", "sha256:b"])
    assert chained(["sha256:a"]) == first[:1]
    assert chained(["sha256:b"])[0] not in first
