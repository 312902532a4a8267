"""Clusters that cannot be used: one line that says what to do. No cluster is needed."""

from __future__ import annotations

import datetime as dt
import http.server
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from backends.sandbox.image_registry import translate_pull_error
from backends.sandbox.kubernetes.sandbox import is_left
from backends.sandbox.registry import open_sandbox
from core.config import Settings
from core.errors import InputError, MachineError, MergemillError, Transient, UsageError


def write_kubeconfig(folder: Path, url: str) -> Path:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "one",
        "clusters": [{"name": "one", "cluster": {"server": url}}],
        "users": [{"name": "ada", "user": {"token": "x"}}],
        "contexts": [{"name": "one", "context": {"cluster": "one", "user": "ada"}}],
    }
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return path


def open_pods(**options: str) -> MergemillError:
    """Return the error of opening the sandbox, which has one line."""
    with pytest.raises(MergemillError) as raised:
        open_sandbox(Settings(sandbox="kubernetes", **options).sandbox)  # type: ignore[arg-type]
    assert "\n" not in raised.value.format_line()
    return raised.value


@pytest.fixture
def answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, bytes]]:
    """Serve the value `body`, which the test sets, at the address of a kubeconfig."""
    content: dict[str, bytes] = {}

    class Server(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(content["body"])

        def log_message(self, *_: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Server) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}"
        monkeypatch.setenv("KUBECONFIG", str(write_kubeconfig(tmp_path, url)))
        yield content
        server.shutdown()
        thread.join()


def test_a_machine_without_kubeconfig_has_no_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    error = open_pods()
    assert isinstance(error, MachineError)
    assert str(error).startswith("there is no Kubernetes cluster")
    assert "KUBECONFIG" in error.advice


@pytest.mark.parametrize("text", ["{", "contexts: 3", "apiVersion: v1\nkind: Config\n"])
def test_a_malformed_kubeconfig_is_an_input_error(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(text)
    monkeypatch.setenv("KUBECONFIG", str(path))
    error = open_pods()
    assert isinstance(error, InputError)
    assert str(path) in str(error)


def test_a_context_that_does_not_exist_is_a_usage_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(write_kubeconfig(tmp_path, "http://127.0.0.1:1")))
    error = open_pods(kubernetes_context="two")
    assert isinstance(error, UsageError)
    assert error.advice == "one of one"


def test_a_cluster_that_does_not_answer_is_a_machine_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(write_kubeconfig(tmp_path, "http://127.0.0.1:1")))
    error = open_pods()
    assert isinstance(error, MachineError)
    assert "http://127.0.0.1:1 does not answer" in str(error)


def test_another_server_is_not_a_cluster(answer: dict[str, bytes]) -> None:
    answer["body"] = b"<html>hello</html>"
    error = open_pods()
    assert isinstance(error, MachineError)
    assert "is not the API of a Kubernetes cluster" in str(error)


def test_an_old_cluster_is_a_machine_error(answer: dict[str, bytes]) -> None:
    answer["body"] = json.dumps({"major": "1", "minor": "19+", "gitVersion": "v1.19.2-x"}).encode()
    error = open_pods()
    assert isinstance(error, MachineError)
    assert "is Kubernetes 1.19" in str(error)
    assert error.advice == "1.25 or newer is needed"


def test_a_malformed_registry_or_label_is_an_error_before_the_cluster_is_asked() -> None:
    assert isinstance(open_pods(kubernetes_registry="Nonsense"), UsageError)
    with pytest.raises(ValueError, match="KEY=VALUE"):
        Settings(kubernetes_nodes="gpu")  # type: ignore[arg-type]
    assert Settings(kubernetes_nodes="pool=big, zone=a").sandbox.kubernetes.nodes == ("pool=big", "zone=a")  # type: ignore[arg-type]


def test_a_missing_package_is_named_with_the_command_that_installs_it() -> None:
    hide = "import sys; sys.modules['kubernetes'] = None\n"
    script = (
        "from backends.sandbox.registry import open_sandbox\n"
        "from core.config import Settings\n"
        "from core.errors import MachineError\n"
        "try:\n    open_sandbox(Settings(sandbox='kubernetes').sandbox)\n"
        "except MachineError as error:\n    print(error.format_line())\n"
    )
    ran = subprocess.run([sys.executable, "-c", hide + script], capture_output=True, text=True, check=True)
    assert ran.stdout == "--sandbox kubernetes needs the package kubernetes (pip install 'mergemill[kubernetes]')\n"


@pytest.mark.parametrize(
    ("message", "kind", "part"),
    [
        ('failed to resolve reference "h/i:1": h/i:1: not found', InputError, "no such image"),
        ("pull access denied, repository does not exist or may require authorization", InputError, "denies access"),
        ("failed to fetch anonymous token: unexpected status: 401 Unauthorized", InputError, "denies access"),
        ("dial tcp 127.0.0.1:5000: connect: connection refused", Transient, "does not answer"),
    ],
)
def test_reasons_of_failed_pulls(message: str, kind: type[MergemillError], part: str) -> None:
    error = translate_pull_error("h/i:1", message)
    assert isinstance(error, kind)
    assert part in str(error)


def test_a_pod_of_another_machine_is_left_once_its_deadline_is_long_over() -> None:
    def build(minutes: float) -> dict[str, object]:
        created = dt.datetime.now(dt.UTC) - dt.timedelta(minutes=minutes)
        metadata = {
            "name": "mergemill-0123abcd.1.0123abcd-1",
            "creationTimestamp": created.strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        return {"metadata": metadata, "spec": {"activeDeadlineSeconds": 3600}}

    assert not is_left(build(60))
    assert is_left(build(80))
