"""Connection to a cluster's API server. The only file that imports the package `kubernetes`.

Objects of the API are dictionaries, as the server sends them.
"""

from __future__ import annotations

import contextlib
import http
import json
import os
import re
import select
import ssl
import threading
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import urllib3
import websocket
from kubernetes import client, config
from kubernetes.stream import stream as open_stream

from backends.sandbox.execution import ContainerLossError
from core.errors import InputError, MachineError, MergemillError, Transient, UsageError

OLDEST_VERSION = (1, 25)
"""Oldest release of Kubernetes that is accepted."""
REQUEST_TIMEOUT = (10, 60)
"""Seconds to connect, and to wait for an answer."""
CONNECTIONS = 64
ACCOUNT_FOLDER = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Rights that a pod has of its service account."""
RIGHTS = (("create", ""), ("get", ""), ("list", ""), ("delete", ""), ("get", "exec"))
"""Verbs on pods and their subresource that a sandbox needs."""
RIGHTS_ADVICE = "kubectl apply -f deploy/kubernetes/rbac.yaml, or choose --kubernetes-namespace"
CONNECT_ADVICE = "check KUBECONFIG and --kubernetes-context, or use --sandbox docker"

STDIN, STDOUT, STDERR, STATUS = 0, 1, 2, 3
"""Channels of an exec."""
CHUNK = 16 * 1024
"""Bytes of a message to an exec: so many fit where the socket takes any."""
PING_SECONDS = 30.0
"""Between two pings, so that nothing on the way closes a silent connection."""
STALL_SECONDS = 60.0
"""Longest wait for the rest of a message that has begun."""
_CLOSED_ERRORS = (websocket.WebSocketException, OSError)
_HANDSHAKE = re.compile(r"Handshake status (\d+)")


class ClusterApi:
    """API of a namespace of a cluster. Threads may share it.

    Args:
        context: context of the kubeconfig; None for the current, or the pod's service account where there is no
            kubeconfig.
        namespace: namespace of the pods; None for the context's.

    Raises:
        MachineError: there is no cluster, it does not answer, rejects the user, or is too old.
        UsageError: there is no such context.
    """

    def __init__(self, context: str | None, namespace: str | None) -> None:
        self._configuration = client.Configuration()
        own_namespace = _load_configuration(self._configuration, context)
        self.namespace = namespace or own_namespace
        self._configuration.connection_pool_maxsize = CONNECTIONS
        # The callers know which requests may be repeated; creating a pod twice would leave a pod behind.
        self._configuration.retries = False
        self._client = client.ApiClient(self._configuration)
        # Closed with this object or at exit, whichever comes first, so that callers need not close it.
        weakref.finalize(self, self._client.rest_client.pool_manager.clear)
        self._core: Any = client.CoreV1Api(self._client)  # typed for decoded answers, which are not used here
        self.url = str(self._configuration.host)
        self.version = self._check_version()

    def _check_version(self) -> str:
        try:
            api: Any = client.VersionApi(self._client)
            server_version = _call(api.get_code)
            version = tuple(int(re.sub(r"\D.*", "", server_version[part])) for part in ("major", "minor"))
        except client.ApiException as error:
            raise self._translate_error(error, "asking for its version") from error
        except (urllib3.exceptions.HTTPError, OSError) as error:
            message = f"the Kubernetes cluster at {self.url} does not answer: {_describe(error)}"
            raise MachineError(message, advice=CONNECT_ADVICE) from error
        except (ValueError, KeyError, TypeError) as error:
            raise MachineError(f"{self.url} is not the API of a Kubernetes cluster", advice=CONNECT_ADVICE) from error
        if version < OLDEST_VERSION:
            needed = ".".join(map(str, OLDEST_VERSION))
            message = f"the cluster at {self.url} is Kubernetes {'.'.join(map(str, version))}"
            raise MachineError(message, advice=f"{needed} or newer is needed")
        return str(server_version.get("gitVersion", ""))

    def check_rights(self) -> None:
        """Check that the user may do the actions that a sandbox does.

        Raises:
            MachineError: a right is missing.
        """
        api: Any = client.AuthorizationV1Api(self._client)
        # Found out before the work begins, as a missing right would show only in the first container.
        for verb, subresource in RIGHTS:
            attributes = {"namespace": self.namespace, "verb": verb, "resource": "pods", "subresource": subresource}
            with self._translate("asking for rights"):
                answer = _call(api.create_self_subject_access_review, {"spec": {"resourceAttributes": attributes}})
            if not answer["status"].get("allowed"):
                what = f"pods/{subresource}" if subresource else "pods"
                message = f"this user may not {verb} {what} in the namespace {self.namespace} of {self.url}"
                raise MachineError(message, advice=RIGHTS_ADVICE)

    # --- pods --------------------------------------------------------------------------------------------------------

    def create_pod(self, manifest: Mapping[str, Any], *, dry_run: bool = False) -> None:
        """Create a pod; `dry_run`: only check whether it may be.

        Raises:
            BusyNamespaceError: the namespace takes no pod for now.
            MachineError: the namespace does not permit such a pod.
            UsageError: there is no such namespace, or a setting names something that does not exist.
            Transient: the cluster cannot be reached.
        """
        options = {"dry_run": "All"} if dry_run else {}
        with self._translate("creating a pod"):
            _call(self._core.create_namespaced_pod, self.namespace, dict(manifest), **options)

    def get_pod(self, name: str) -> dict[str, Any] | None:
        """Return a pod, None where there is none.

        Raises:
            Transient: the cluster cannot be reached.
        """
        with self._translate("reading a pod"), _suppress_missing():
            return _call(self._core.read_namespaced_pod, name, self.namespace)
        return None

    def list_pods(self, selector: str) -> list[dict[str, Any]]:
        """Return the pods with labels.

        Raises:
            Transient: the cluster cannot be reached.
        """
        with self._translate("listing pods"):
            return list(_call(self._core.list_namespaced_pod, self.namespace, label_selector=selector)["items"])

    def delete_pod(self, name: str, *, grace_seconds: int) -> None:
        """Delete a pod; nothing happens where there is none.

        Raises:
            Transient: the cluster cannot be reached.
        """
        with self._translate("deleting a pod"), _suppress_missing():
            _call(self._core.delete_namespaced_pod, name, self.namespace, grace_period_seconds=grace_seconds)

    def open_exec(self, pod: str, container: str, command: Sequence[str]) -> ExecStream:
        """Start a command in a running container; the caller closes its stream.

        Raises:
            MissingPodError: there is no such pod, or its container does not run.
            Transient: the cluster cannot be reached.
        """
        # The package replaces a method of the client while it connects, so each exec has a client of its own.
        own = client.CoreV1Api(client.ApiClient(self._configuration))
        with self._translate("running a command in a pod"):
            opened = open_stream(
                own.connect_get_namespaced_pod_exec,
                pod,
                self.namespace,
                container=container,
                command=list(command),
                stdin=True,
                stdout=True,
                stderr=True,
                tty=False,
                binary=True,
                _preload_content=False,
            )
        return ExecStream(opened.sock)

    # --- errors ------------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _translate(self, doing: str) -> Iterator[None]:
        try:
            yield
        except client.ApiException as error:
            raise self._translate_error(error, doing) from error
        except (urllib3.exceptions.HTTPError, *_CLOSED_ERRORS) as error:
            message = f"the Kubernetes cluster at {self.url} is out of reach: {_describe(error)}"
            raise Transient(message, advice="run the same command again later") from error

    def _translate_error(self, error: client.ApiException, doing: str) -> MergemillError:
        """Return the project's error for an answer of the API server."""
        status, text = _read_status(error)
        message = f"{doing}: {text}"
        if status == 401:
            message = f"the cluster at {self.url} rejects the user of the kubeconfig"
            return MachineError(message, advice="log in again, or choose --kubernetes-context")
        # The server has no codes for these, so parts of its messages are compared.
        for part, error_class, advice in _REFUSALS:
            if part in text and status in (400, 403, 404, 422):
                return error_class(message, advice=advice)
        if status in (403, 400, 422):
            advice = RIGHTS_ADVICE if status == 403 else "see docs/guide/operate/kubernetes.md"
            return MachineError(message, advice=advice)
        if status == 404 and "pods" in text:
            return MissingPodError(message)
        return Transient(f"the cluster at {self.url} failed: {message}", advice="run the same command again later")


class MissingPodError(ContainerLossError):
    """There is no such pod, or its container does not run."""


class BusyNamespaceError(Transient):
    """The namespace takes no pod for now: its quota is used up, or it is being made."""


_REFUSALS: tuple[tuple[str, type[MergemillError], str], ...] = (
    ("exceeded quota", BusyNamespaceError, "raise the quota of the namespace, or use fewer --workers"),
    ("violates PodSecurity", MachineError, "label the namespace as deploy/kubernetes/rbac.yaml does"),
    ("error looking up service account", BusyNamespaceError, "the namespace is being made; run the same command again"),
    ("RuntimeClass", UsageError, "choose another --kubernetes-runtime-class"),
    ("namespaces", UsageError, "choose another --kubernetes-namespace, or make it: kubectl create namespace NAME"),
    ("container not found", MissingPodError, ""),
    ("cannot exec into a container in a completed pod", MissingPodError, ""),
    ("cannot exec in a stopped", MissingPodError, ""),
    ("pod does not exist", MissingPodError, ""),
)
"""Part of the server's message, error class and advice. The first row that matches applies."""


class ExecStream:
    """Streams of a command in a container. A thread reads, one at a time writes."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._connection.settimeout(STALL_SECONDS)
        # OpenSSL does not allow a thread to read while another one writes.
        self._lock = threading.Lock()
        self._poll = select.poll()
        self._poll.register(connection.sock, select.POLLIN)
        self._room = select.poll()
        self._room.register(connection.sock, select.POLLOUT)
        self._next_ping = time.monotonic() + PING_SECONDS
        self._is_open = True
        self.exit_code: int | None = None
        """Exit code of the command; None while it runs, and where the connection ended before it."""

    def write(self, data: bytes) -> None:
        """Write to stdin.

        Raises:
            OSError: the connection is closed.
        """
        view = memoryview(data)
        while view:
            if not self._room.poll(STALL_SECONDS * 1000):
                raise TimeoutError("the command does not read its input")
            # In parts, so that a long write does not keep the reader from the lock.
            part, view = view[:CHUNK], view[CHUNK:]
            self._send(bytes((STDIN,)) + part)

    def _send(self, message: bytes) -> None:
        try:
            with self._lock:
                self._connection.send_binary(message)
        except websocket.WebSocketException as error:
            raise ConnectionError(str(error)) from error

    def read(self, seconds: float) -> tuple[int, bytes] | None:
        """Return channel and data of the next message, no data where none comes in time, None at the end."""
        if not self._is_open:
            return None
        try:
            return self._read_message(seconds)
        except _CLOSED_ERRORS:
            self._is_open = False
            return None

    def _read_message(self, seconds: float) -> tuple[int, bytes] | None:
        if not self._has_rest() and not self._poll.poll(max(seconds, 0.0) * 1000):
            if time.monotonic() >= self._next_ping:
                self._next_ping = time.monotonic() + PING_SECONDS
                with self._lock:
                    self._connection.ping()
            return STDOUT, b""
        with self._lock:
            kind, frame = self._connection.recv_data_frame(control_frame=True)
        if kind == websocket.ABNF.OPCODE_CLOSE:
            self._is_open = False
            return None
        data = bytes(frame.data)
        if kind not in (websocket.ABNF.OPCODE_BINARY, websocket.ABNF.OPCODE_TEXT) or not data:
            return STDOUT, b""
        if data[0] == STATUS:
            self.exit_code = _parse_exit_code(data[1:])
        return data[0], data[1:]

    def _has_rest(self) -> bool:
        """Return whether decrypted bytes wait, of which the kernel has none any more."""
        plain = self._connection.sock
        return isinstance(plain, ssl.SSLSocket) and plain.pending() > 0

    def close(self) -> None:
        """Close the connection; the command reads the end of its input."""
        self._is_open = False
        with contextlib.suppress(*_CLOSED_ERRORS), self._lock:
            self._connection.close(timeout=0)
        self._connection.shutdown()  # which the package leaves out where the server closed first


def _call(method: Any, *arguments: Any, **options: Any) -> dict[str, Any]:
    """Return the reply that the API answers. The answer is read to its end, which frees the connection."""
    answer = method(*arguments, _preload_content=False, _request_timeout=REQUEST_TIMEOUT, **options)
    return dict(json.loads(answer.data))


@contextlib.contextmanager
def _suppress_missing() -> Iterator[None]:
    try:
        yield
    except client.ApiException as error:
        if error.status != http.HTTPStatus.NOT_FOUND:
            raise


def _load_configuration(configuration: client.Configuration, context: str | None) -> str:
    """Load address and user of a cluster; return the namespace that goes with them."""
    loader: Any = config
    is_pod = bool(os.environ.get("KUBERNETES_SERVICE_HOST")) and ACCOUNT_FOLDER.is_dir()
    paths = os.environ.get("KUBECONFIG") or str(Path.home() / ".kube" / "config")
    has_file = any(Path(path).expanduser().is_file() for path in paths.split(os.pathsep) if path)
    # As kubectl does: a kubeconfig comes before the service account of the pod.
    if not has_file and is_pod and context is None:
        loader.load_incluster_config(client_configuration=configuration)
        return (ACCOUNT_FOLDER / "namespace").read_text().strip()
    if not has_file:
        raise MachineError(f"there is no Kubernetes cluster: no kubeconfig at {paths}", advice=CONNECT_ADVICE)
    try:
        known, current = loader.list_kube_config_contexts(paths)
    except Exception as error:
        raise _describe_kubeconfig(paths, error) from error
    names = [entry["name"] for entry in known]
    if context is not None and context not in names:
        message = f"--kubernetes-context: {paths} has no {context}"
        raise UsageError(message, advice=f"one of {', '.join(names)}")
    chosen = next((entry for entry in known if entry["name"] == context), current)
    try:
        loader.load_kube_config(paths, context=chosen["name"], client_configuration=configuration, persist_config=False)
    except Exception as error:
        raise _describe_kubeconfig(paths, error) from error
    return str(chosen["context"].get("namespace") or "default")


def _describe_kubeconfig(paths: str, error: Exception) -> InputError:
    """Return the error for any of its parsers: of YAML, base64, certificates and plug-ins."""
    message = f"the kubeconfig {paths} cannot be used: {_describe(error)}"
    return InputError(message, advice="check it with: kubectl config view")


def _read_status(error: client.ApiException) -> tuple[int, str]:
    """Return HTTP status and message of an answer."""
    text = str(error.body or error.reason or "")
    handshake = _HANDSHAKE.search(text)
    status = int(handshake[1]) if handshake else int(error.status or 0)
    begin = text.find("{" if not handshake else '{"kind"')
    with contextlib.suppress(ValueError, AttributeError):
        return status, str(json.loads(text[begin:])["message"])
    return status, _shorten(text or f"HTTP {status}")


def _parse_exit_code(status: bytes) -> int | None:
    """Return the exit code in the status of an exec (`metav1.Status`); None where the command did not start."""
    try:
        body = json.loads(status)
        if body["status"] == "Success":
            return 0
        causes = body["details"]["causes"]
        return next(int(cause["message"]) for cause in causes if cause["reason"] == "ExitCode")
    except (ValueError, KeyError, TypeError, StopIteration):
        return None


def _describe(error: Exception) -> str:
    cause = getattr(error, "reason", None) or error
    return _shorten(str(cause) or type(error).__name__)


def _shorten(text: str) -> str:
    return " ".join(text.split())[:300]
