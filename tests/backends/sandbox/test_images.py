"""Image store of the Docker backend: build, read layers, import, remove, and reap containers."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tarfile
import uuid

import pytest

from backends.sandbox import container_names
from backends.sandbox.execution import ResourceLimits
from core.errors import InputError

pytestmark = pytest.mark.docker

LIMITS = ResourceLimits(seconds=60, memory_mb=256, disk_mb=400, pids=64, cpus=1, output_bytes=100_000)


@pytest.fixture
def name(sandbox):
    """Yield a name for an image, which is removed afterwards."""
    name = f"mergemill-sandbox-test/{uuid.uuid4().hex[:12]}:one"
    yield name
    sandbox.images.remove(name)


def tree(files: dict[str, bytes], uid: int = 0) -> io.BytesIO:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for path, content in files.items():
            entry = tarfile.TarInfo(path)
            entry.size, entry.uid = len(content), uid
            tar.addfile(entry, io.BytesIO(content))
    out.seek(0)
    return out


def read_layers(sandbox, name):
    """Return (diff id, files) of each layer, base first."""
    with sandbox.images.open_layers(name) as layers:
        digests = []
        for diff_id, stream in layers:
            with tarfile.open(fileobj=stream, mode="r|") as tar:
                digests.append(
                    (
                        diff_id,
                        {
                            entry.name.removeprefix("./"): tar.extractfile(entry).read() if entry.isreg() else None
                            for entry in tar
                        },
                    )
                )
    return digests


def test_a_build_keeps_tree_and_results_and_no_trace_of_files_and_environment(sandbox, base, name):
    result, image = sandbox.images.build(
        base,
        ["bash", "-c", 'cat /run/mergemill/ca.pem >&2; cat /run/pin; echo "$SECRET"; id -u > /made'],
        name,
        limits=LIMITS,
        network=False,
        tree=tree({"testbed/a.py": b"x"}, uid=1000),
        files={"/run/mergemill/ca.pem": b"the-certificate", "/run/pin": b"the-pin"},
        env={"SECRET": "the 'secret'"},
        keep_env={"KEPT": "k"},
        workdir="/testbed",
        labels={"mergemill.test.kind": "t"},
    )
    assert (result.exit_code, "the-certificate" in result.output, "the 'secret'" in result.output) == (0, True, True)
    assert image is not None
    assert image.digest.startswith("sha256:")
    assert image.labels["mergemill.test.kind"] == "t"
    assert 0 < image.layer_bytes < 10_000

    last = read_layers(sandbox, name)[-1][1]
    assert {path for path, content in last.items() if content is not None} == {"testbed/a.py", "made"}
    assert not [path for path in last if "mergemill" in path or "pin" in path or ".wh." in path]

    shown = subprocess.run(["docker", "inspect", name], capture_output=True, text=True, check=True).stdout
    history = subprocess.run(["docker", "history", "--no-trunc", name], capture_output=True, text=True, check=True)
    for hidden in ("secret", "SECRET", "certificate", "id -u"):
        assert hidden not in shown + history.stdout
    config = json.loads(shown)[0]["Config"]
    assert "KEPT=k" in config["Env"]
    assert any(item.startswith("PATH=/opt/venv/bin:") for item in config["Env"])

    inside = sandbox.run(name, ["sh", "-c", "pwd; stat -c %u a.py; echo $KEPT; ls /run"], limits=LIMITS)
    assert inside.output.split() == ["/testbed", "1000", "k"]


def test_a_failed_build_leaves_no_image(sandbox, base, name):
    result, image = sandbox.images.build(base, ["bash", "-c", "echo no; exit 5"], name, limits=LIMITS, network=False)
    assert (result.exit_code, result.output, image, sandbox.images.inspect(name)) == (5, "no\n", None, None)


def test_a_build_that_takes_too_long_leaves_no_image(sandbox, base, name):
    slow = ResourceLimits(**{**LIMITS.__dict__, "seconds": 1.5})
    result, image = sandbox.images.build(base, ["sleep", "100"], name, limits=slow, network=False)
    assert (result.killed_by, image) == ("time", None)


def test_layers_are_read_base_first_with_the_diff_ids_of_the_image(sandbox, base, name):
    sandbox.images.build(base, ["true"], name, limits=LIMITS, network=False, tree=tree({"new": b"1" * 70_000}))
    shown = subprocess.run(["docker", "inspect", name], capture_output=True, text=True, check=True).stdout
    layers = read_layers(sandbox, name)
    assert [diff_id for diff_id, _ in layers] == json.loads(shown)[0]["RootFS"]["Layers"]
    assert "usr/bin/python3.11" in layers[0][1]
    assert layers[-1][1]["new"] == b"1" * 70_000


def test_layers_of_a_missing_image_are_an_input_error(sandbox):
    with pytest.raises(InputError), sandbox.images.open_layers("mergemill-sandbox-test/absent:1"):
        pass


def test_images_are_found_by_label_name_and_digest(sandbox, base, name):
    _, image = sandbox.images.build(
        base, ["true"], name, limits=LIMITS, network=False, labels={"mergemill.test.find": name}
    )
    assert sandbox.images.find_by_label(f"mergemill.test.find={name}") == [image]
    assert sandbox.images.inspect(image.digest).digest == image.digest
    assert sandbox.images.inspect("mergemill-sandbox-test/absent:1") is None


def test_a_root_file_system_becomes_an_image(sandbox, name):
    sandbox.images.import_rootfs(
        tree({"hello": b"world"}), name, env={"A": 'b "c"'}, labels={"mergemill.test.import": "x y"}
    )
    assert sandbox.images.inspect(name).labels == {"mergemill.test.import": "x y"}
    assert [files for _, files in read_layers(sandbox, name)] == [{"hello": b"world"}]


def test_removing_an_image_twice_is_no_error(sandbox, base, name):
    sandbox.images.build(base, ["true"], name, limits=LIMITS, network=False)
    sandbox.images.remove(name)
    sandbox.images.remove(name)
    assert sandbox.images.inspect(name) is None


def test_only_containers_of_dead_drivers_are_reaped(sandbox, base, own_host):
    driver = "from backends.sandbox.container_names import make_container_name; print(make_container_name())"
    dead = subprocess.run([sys.executable, "-c", driver], capture_output=True, text=True, check=True).stdout.strip()
    of_another_machine = dead
    dead = container_names.PREFIX + own_host + dead[dead.index(".") :]
    alive = container_names.make_container_name()
    for container in (dead, alive):
        subprocess.run(
            ["docker", "run", "-d", "--name", container, base, "sleep", "60"], check=True, capture_output=True
        )
    assert not container_names.is_orphan(of_another_machine)
    try:
        assert sandbox.reap() == 1
        left = subprocess.run(
            ["docker", "ps", "-a", "--format", "{{.Names}}"], capture_output=True, text=True, check=False
        ).stdout
        assert alive in left.split()
        assert dead not in left.split()
    finally:
        subprocess.run(["docker", "rm", "-f", alive], check=True, capture_output=True)
