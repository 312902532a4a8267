"""A real Kubernetes cluster of one node in a temporary folder, with every part but kube-proxy and DNS.

`scripts/test kubernetes` compiles Kubernetes' programs into the user's cache (`setup_kubernetes` in `scripts/lib.sh`);
etcd, containerd, runc and the CNI plugins are Debian's. The node's containerd is one of its own, so an engine of this
machine is not touched. Root is needed. Without kube-proxy there are no addresses of
services, and nothing enforces network policies.
"""

from __future__ import annotations

import base64
import contextlib
import datetime as dt
import io
import ipaddress
import json
import os
import shutil
import signal
import socket
import subprocess
import tarfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import requests
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from backends.sandbox.locks import hold_machine_lock

VERSION = "1.34.4"
PROGRAMS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "pause")
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mergemill-tests"
PROGRAM_FOLDER = CACHE / f"kubernetes-{VERSION}"
SYSTEM_PATH = f"{os.environ['PATH']}:/usr/sbin:/sbin"
CNI_FOLDER = Path("/usr/lib/cni")
NODE = "mergemill-node"
PAUSE_IMAGE = "localhost/mergemill-test/pause:1"
POD_RANGE, SERVICE_RANGE = "10.231.7.0/24", "10.231.8.0/24"
START_SECONDS = 120.0
USERS: Mapping[str, tuple[str, ...]] = {
    "admin": ("system:masters",),
    "system:kube-controller-manager": (),
    "system:kube-scheduler": (),
    f"system:node:{NODE}": ("system:nodes",),
    "ada": (),
    "guest": (),
}
"""Users and their groups; the last two have no rights but those that a test gives them."""


def find_missing_part() -> str:
    """Return what a cluster lacks on this machine, empty where nothing is missing."""
    if os.geteuid() != 0:
        return "only root can start a kubelet"
    if missing := [name for name in PROGRAMS if not (PROGRAM_FOLDER / name).exists()]:
        return f"{missing[0]} is not in {PROGRAM_FOLDER}: scripts/test kubernetes compiles it"
    for program in ("etcd", "containerd", "ctr", "runc", "docker-registry"):
        if shutil.which(program, path=SYSTEM_PATH) is None:
            return f"{program} is not installed: scripts/test kubernetes installs it"
    return "" if (CNI_FOLDER / "ptp").exists() else f"there are no CNI plugins in {CNI_FOLDER}"


def require_kubernetes() -> None:
    """Skip the test where no cluster can be started; in CI it fails."""
    if missing := find_missing_part():
        (pytest.fail if os.environ.get("CI") else pytest.skip)(missing)


@dataclass
class KubernetesCluster:
    """A cluster below `folder`. Ports are free ones of this machine."""

    folder: Path
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self.address = _find_own_address()
        names = ("etcd", "etcd-peer", "api", "controllers", "scheduler", "kubelet")
        self.ports = dict(zip(names, _find_free_ports(len(names)), strict=True))
        self.authority = Authority(self.folder / "pki")
        self.socket = self.folder / "containerd.sock"

    @property
    def url(self) -> str:
        """URL of the API server."""
        return f"https://127.0.0.1:{self.ports['api']}"

    def start(self) -> None:
        """Start all parts; returns once the node is ready and its pods may be created."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.authority.issue("server", "kube-apiserver", ["127.0.0.1", self.address])
        self.authority.issue("accounts", "accounts")
        self.authority.issue("kubelet-client", "kube-apiserver", groups=["system:masters"])
        tokens = [",".join([user, user, user, f'"{",".join(groups)}"']) for user, groups in USERS.items()]
        (self.folder / "tokens.csv").write_text("\n".join(tokens) + "\n")
        for user in USERS:
            self.write_kubeconfig(user)
        self._start_etcd()
        self._start_api()
        self._start_node()
        self._start_controllers()
        self._wait_for(self._is_node_ready, "the node does not get ready")
        self._wait_for(lambda: self._get("/api/v1/namespaces/default/serviceaccounts/default").ok, "no accounts")

    def stop(self) -> None:
        """Remove all pods, stop all parts, and remove what they left in the kernel."""
        with contextlib.suppress(requests.RequestException, AssertionError):
            self._delete_pods()
        for name in ("kubelet", "scheduler", "controllers"):
            self._end(name)
        with contextlib.suppress(subprocess.CalledProcessError):
            for task in self.run_ctr("tasks", "ls", "-q").split():
                self.run_ctr("tasks", "kill", "-s", "KILL", "-a", task)
        for name in ("containerd", "api", "etcd"):
            self._end(name)
        _end_shims(self.socket)
        _unmount_below(self.folder)
        _remove_control_groups()

    def write_kubeconfig(self, user: str, *, namespace: str = "default", url: str | None = None) -> Path:
        """Write the kubeconfig of a user and return its path."""
        path = self.folder / f"{user.replace(':', '-')}-{namespace}.kubeconfig"
        cluster = {"server": url or self.url, "certificate-authority": str(self.authority.folder / "ca.crt")}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": user, "user": {"token": user}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": user, "namespace": namespace}}],
        }
        path.write_text(yaml.safe_dump(config))
        return path

    def apply(self, *objects: Mapping[str, Any]) -> None:
        """Create objects of the API; those that exist stay as they are."""
        for document in objects:
            group = document["apiVersion"]
            root = f"/api/{group}" if "/" not in group else f"/apis/{group}"
            plural = f"{document['kind'].lower()}s"
            inside = f"/namespaces/{document['metadata']['namespace']}" if "namespace" in document["metadata"] else ""
            answer = self._request("POST", f"{root}{inside}/{plural}", json=document)
            assert answer.ok or answer.status_code == 409, answer.text

    def list_pods(self, namespace: str = "default") -> list[dict[str, Any]]:
        """Return the pods of a namespace as the API gives them."""
        return list(self._get(f"/api/v1/namespaces/{namespace}/pods").json()["items"])

    def import_image(self, archive: bytes) -> None:
        """Give the node the images of a `docker save` archive."""
        self.run_ctr("images", "import", "--snapshotter", "overlayfs", "-", data=archive)

    def trust_registry(self, host: str) -> None:
        """Let the node pull from a registry without TLS."""
        folder = self.folder / "certs.d" / host
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "hosts.toml").write_text(f'server = "http://{host}"\n[host."http://{host}"]\n')

    def run_ctr(self, *words: str, data: bytes = b"") -> str:
        """Run containerd's client in the namespace of the kubelet."""
        command = [_locate("ctr"), "-a", str(self.socket), "-n", "k8s.io", *words]
        return subprocess.run(command, input=data, capture_output=True, check=True).stdout.decode()

    # --- parts -------------------------------------------------------------------------------------------------------

    def _start_etcd(self) -> None:
        peer = f"http://127.0.0.1:{self.ports['etcd-peer']}"
        url = f"http://127.0.0.1:{self.ports['etcd']}"
        options = {
            "name": "test",
            "data-dir": self.folder / "etcd",
            "listen-client-urls": url,
            "advertise-client-urls": url,
            "listen-peer-urls": peer,
            "initial-advertise-peer-urls": peer,
            "initial-cluster": f"test={peer}",
        }
        self._run_part("etcd", _locate("etcd"), options)
        self._wait_for(lambda: requests.get(f"{url}/health", timeout=2).ok, "etcd does not answer")

    def _start_api(self) -> None:
        pki = self.authority.folder
        options = {
            "etcd-servers": f"http://127.0.0.1:{self.ports['etcd']}",
            "bind-address": "127.0.0.1",
            "secure-port": self.ports["api"],
            "advertise-address": self.address,
            "service-cluster-ip-range": SERVICE_RANGE,
            "authorization-mode": "Node,RBAC",
            "enable-admission-plugins": "NodeRestriction",
            "token-auth-file": self.folder / "tokens.csv",
            "tls-cert-file": pki / "server.crt",
            "tls-private-key-file": pki / "server.key",
            "client-ca-file": pki / "ca.crt",
            "kubelet-client-certificate": pki / "kubelet-client.crt",
            "kubelet-client-key": pki / "kubelet-client.key",
            "kubelet-preferred-address-types": "InternalIP",
            "service-account-issuer": "https://kubernetes.default.svc",
            "service-account-key-file": pki / "accounts.key",
            "service-account-signing-key-file": pki / "accounts.key",
            "allow-privileged": "true",
        }
        self._run_part("api", PROGRAM_FOLDER / "kube-apiserver", options)
        self._wait_for(lambda: self._get("/readyz").ok, "the API server does not get ready")

    def _start_controllers(self) -> None:
        for name, program in (("controllers", "kube-controller-manager"), ("scheduler", "kube-scheduler")):
            kubeconfig = self.write_kubeconfig(f"system:{program}")
            options = {
                "kubeconfig": kubeconfig,
                "authentication-kubeconfig": kubeconfig,
                "authorization-kubeconfig": kubeconfig,
                "bind-address": "127.0.0.1",
                "secure-port": self.ports[name],
                "leader-elect": "false",
            }
            if name == "controllers":
                options |= {
                    "use-service-account-credentials": "true",
                    "service-account-private-key-file": self.authority.folder / "accounts.key",
                    "root-ca-file": self.authority.folder / "ca.crt",
                }
                self._grant_controllers()
            self._run_part(name, PROGRAM_FOLDER / program, options)

    def _grant_controllers(self) -> None:
        """Wait for the roles that the API server makes when it starts."""
        path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/system:kube-scheduler"
        self._wait_for(lambda: self._get(path).ok, "no roles")

    def _start_node(self) -> None:
        self._start_containerd()
        config = {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": self.address,
            "port": self.ports["kubelet"],
            "healthzPort": 0,
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": False},
                "x509": {"clientCAFile": str(self.authority.folder / "ca.crt")},
            },
            "authorization": {"mode": "AlwaysAllow"},  # of those with a certificate, the API server alone
            "containerRuntimeEndpoint": f"unix://{self.socket}",
            "cgroupDriver": "cgroupfs",
            "failSwapOn": False,
            "failCgroupV1": False,
            "evictionHard": {"memory.available": "50Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
            "imageGCHighThresholdPercent": 100,
            "podLogsDir": str(self.folder / "logs"),
            "volumePluginDir": str(self.folder / "plugins"),
            "volumeStatsAggPeriod": "5s",
            "makeIPTablesUtilChains": False,
            "podPidsLimit": 1024,
            "eventRecordQPS": 0,
            "serializeImagePulls": False,
        }
        (self.folder / "kubelet.yaml").write_text(yaml.safe_dump(config))
        options = {
            "config": self.folder / "kubelet.yaml",
            "kubeconfig": self.write_kubeconfig(f"system:node:{NODE}"),
            "root-dir": self.folder / "kubelet",
            "cert-dir": self.folder / "kubelet-pki",
            "hostname-override": NODE,
            "node-ip": self.address,
        }
        self._run_part("kubelet", PROGRAM_FOLDER / "kubelet", options)

    def _start_containerd(self) -> None:
        (self.folder / "cni").mkdir(exist_ok=True)
        ipam = {
            "type": "host-local",
            "dataDir": str(self.folder / "cni-data"),
            "ranges": [[{"subnet": POD_RANGE}]],
            "routes": [{"dst": "0.0.0.0/0"}],
        }
        network = {"cniVersion": "0.4.0", "name": "test", "plugins": [{"type": "ptp", "ipMasq": False, "ipam": ipam}]}
        (self.folder / "cni" / "10-test.conflist").write_text(json.dumps(network))
        runtime = 'plugins."io.containerd.grpc.v1.cri"'
        lines = [
            "version = 2",
            f'root = "{self.folder}/containerd"',
            f'state = "{self.folder}/run"',
            f'[grpc]\naddress = "{self.socket}"',
            f'[ttrpc]\naddress = "{self.socket}.ttrpc"',
            f'[{runtime}]\nsandbox_image = "{PAUSE_IMAGE}"\nstream_server_address = "127.0.0.1"',
            # Root need not have the right (CAP_SYS_RESOURCE) to protect processes from the kernel's memory killer.
            "restrict_oom_score_adj = true",
            f'[{runtime}.containerd]\nsnapshotter = "overlayfs"\ndefault_runtime_name = "runc"',
            f'[{runtime}.containerd.runtimes.runc]\nruntime_type = "io.containerd.runc.v2"',
            f"[{runtime}.containerd.runtimes.runc.options]\nSystemdCgroup = false",
            f'[{runtime}.cni]\nbin_dir = "{CNI_FOLDER}"\nconf_dir = "{self.folder}/cni"',
            f'[{runtime}.registry]\nconfig_path = "{self.folder}/certs.d"',
        ]
        (self.folder / "containerd.toml").write_text("\n".join(lines) + "\n")
        self._run_part("containerd", _locate("containerd"), {"config": self.folder / "containerd.toml"})
        self._wait_for(lambda: bool(self.run_ctr("version")), "containerd does not answer")
        self.import_image(build_image(PAUSE_IMAGE, {"pause": (PROGRAM_FOLDER / "pause").read_bytes()}, ["/pause"]))

    def _run_part(self, name: str, program: str | Path, options: Mapping[str, object]) -> None:
        words = [str(program), *(f"--{key}={value}" for key, value in options.items())]
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                words, stdout=log, stderr=log, cwd=self.folder, env={"PATH": SYSTEM_PATH, "HOME": str(self.folder)}
            )

    def _end(self, name: str) -> None:
        if (process := self.processes.pop(name, None)) is None:
            return
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    # --- requests ----------------------------------------------------------------------------------------------------

    def _get(self, path: str) -> requests.Response:
        return self._request("GET", path)

    def _request(self, method: str, path: str, **options: Any) -> requests.Response:
        headers = {"Authorization": "Bearer admin"}
        verify = str(self.authority.folder / "ca.crt")
        return requests.request(method, f"{self.url}{path}", headers=headers, verify=verify, timeout=10, **options)

    def _is_node_ready(self) -> bool:
        answer = self._get(f"/api/v1/nodes/{NODE}")
        if not answer.ok:
            return False
        node = answer.json()
        conditions = node["status"].get("conditions", [])
        is_ready = any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)
        return is_ready and not node["spec"].get("taints")

    def _delete_pods(self) -> None:
        namespaces = [item["metadata"]["name"] for item in self._get("/api/v1/namespaces").json()["items"]]
        for namespace in namespaces:
            self._request("DELETE", f"/api/v1/namespaces/{namespace}/pods", params={"gracePeriodSeconds": 1})
        self._wait_for(lambda: not any(map(self.list_pods, namespaces)), "pods are left")

    def _wait_for(self, condition: Callable[[], bool], problem: str) -> None:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            with contextlib.suppress(requests.RequestException, subprocess.CalledProcessError):
                if condition():
                    return
            if dead := [name for name, process in self.processes.items() if process.poll() is not None]:
                raise AssertionError(f"{dead[0]} ended: {self._read_log(dead[0])}")
            time.sleep(0.2)
        raise AssertionError(f"{problem}: {self._read_log('kubelet')}")

    def _read_log(self, name: str) -> str:
        path = self.folder / f"{name}.log"
        return path.read_text(errors="replace")[-3000:] if path.exists() else ""


class Authority:
    """A certificate authority below a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._key = rsa.generate_private_key(65537, 2048)
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test authority")])
        own = self._build(self._name, self._key).add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        usage = x509.KeyUsage(
            digital_signature=True,
            key_cert_sign=True,
            crl_sign=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            encipher_only=False,
            decipher_only=False,
        )
        own = own.add_extension(usage, True)
        own = own.add_extension(x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), False)
        self._write("ca", self._key, own.sign(self._key, hashes.SHA256()))

    def issue(self, file: str, name: str, addresses: Sequence[str] = (), *, groups: Sequence[str] = ()) -> None:
        """Write `FILE.crt` and `FILE.key` for a name in groups, valid at these addresses."""
        key = rsa.generate_private_key(65537, 2048)
        parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        subject = x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, name)])
        usage = [ExtendedKeyUsageOID.SERVER_AUTH if addresses else ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = self._build(subject, key).add_extension(x509.ExtendedKeyUsage(usage), False)
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = builder.add_extension(issuer, False)
        if addresses:
            names = [x509.IPAddress(ipaddress.ip_address(address)) for address in addresses]
            builder = builder.add_extension(x509.SubjectAlternativeName([*names, x509.DNSName("localhost")]), False)
        self._write(file, key, builder.sign(self._key, hashes.SHA256()))

    def _build(self, subject: x509.Name, key: rsa.RSAPrivateKey) -> x509.CertificateBuilder:
        now = dt.datetime.now(dt.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(hours=1))
            .not_valid_after(now + dt.timedelta(days=2))
        )

    def _write(self, file: str, key: rsa.RSAPrivateKey, certificate: x509.Certificate) -> None:
        pem = serialization.Encoding.PEM
        form, plain = serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        (self.folder / f"{file}.key").write_bytes(key.private_bytes(pem, form, plain))
        (self.folder / f"{file}.crt").write_bytes(certificate.public_bytes(pem))


def build_image(name: str, files: Mapping[str, bytes], command: Sequence[str]) -> bytes:
    """Return an archive as `docker save` writes it, with an image of one layer."""
    layer = _build_tar(files, mode=0o755)
    digest = _sha256(layer)
    config = {
        "architecture": {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine),
        "os": "linux",
        "config": {"Cmd": list(command)},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
        "history": [{}],
    }
    manifest = [{"Config": "config.json", "RepoTags": [name], "Layers": ["layer.tar"]}]
    content = {
        "config.json": json.dumps(config).encode(),
        "layer.tar": layer,
        "manifest.json": json.dumps(manifest).encode(),
    }
    return _build_tar(content, mode=0o644)


def _build_tar(files: Mapping[str, bytes], *, mode: int) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for path, content in files.items():
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode = len(content), mode
            tar.addfile(entry, io.BytesIO(content))
    return out.getvalue()


def _sha256(data: bytes) -> str:
    digest = hashes.Hash(hashes.SHA256())
    digest.update(data)
    return digest.finalize().hex()


def _locate(program: str) -> str:
    path = shutil.which(program, path=SYSTEM_PATH)
    assert path, program
    return path


def _find_own_address() -> str:
    """Return the address of this machine on the way out; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))
        return str(probe.getsockname()[0])


def _find_free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(socket.socket()) for _ in range(count)]
        for server in servers:
            server.bind(("", 0))
        return [int(server.getsockname()[1]) for server in servers]


def _end_shims(socket_path: Path) -> None:
    """End the processes that a containerd left to its containers."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = path.read_bytes().split(b"\0")
            if b"shim" in words[0] and str(socket_path).encode() in words:
                os.kill(int(path.parent.name), signal.SIGKILL)


def _unmount_below(folder: Path) -> None:
    for line in reversed(Path("/proc/mounts").read_text().splitlines()):
        target = line.split()[1]
        if target.startswith(f"{folder}/"):
            subprocess.run(["umount", "-l", target], check=False)


def _remove_control_groups() -> None:
    roots = [*Path("/sys/fs/cgroup").glob("*/kubepods"), Path("/sys/fs/cgroup/kubepods")]
    for root in roots:
        for folder in sorted(root.glob("**/"), key=lambda path: len(path.parts), reverse=True):
            with contextlib.suppress(OSError):
                folder.rmdir()


@contextlib.contextmanager
def open_cluster(folder: Path) -> Iterator[KubernetesCluster]:
    """Start a cluster for the block; waits while another one runs: a kubelet ends what it does not know."""
    with hold_machine_lock("tests", "kubernetes-cluster"):
        assert not _is_running("kubelet"), "a kubelet runs on this machine, whose pods that of the tests would end"
        cluster = KubernetesCluster(folder)
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.stop()


def _is_running(program: str) -> bool:
    for path in Path("/proc").glob("[0-9]*/comm"):
        with contextlib.suppress(OSError):
            if path.read_text().strip() == program:
                return True
    return False


def build_docker_secret(name: str, host: str, user: str, password: str) -> dict[str, Any]:
    """Return a secret of the namespace `default` with the credentials of a registry."""
    word = base64.b64encode(f"{user}:{password}".encode()).decode()
    config = json.dumps({"auths": {host: {"auth": word}}})
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": "default"},
        "type": "kubernetes.io/dockerconfigjson",
        "stringData": {".dockerconfigjson": config},
    }
