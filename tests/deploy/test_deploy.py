"""The files of `deploy/`: the compose file, the Helm chart and the manifests it renders, and the image's Dockerfile."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes.client import ApiClient

from core.config import Settings
from core.settings.group import list_settings
from tests.docs.test_pages import collect_options

DEPLOY = Path(__file__).parents[2] / "deploy"
CHART = DEPLOY / "helm" / "mergemill"
VARIABLES = {f"MERGEMILL_{name.upper()}" for name in list_settings(Settings)} | {
    "MERGEMILL_LOG_FORMAT",
    "MERGEMILL_SERVE_TOKEN",
}
"""Variables that mergemill reads."""
SECRETS = {"POSTGRES_PASSWORD": "secret", "SERVE_TOKEN": "secret", "DOCKER_GID": "999"}
MODELS = {
    "ConfigMap": "V1ConfigMap",
    "CronJob": "V1CronJob",
    "Deployment": "V1Deployment",
    "Job": "V1Job",
    "PersistentVolumeClaim": "V1PersistentVolumeClaim",
    "Role": "V1Role",
    "RoleBinding": "V1RoleBinding",
    "Service": "V1Service",
    "ServiceAccount": "V1ServiceAccount",
}
"""Kind -> model of the official client; others are of the Prometheus operator."""


def find_program(name: str, setup: str) -> str:
    """Return the path of a program; skip the test where it is missing, which fails in CI."""
    path = shutil.which(name, path=f"{os.environ['PATH']}:{Path.home()}/go/bin:/usr/bin")
    if path is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"{name} is missing; scripts/lib.sh: {setup}")
    return path


# ------------------------------------------------------------------------------------------------------ compose


@cache
def load_compose() -> Any:
    """Return the compose file as docker-compose reads it."""
    command = [find_program("docker-compose", "setup_compose"), "-f", DEPLOY / "compose.yaml", "config"]
    done = subprocess.run(command, env=os.environ | SECRETS, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return yaml.safe_load(done.stdout)


def test_the_compose_file_is_valid_and_its_settings_exist() -> None:
    services = load_compose()["services"]
    assert set(services) == {"driver", "serve", "postgres", "registry"}
    own = [service for service in services.values() if service["image"] == "mergemill"]
    assert len(own) == 2
    for service in own:
        names = set(service["environment"])
        assert names <= VARIABLES, names - VARIABLES
        known = {name.removeprefix("MERGEMILL_").lower() for name in names} & set(list_settings(Settings))
        Settings(**{name: service["environment"][f"MERGEMILL_{name.upper()}"] for name in known})
        options = {word for word in service["command"] if word.startswith("--")}
        assert options <= collect_options()


def test_the_compose_file_gives_a_draining_run_enough_time() -> None:
    driver = load_compose()["services"]["driver"]
    (minutes,) = re.fullmatch(r"(\d+)m", driver["stop_grace_period"]).groups()  # type: ignore[union-attr]
    assert int(minutes) * 60 > float(driver["environment"]["MERGEMILL_DRAIN_SECONDS"])


def test_the_compose_file_requires_its_secrets() -> None:
    command = [find_program("docker-compose", "setup_compose"), "-f", DEPLOY / "compose.yaml", "config"]
    without = {name: value for name, value in os.environ.items() if name not in SECRETS}
    done = subprocess.run(command, env=without, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    example = {line.partition("=")[0] for line in (DEPLOY / "env.example").read_text().splitlines() if "=" in line}
    assert example == set(SECRETS)


# --------------------------------------------------------------------------------------------------------- Helm


def render(**values: Any) -> list[Any]:
    """Return the manifests that the chart gives with some values, by `helm template`."""
    command = [find_program("helm", "setup_helm"), "template", "factory", CHART, "--values", "-"]
    done = subprocess.run(command, input=yaml.safe_dump(values), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [manifest for manifest in yaml.safe_load_all(done.stdout) if manifest]


VARIANTS: dict[str, dict[str, Any]] = {
    "job": {"run": {"sources": ["github:pallets/flask"]}},
    "schedule": {
        "run": {"sources": ["github:pallets/flask"], "schedule": "0 3 * * *", "extraArguments": ["--tasks=9"]}
    },
    "pages": {"run": {"enabled": False}, "settings": {"db": "postgresql+psycopg://db/x"}},
    "all": {
        "run": {"sources": ["pypi:attrs"], "drainSeconds": 9},
        "existingSecret": "keys",
        "monitor": {"enabled": True},
        "store": {"existingClaim": "there"},
        "imagePullSecrets": [{"name": "pull"}],
        "nodeSelector": {"pool": "x"},
        "tolerations": [{"key": "k", "operator": "Exists"}],
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("name", VARIANTS)
def test_the_chart_has_no_finding(name: str, tmp_path: Path) -> None:
    values = tmp_path / "values.yaml"
    values.write_text(yaml.safe_dump(VARIANTS[name]))
    command = [find_program("helm", "setup_helm"), "lint", "--strict", CHART, "--values", values]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", VARIANTS)
def test_every_field_of_a_manifest_is_one_of_kubernetes(name: str) -> None:
    """The official client drops fields that it does not know, and refuses objects without a required one."""
    client = ApiClient()
    for manifest in render(**VARIANTS[name]):
        if manifest["kind"] in MODELS:
            typed = client.deserialize(json.dumps(manifest), MODELS[manifest["kind"]], "application/json")
            understood = client.sanitize_for_serialization(typed)
            assert understood == manifest
        else:
            assert manifest["apiVersion"] == "monitoring.coreos.com/v1"


def find_pods(manifests: list[Any]) -> list[Any]:
    """Return the pod templates of manifests."""
    specs = [manifest.get("spec", {}) for manifest in manifests]
    specs = [spec.get("jobTemplate", {}).get("spec", spec) for spec in specs]
    return [spec["template"] for spec in specs if "template" in spec]


@pytest.mark.slow
@pytest.mark.parametrize("name", VARIANTS)
def test_options_and_settings_of_the_chart_exist(name: str) -> None:
    manifests = render(**VARIANTS[name])
    for pod in find_pods(manifests):
        (container,) = pod["spec"]["containers"]
        options = {word.partition("=")[0] for word in container["args"] if word.startswith("--")}
        assert options <= collect_options()
    (settings,) = [manifest for manifest in manifests if manifest["metadata"]["name"] == "factory-settings"]
    assert set(settings["data"]) <= VARIABLES


@pytest.mark.slow
def test_a_pod_has_more_time_than_its_run_takes_to_drain() -> None:
    (pod,) = [pod for pod in find_pods(render(**VARIANTS["all"])) if "terminationGracePeriodSeconds" in pod["spec"]]
    assert "--drain-seconds=9" in pod["spec"]["containers"][0]["args"]
    assert pod["spec"]["terminationGracePeriodSeconds"] > 9


@pytest.mark.slow
def test_services_and_monitors_select_pods_of_the_chart() -> None:
    manifests = render(**VARIANTS["all"])
    labels = [pod["metadata"]["labels"].items() for pod in find_pods(manifests)]
    services = [manifest for manifest in manifests if manifest["kind"] == "Service"]
    pod_monitors = [manifest for manifest in manifests if manifest["kind"] == "PodMonitor"]
    service_monitors = [manifest for manifest in manifests if manifest["kind"] == "ServiceMonitor"]
    assert (len(services), len(pod_monitors), len(service_monitors)) == (1, 1, 1)
    for selector in (services[0]["spec"]["selector"], pod_monitors[0]["spec"]["selector"]["matchLabels"]):
        assert sum(selector.items() <= of_pod for of_pod in labels) == 1
    selected = service_monitors[0]["spec"]["selector"]["matchLabels"].items()
    assert selected <= services[0]["metadata"]["labels"].items()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("values", "message"),
    [({"run": {"source": ["x"]}}, "source"), ({}, "run.sources is empty"), ({"serve": {"port": "x"}}, "port")],
)
def test_a_mistake_in_the_values_is_reported(values: dict[str, Any], message: str) -> None:
    command = [find_program("helm", "setup_helm"), "template", "factory", CHART, "--values", "-"]
    done = subprocess.run(command, input=yaml.safe_dump(values), capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert message in done.stderr


def test_the_image_and_the_chart_have_the_version_of_the_package() -> None:
    version = tomllib.loads((DEPLOY.parent / "pyproject.toml").read_text())["project"]["version"]
    assert yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"] == version
