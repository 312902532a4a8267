"""Images in use are not pruned: neither between two containers nor while another process holds them."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from backends.sandbox.docker import DockerSandbox
from backends.sandbox.execution import ResourceLimits
from backends.sandbox.inventory import assign_layer_sizes, build_chain_ids
from tests.registry import make_tiny_image

LIMITS = ResourceLimits(seconds=60, memory_mb=256, disk_mb=400, pids=64, cpus=1, output_bytes=100_000)

HOLDER = """
import sys, time
from backends.sandbox.docker import DockerSandbox
sandbox = DockerSandbox()
with sandbox.images.hold():
    sandbox.images.inspect(sys.argv[1])
    print("in", flush=True)
    time.sleep(600)
"""


@pytest.mark.docker
def test_an_image_held_by_a_thread_is_not_pruned(sandbox, image):
    holds, done = threading.Event(), threading.Event()

    def hold():
        with sandbox.images.hold():
            sandbox.images.inspect(image)
            holds.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    holds.wait()
    assert not sandbox.images.prune(image)
    done.set()
    thread.join()
    assert sandbox.images.prune(image)
    assert sandbox.images.inspect(image) is None


@pytest.mark.docker
def test_an_image_held_by_another_process_is_not_pruned_while_it_lives(sandbox, image):
    with subprocess.Popen([sys.executable, "-c", HOLDER, image], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"in\n"
        assert not sandbox.images.prune(image)
        holder.kill()
    assert sandbox.images.prune(image)


@pytest.mark.docker
def test_an_image_of_a_container_is_not_pruned(sandbox, image):
    client = sandbox.engine.get_client()
    container = client.create_container(image, ["/what"])["Id"]
    try:
        assert not sandbox.images.prune(image)
    finally:
        client.remove_container(container)
    assert sandbox.images.prune(image)


@pytest.mark.docker
def test_looking_up_a_missing_image_holds_nothing(sandbox, image):
    sandbox.images.remove(image)
    with sandbox.images.hold():
        assert sandbox.images.inspect(image) is None
        assert DockerSandbox().images.prune(image)


@pytest.mark.docker
def test_every_use_of_an_image_and_the_end_of_its_lease_are_recorded(base, image):
    used = []
    sandbox = DockerSandbox(record_use=used.append)
    sandbox.images.inspect(image)
    assert used == []
    sandbox.run(base, ["true"], limits=LIMITS)
    assert used == [base]
    with sandbox.images.hold():
        sandbox.images.inspect(image)
    assert used == [base, image]


@pytest.mark.docker
def test_listed_images_have_layers_with_sizes(sandbox, image):
    name = make_tiny_image(sandbox, f"{image}-above", under=image, size=5008)
    alone = make_tiny_image(sandbox, under=make_tiny_image(sandbox, image.replace("tiny:", "tiny:hidden-")))
    sandbox.images.remove(
        image.replace("tiny:", "tiny:hidden-")
    )  # its layer stays, and only the history tells its size
    try:
        assert [layer.size for layer in sandbox.images.list_images(alone)[0].layers] == [8000, 8000]
        under, above = sandbox.images.list_images(image)
        assert [layer.size for layer in under.layers] == [8000]
        assert [layer.size for layer in above.layers] == [8000, 5008]
        assert above.layers[0] == under.layers[0]
        assert sandbox.images.estimate_size(image) == 13_008
    finally:
        sandbox.images.remove(name)
        sandbox.images.remove(alone)


def test_steps_without_a_layer_have_no_size_and_chain_ids_include_all_layers_below():
    assert assign_layer_sizes(2, [10, 0, 20, 0]) == [10, 20]
    assert assign_layer_sizes(2, [10, 0]) == [10, 0]
    assert assign_layer_sizes(3, [0, 10]) == [10, 0, 0]
    first = build_chain_ids(["sha256:a", "sha256:b"])
    assert build_chain_ids(["sha256:a"]) == first[:1]
    assert build_chain_ids(["sha256:b"])[0] not in first
