"""The project's pytest option, and fixtures shared by several folders."""

from __future__ import annotations

import gc
import logging
import os
import shutil
import tempfile
from collections.abc import Iterator
from functools import cache, partial

import pytest
from httpx._transports import default as httpx_transports

from tests import command_server, drawn_arguments, kept_runs
from tests.kubernetes_cluster import KubernetesCluster, open_cluster, require_kubernetes
from tests.new_databases import copy_new_databases
from tests.registry import LocalRegistry
from tests.s3_server import S3Server

GARBAGE_THRESHOLD = 10_000
"""New objects after which Python looks for cycles; its own is 700."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--update` writes snapshots instead of comparing them."""
    parser.addoption("--update", action="store_true", help="write snapshots (plan.json of examples) again")


def pytest_configure(config: pytest.Config) -> None:
    """Spare the tests migrations, arguments that were drawn before, and certificates that httpx reads for a request."""
    copy_new_databases()
    for folder in (command_server.FOLDER, drawn_arguments.FOLDER, kept_runs.FOLDER):
        if folder not in os.environ:  # the workers inherit it
            os.environ[folder] = tempfile.mkdtemp(prefix="shared-by-tests-")
            config.add_cleanup(partial(shutil.rmtree, os.environ[folder]))  # not at the end of forked processes
    drawn_arguments.keep_drawn_arguments()
    httpx_transports.create_ssl_context = cache(httpx_transports.create_ssl_context)
    gc.set_threshold(GARBAGE_THRESHOLD)


def pytest_runtest_setup() -> None:
    """Let a test see warnings, also where a command of an earlier one in this process was quieter."""
    logging.getLogger().setLevel(logging.WARNING)


def pytest_collection_finish() -> None:
    """Let searches for cycles leave out the modules and tests: they took a twentieth of the CPU of the tests."""
    gc.freeze()


@pytest.fixture(scope="session")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalRegistry]:
    """A registry for the test session."""
    made = LocalRegistry(tmp_path_factory.mktemp("registry"))
    made.start()
    yield made
    made.stop()


@pytest.fixture(scope="session")
def started_s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """An S3 server for the test session."""
    made = S3Server(tmp_path_factory.mktemp("s3"))
    made.start()
    made.make_bucket()
    yield made
    made.stop()


@pytest.fixture
def s3_server(started_s3_server: S3Server) -> S3Server:
    """The S3 server, running, whatever the test before did to it."""
    if started_s3_server.process is None:
        started_s3_server.start()
    return started_s3_server


@pytest.fixture(scope="session")
def shared_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubernetesCluster]:
    """Start a cluster for the test session."""
    require_kubernetes()
    with open_cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture
def cluster(shared_cluster: KubernetesCluster, monkeypatch: pytest.MonkeyPatch) -> KubernetesCluster:
    """The cluster, which the kubeconfig of this test names, with all rights."""
    monkeypatch.setenv("KUBECONFIG", str(shared_cluster.write_kubeconfig("admin")))
    return shared_cluster


@pytest.fixture
def cluster_registry(cluster: KubernetesCluster, registry: LocalRegistry) -> str:
    """The registry that the cluster's nodes pull from."""
    cluster.trust_registry(registry.host)
    return f"{registry.host}/tasks"
