"""Manifests of pods. No cluster is needed."""

from __future__ import annotations

from backends.sandbox.execution import ResourceLimits
from backends.sandbox.kubernetes.manifest import MAIN, PodSettings, build_pod

LIMITS = ResourceLimits(seconds=60, memory_mb=3000, disk_mb=100, pids=64, cpus=0.2, output_bytes=100_000)


def test_half_of_a_pods_memory_is_the_size_of_its_shm() -> None:
    sockets = {"socket_folders": ["/run/a"], "relay": "python"}
    for options in ({}, sockets):
        spec = build_pod("a-pod", "an-image", LIMITS, PodSettings(), helper=None, **options)["spec"]  # type: ignore[arg-type]
        volumes = {volume["name"]: volume["emptyDir"] for volume in spec["volumes"]}
        assert volumes["shm"] == {"medium": "Memory", "sizeLimit": "1500Mi"}
        mounts = {container["name"]: container["volumeMounts"] for container in spec["containers"]}
        assert {"name": "shm", "mountPath": "/dev/shm"} in mounts.pop(MAIN)
        assert all(mount["name"] != "shm" for other in mounts.values() for mount in other)
        assert len(volumes) == 1 + bool(options)
