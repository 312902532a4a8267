"""Manifests of pods."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from backends.sandbox.container import DROPPED_CAPABILITIES, HOSTNAME
from backends.sandbox.execution import ResourceLimits
from guest.pod import POD_FOLDER

MAIN = "main"
"""Container in which commands run."""
CUTTER = "cut-network"
"""Container that runs before it and takes the pod's network away."""
LABELS: Mapping[str, str] = {"app.kubernetes.io/name": "mergemill-sandbox", "app.kubernetes.io/managed-by": "mergemill"}
SELECTOR = f"app.kubernetes.io/name={LABELS['app.kubernetes.io/name']}"
KEEPALIVE = "trap 'exit 143' TERM; while :; do sleep 3600 & wait $!; done"
"""First process; bash, because it reaps orphaned processes. Its child may be killed: all processes of a command are.

It does not end with 0: the kubelet would report an evicted pod as `Succeeded`, without the reason."""
SHM = {"name": "shm", "mountPath": "/dev/shm"}  # noqa: S108 - every user may write there
"""Mount of the main container that takes the place of the runtime's own, which has 64 MB on every node."""
RELAY = "relay"
"""Container that offers sockets of this machine. Nothing foreign runs in it."""
WAIT = "import signal; signal.signal(signal.SIGTERM, lambda *_: exit()); signal.pause()"
CUT_NETWORK = POD_FOLDER / "cut_network.py"
START_SECONDS = 3600
"""Seconds that a pod may take for its image, and wait for its command, before its own deadline applies."""


@dataclass(frozen=True, kw_only=True)
class PodSettings:
    """Fields that all pods of a sandbox have in common.

    `node_selector` are labels of nodes; `pull_secret` names a secret with the registry's credentials.
    """

    node_selector: Mapping[str, str] = field(default_factory=dict)
    runtime_class: str | None = None
    pull_secret: str | None = None


def build_pod(
    name: str,
    image: str,
    limits: ResourceLimits,
    settings: PodSettings,
    *,
    helper: str | None,
    socket_folders: Sequence[str] = (),
    relay: str = "",
) -> dict[str, Any]:
    """Return the manifest of a pod whose container waits for commands.

    Args:
        name: name of the pod.
        image: reference as the nodes pull it.
        limits: limits of its container. The pod ends by itself some time after `limits.seconds`, whoever forgot it.
        settings: settings of the sandbox.
        helper: image with Python that takes the network away; None for a pod with network.
        socket_folders: paths of folders that its container shares with a container for sockets.
        relay: image with Python of that container.
    """
    spec: dict[str, Any] = {
        "containers": [build_main(image, limits)],
        "initContainers": [] if helper is None else [_build_cutter(helper)],
        "volumes": [{"name": SHM["name"], "emptyDir": {"medium": "Memory", "sizeLimit": f"{limits.shm_mb}Mi"}}],
        "restartPolicy": "Never",
        "activeDeadlineSeconds": math.ceil(2 * limits.seconds) + START_SECONDS,
        "terminationGracePeriodSeconds": 1,
        "hostname": HOSTNAME,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "nodeSelector": dict(settings.node_selector),
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
    }
    if settings.runtime_class:
        spec["runtimeClassName"] = settings.runtime_class
    if settings.pull_secret:
        spec["imagePullSecrets"] = [{"name": settings.pull_secret}]
    if socket_folders:
        _share_folders(spec, list(dict.fromkeys(socket_folders)), relay)
    metadata = {"name": name, "labels": dict(LABELS)}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def build_main(image: str, limits: ResourceLimits) -> dict[str, Any]:
    """Return the container in which commands run.

    It requests the amounts that it is limited to, so that a node has it and neighbours do not change the values that a
    test measures.
    """
    memory, disk = f"{limits.memory_mb}Mi", f"{limits.disk_mb}Mi"
    resources = {"cpu": f"{math.ceil(limits.cpus * 1000)}m", "memory": memory, "ephemeral-storage": disk}
    return {
        "name": MAIN,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["/bin/bash", "-c", KEEPALIVE],
        "resources": {"limits": resources, "requests": resources},
        "volumeMounts": [dict(SHM)],
        "securityContext": {
            "runAsUser": 0,
            "runAsGroup": 0,
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": DROPPED_CAPABILITIES},
        },
    }


def _share_folders(spec: dict[str, Any], folders: Sequence[str], relay: str) -> None:
    """Add a container that offers sockets in folders, which the main container sees read-only."""
    mounts = [{"name": f"sockets-{number}", "mountPath": folder} for number, folder in enumerate(folders)]
    spec["volumes"] += [{"name": mount["name"], "emptyDir": {"sizeLimit": "1Mi"}} for mount in mounts]
    spec["containers"][0]["volumeMounts"] += [{**mount, "readOnly": True} for mount in mounts]
    spec["containers"].append({**_build_helper(RELAY, relay, WAIT, []), "volumeMounts": mounts})


def _build_cutter(helper: str) -> dict[str, Any]:
    return _build_helper(CUTTER, helper, CUT_NETWORK.read_text(encoding="utf-8"), ["NET_ADMIN"])


def _build_helper(name: str, image: str, script: str, capabilities: Sequence[str]) -> dict[str, Any]:
    """Return a container that runs a script of this project in Python."""
    resources = {"cpu": "50m", "memory": "64Mi", "ephemeral-storage": "16Mi"}
    return {
        "name": name,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python3", "-c", script],
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "resources": {"limits": resources, "requests": resources},
        "securityContext": {
            "runAsUser": 0,
            "runAsGroup": 0,
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"], "add": list(capabilities)},
        },
    }


def read_ended_state(status: Mapping[str, Any], container: str = MAIN) -> Mapping[str, Any] | None:
    """Return how a container of a pod ended; None while it has not."""
    states: Mapping[str, Mapping[str, Any]] = {entry["name"]: entry["state"] for entry in iterate_containers(status)}
    return states.get(container, {}).get("terminated")


def iterate_containers(status: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return the states of all containers of a pod, that of its network first."""
    return [*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ())]
