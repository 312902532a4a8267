"""Pods of a real cluster: network, limits, rights, images, and what is left after a crash."""

from __future__ import annotations

import dataclasses
import http.server
import os
import shutil
import socketserver
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from backends.sandbox.base import Sandbox
from backends.sandbox.docker import DockerSandbox
from backends.sandbox.execution import ExecResult, ResourceLimits
from backends.sandbox.mounts import Mount
from backends.sandbox.registry import open_sandbox
from core.config import Settings
from core.errors import InputError, MachineError, Transient, UsageError
from tests.kubernetes_cluster import KubernetesCluster, build_docker_secret
from tests.registry import LocalRegistry

pytestmark = pytest.mark.kubernetes

LIMITS = ResourceLimits(seconds=60, memory_mb=256, disk_mb=100, pids=64, cpus=0.2, output_bytes=100_000)
MANIFEST = Path("deploy/kubernetes/rbac.yaml")
PROBE = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=5).read().decode())"
TURN_ON = """
import fcntl, socket, struct
with socket.socket() as probe:
    fcntl.ioctl(probe, 0x8914, struct.pack("16sH22x", b"eth0", 0x1043))
"""
ASK = """
import socket, sys
with socket.socket(socket.AF_UNIX) as client:
    client.connect("/run/mergemill/gateway/gateway.sock")
    client.sendall(sys.argv[1].encode())
    client.shutdown(socket.SHUT_WR)
    print(client.makefile().read())
"""
HOLDER = """
import sys, time
from backends.sandbox.execution import ResourceLimits
from backends.sandbox.registry import open_sandbox
from core.config import Settings
limits = ResourceLimits(seconds=600, memory_mb=128, disk_mb=100, pids=64, cpus=0.1, output_bytes=1000)
sandbox = open_sandbox(Settings(sandbox="kubernetes", kubernetes_registry=sys.argv[2]).sandbox)
with (
    sandbox.open_session(sys.argv[1], limits=limits) as session,
    sandbox.open_pool(sys.argv[1], limits=limits) as pool,
    sandbox.open_process(sys.argv[1], ["cat"], limits=limits) as process,
):
    session.run("true", seconds=60)
    pool.run(["true"])
    process.write(b"x\\n")
    process.read_line()
    print("in", flush=True)
    session.run("sleep 500", seconds=500)
"""


def open_pods(registry: str | None = None, **options: Any) -> Sandbox:
    return open_sandbox(Settings(sandbox="kubernetes", kubernetes_registry=registry, **options).sandbox)


@pytest.fixture
def pods(pod_options: dict[str, str]) -> Sandbox:
    return open_sandbox(Settings(sandbox="kubernetes", **pod_options).sandbox)  # type: ignore[arg-type]


def run_bash(pods: Sandbox, image: str, script: str, limits: ResourceLimits = LIMITS, **options: Any) -> ExecResult:
    return pods.run(image, ["bash", "-c", script], limits=limits, **options)


def wait_until(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 60
    while not (is_true := condition()) and time.monotonic() < deadline:
        time.sleep(0.3)
    return is_true


# ------------------------------------------------------------------------------------------------------------- network


@pytest.fixture
def server(cluster: KubernetesCluster) -> Iterator[str]:
    """URL of a server on this machine, at the address of the node: a gateway of agents."""

    class Greeter(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"hello")

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer((cluster.address, 0), Greeter) as greeter:
        thread = threading.Thread(target=greeter.serve_forever)
        thread.start()
        yield f"http://{cluster.address}:{greeter.server_port}/"
        greeter.shutdown()
        thread.join()


def test_a_pod_has_a_network_only_where_one_is_asked_for(pods: Sandbox, base: str, server: str) -> None:
    probe = ["python3", "-c", PROBE, server]
    assert pods.run(base, probe, limits=LIMITS, network=True).output == "hello\n"
    cut = pods.run(base, probe, limits=LIMITS)
    assert cut.exit_code == 1
    assert "unreachable" in cut.output
    with pods.open_pool(base, limits=LIMITS) as pool:
        assert "unreachable" in pool.run(probe, last=True).output


def test_root_in_a_pod_cannot_turn_the_network_on(pods: Sandbox, base: str) -> None:
    result = pods.run(base, ["python3", "-c", TURN_ON], limits=LIMITS)
    assert "Operation not permitted" in result.output
    unshared = run_bash(pods, base, "unshare -rn true && echo made; ip link 2>&1; cat /sys/class/net/eth0/flags")
    assert unshared.output.splitlines()[-1] == "0x1002"  # IFF_UP is the lowest bit


def test_a_session_reaches_a_server_of_this_machine(pods: Sandbox, base: str, server: str) -> None:
    with pods.open_session(base, limits=LIMITS, network=True) as session:
        session.write_files({"/probe.py": PROBE.encode()})
        assert session.run(f"python3 /probe.py {server}", seconds=30).output == "hello\n"
        session.run("echo kept > /state", seconds=30)
        assert session.read_file("/state") == b"kept\n"


def test_a_pod_whose_network_cannot_be_cut_does_not_start(cluster_registry: str, base: str) -> None:
    broken = open_pods(cluster_registry, kubernetes_helper_image="localhost/mergemill-test/pause:1")
    with pytest.raises((MachineError, InputError)) as raised:
        broken.run(base, ["true"], limits=LIMITS)
    assert "--kubernetes-helper-image" in raised.value.format_line()


# -------------------------------------------------------------------------------------------- sockets, volumes, folders


class Echo(socketserver.StreamRequestHandler):
    """Answers with what it was sent, once that has ended."""

    def handle(self) -> None:
        self.wfile.write(b"got " + self.rfile.read())


@contextmanager
def serve_echo(path: Path) -> Iterator[None]:
    with socketserver.ThreadingUnixStreamServer(str(path), Echo) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()
            path.unlink()


def test_an_agent_without_network_reaches_a_socket_of_this_machine(pods: Sandbox, base: str, server: str) -> None:
    folder = Path(tempfile.mkdtemp(prefix="gw-"))
    mounts = [Mount(source=str(folder), target="/run/mergemill/gateway")]
    ask = "python3 /run/mergemill/ask.py"
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder)
        first = stack.enter_context(ExitStack())
        first.enter_context(serve_echo(folder / "gateway.sock"))
        files = {"/run/mergemill/ask.py": ASK.encode(), "/probe.py": PROBE.encode()}
        session = stack.enter_context(pods.open_session(base, limits=LIMITS, files=files, network=False, mounts=mounts))
        assert session.run(f"{ask} hello", seconds=30).output == "got hello\n"
        each = f"{ask} $(printf %0100000d $i) > /tmp/$i &"
        many = session.run(f"for i in 1 2 3; do {each} done; wait; cat /tmp/1 /tmp/2 /tmp/3 | tr -d 0", seconds=30)
        assert many.output == "got 1\ngot 2\ngot 3\n"
        assert "unreachable" in session.run(f"python3 /probe.py {server}", seconds=30).output
        first.close()
        again = threading.Timer(2, lambda: stack.enter_context(serve_echo(folder / "gateway.sock")))
        again.start()
        assert session.run(f"{ask} waited", seconds=30).output == "got waited\n"  # for a server that starts again
        again.join()


def test_a_pod_has_copies_of_volumes_and_folders(pods: Sandbox, base: str, tmp_path: Path) -> None:
    name = f"mergemill-test-{uuid.uuid4().hex[:12]}"
    (tmp_path / "programs").mkdir()
    (tmp_path / "programs" / "tool").write_text("tool\n")
    (tmp_path / "programs" / "link").symlink_to("tool")
    pods.volumes.create(name, {})
    try:
        made = Mount(source=name, target="/opt/made", read_only=False)
        with pods.open_session(base, limits=LIMITS, mounts=[made]) as session:  # in a container of the engine
            assert session.run("echo made > /opt/made/file; chmod 755 /opt/made/file", seconds=30).exit_code == 0
        folder = Mount(source=str(tmp_path / "programs"), target="/usr/local/programs")
        mounts = [dataclasses.replace(made, read_only=True), folder]
        with pods.open_session(base, limits=LIMITS, network=False, mounts=mounts) as session:
            result = session.run("cat /opt/made/file /usr/local/programs/link; test -x /opt/made/file", seconds=30)
            assert (result.exit_code, result.output) == (0, "made\ntool\n")
    finally:
        wait_until(lambda: pods.volumes.remove(name))


def test_a_folder_with_pipes_is_not_mounted(pods: Sandbox, base: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    mounts = [Mount(source=str(tmp_path), target="/x")]
    with pytest.raises(UsageError, match="cannot mount"), pods.open_session(base, limits=LIMITS, mounts=mounts):
        pass


# -------------------------------------------------------------------------------------------------------------- limits


def test_a_command_that_uses_up_its_memory_is_killed(pods: Sandbox, base: str) -> None:
    result = pods.run(base, ["python3", "-c", "x = bytearray(10 ** 9)"], limits=LIMITS)
    assert (result.killed_by, result.exit_code) == ("memory", 137)
    with pods.open_session(base, limits=LIMITS) as session:
        greedy = session.run("exec python3 -c 'x = bytearray(10 ** 9)'", seconds=30)
        assert (greedy.killed_by, greedy.exit_code) == ("memory", 137)
        assert session.run("echo on", seconds=30).output == "on\n"


def test_a_command_that_fills_its_disk_is_killed(pods: Sandbox, base: str) -> None:
    fill = "for i in 1 2 3; do head -c 60000000 /dev/zero > /fill$i; done; echo full; sleep 300"
    result = run_bash(pods, base, fill, dataclasses.replace(LIMITS, seconds=200))
    assert (result.killed_by, result.exit_code, result.output) == ("disk", 137, "full\n")
    assert result.seconds < 150


def test_a_command_that_ends_its_pod_is_not_killed_by_a_limit(pods: Sandbox, base: str) -> None:
    result = run_bash(pods, base, "echo begun; kill -TERM 1; sleep 60")
    assert (result.killed_by, result.exit_code, result.output) == (None, 137, "begun\n")
    assert result.seconds < 30


def test_a_file_does_not_grow_beyond_the_disk_limit(pods: Sandbox, base: str) -> None:
    result = run_bash(pods, base, "head -c 200000000 /dev/zero > /big; stat -c %s /big")
    assert result.output.splitlines()[-1] == str(LIMITS.disk_bytes)


def test_a_pod_without_room_is_a_transient_error(cluster_registry: str, base: str) -> None:
    pods = open_pods(cluster_registry, kubernetes_pending_seconds=1)
    with pytest.raises(Transient, match="no node has room for a pod of 1000 CPUs") as raised:
        pods.run(base, ["true"], limits=dataclasses.replace(LIMITS, cpus=1000))
    assert "--workers" in raised.value.advice


def test_a_pod_has_few_privileges_and_no_account(pods: Sandbox, base: str) -> None:
    status = "grep -E '^(CapEff|NoNewPrivs|Seccomp):' /proc/self/status"
    script = f"{status}; ls /var/run/secrets; env | grep -c KUBERNETES; id -u"
    lines = run_bash(pods, base, script).output.split()
    assert lines[lines.index("NoNewPrivs:") + 1] == "1"
    assert lines[lines.index("Seccomp:") + 1] == "2"
    net_admin, sys_admin, net_raw = 1 << 12, 1 << 21, 1 << 13
    assert not int(lines[lines.index("CapEff:") + 1], 16) & (net_admin | sys_admin | net_raw)
    assert lines[-2:] == ["0", "0"]
    assert "kubernetes.io" not in lines


# ------------------------------------------------------------------------------------------------------ crash, removal


def test_pods_of_a_killed_process_are_removed(
    pods: Sandbox, cluster: KubernetesCluster, cluster_registry: str, base: str
) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLDER, base, cluster_registry], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"in\n"
        held = {pod["metadata"]["name"] for pod in cluster.list_pods()}
        assert len(held) >= 3
        assert pods.reap() == 0  # its process lives
        holder.kill()
    assert pods.reap() >= 3
    assert wait_until(lambda: not held & {pod["metadata"]["name"] for pod in cluster.list_pods()})


def test_nothing_is_left_of_finished_runs(pods: Sandbox, cluster: KubernetesCluster, base: str) -> None:
    run_bash(pods, base, "true")
    with pods.open_session(base, limits=LIMITS) as session:
        session.run("true", seconds=30)
    assert wait_until(lambda: not cluster.list_pods())


# -------------------------------------------------------------------------------------------------------------- images


def test_an_image_that_a_node_cannot_find_is_an_input_error(cluster_registry: str, pods: Sandbox) -> None:
    del pods
    with pytest.raises(InputError, match="no such image") as raised:
        open_pods(None).run(f"{cluster_registry}/none:1", ["true"], limits=LIMITS, network=True)
    assert "\n" not in raised.value.format_line()


def test_an_image_without_bash_is_an_input_error(pods: Sandbox, sandbox: DockerSandbox, image: str) -> None:
    with pytest.raises(InputError, match="does not start") as raised:
        pods.run(image, ["true"], limits=LIMITS, network=True)
    assert raised.value.advice == "the image needs /bin/bash, coreutils and tar"


def test_a_registry_that_denies_access_is_an_input_error_until_a_secret_is_named(
    cluster: KubernetesCluster, base: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked = LocalRegistry(tmp_path / "locked", locked=True)
    locked.start()
    try:
        monkeypatch.setenv("DOCKER_CONFIG", str(locked.home))
        cluster.trust_registry(locked.host)
        pods = open_pods(f"{locked.host}/tasks")
        with pytest.raises(InputError, match="denies access to the node") as raised:
            pods.run(base, ["true"], limits=LIMITS, network=True)
        assert "--kubernetes-pull-secret" in raised.value.advice
        cluster.apply(build_docker_secret("pull", locked.host, "ada", "secret"))
        trusted = open_pods(f"{locked.host}/tasks", kubernetes_pull_secret="pull")
        assert run_bash(trusted, base, "echo pulled").output == "pulled\n"
    finally:
        locked.stop()


def test_a_machine_without_an_engine_runs_what_a_registry_has(
    cluster_registry: str, pods: Sandbox, base: str, sandbox: DockerSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest = sandbox.images.push(base, f"{cluster_registry}/base:here")
    reference = f"{cluster_registry}/base@{digest}"
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:1")
    alone = open_pods(cluster_registry, kubernetes_helper_image=reference)
    assert alone.images.inspect("mergemill/env:task") is None
    pulled = alone.images.pull_by_digest(reference, "mergemill/env:task")
    assert pulled is not None
    assert pulled.digest == digest
    assert run_bash(alone, "mergemill/env:task", "echo run").output == "run\n"
    with pytest.raises(MachineError, match="images are built and kept by a Docker engine"):
        alone.images.build(base, ["true"], "x:1", limits=LIMITS)


# -------------------------------------------------------------------------------------------------------------- rights


def test_a_user_without_rights_is_told_what_gives_them(
    cluster: KubernetesCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(cluster.write_kubeconfig("guest")))
    with pytest.raises(MachineError, match="may not create pods in the namespace default") as raised:
        open_pods()
    assert "deploy/kubernetes/rbac.yaml" in raised.value.advice


def test_the_rights_of_the_manifest_suffice(
    cluster: KubernetesCluster, cluster_registry: str, base: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects = list(yaml.safe_load_all(MANIFEST.read_text()))
    binding = next(item for item in objects if item["kind"] == "RoleBinding")
    ada = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ada"}
    of_ada = {**binding, "metadata": {"name": "ada", "namespace": "mergemill"}, "subjects": [ada]}
    cluster.apply(*objects, of_ada)
    monkeypatch.setenv("KUBECONFIG", str(cluster.write_kubeconfig("ada", namespace="mergemill")))
    pods = open_pods(cluster_registry)
    assert run_bash(pods, base, "echo allowed").output == "allowed\n"
    assert pods.reap() == 0


def test_a_namespace_that_forbids_taking_the_network_away_is_a_machine_error(cluster: KubernetesCluster) -> None:
    labels = {"pod-security.kubernetes.io/enforce": "baseline"}
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "strict", "labels": labels}})
    with pytest.raises(MachineError, match="PodSecurity") as raised:
        open_pods(kubernetes_namespace="strict")
    assert "label the namespace" in raised.value.advice


def test_a_namespace_without_quota_left_is_a_transient_error(
    cluster: KubernetesCluster, cluster_registry: str, base: str
) -> None:
    cluster.apply(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "full"}},
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "none", "namespace": "full"},
            "spec": {"hard": {"pods": "0"}},
        },
    )
    pods = open_pods(cluster_registry, kubernetes_namespace="full", kubernetes_pending_seconds=1)
    with pytest.raises(Transient) as raised:
        pods.run(base, ["true"], limits=LIMITS)
    assert "quota" in raised.value.format_line() or "account" in raised.value.format_line()


@pytest.mark.parametrize(
    ("options", "option"),
    [
        ({"kubernetes_namespace": "absent"}, "--kubernetes-namespace"),
        ({"kubernetes_runtime_class": "absent"}, "--kubernetes-runtime-class"),
        ({"kubernetes_context": "absent"}, "--kubernetes-context"),
    ],
)
def test_a_setting_that_names_what_does_not_exist_is_a_usage_error(
    cluster: KubernetesCluster, options: dict[str, str], option: str
) -> None:
    with pytest.raises(UsageError) as raised:
        open_pods(**options)
    assert option in raised.value.format_line()


def test_a_user_whom_the_cluster_does_not_know_is_a_machine_error(
    cluster: KubernetesCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(cluster.write_kubeconfig("nobody")))
    with pytest.raises(MachineError, match="rejects the user"):
        open_pods()
