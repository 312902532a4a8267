"""The gateway of an invocation: its upstream is checked first, and it is started again when it dies."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import requests

from backends.llm.meter import TokenPrices
from backends.sandbox.container_names import make_folder_prefix
from backends.sandbox.locks import hold_machine_lock
from core.config import Settings
from core.errors import InputError, MergemillError, Transient
from core.settings.models import LlmSettings, UpstreamSettings
from mergemill.agents.sampling.progress import SamplingProgress
from samplers.gateway.process import GatewayProcess, Upstream

CHECK_SECONDS = 15.0
"""Time that the upstream has to name its models."""
WATCH_SECONDS = 1.0
"""Between two looks at the gateway's process."""
SOCKET = "gateway.sock"
WAITS = "another `mergemill sample` works with this store; this one begins when it ends"
LOG_FOLDER = "gateway"
"""Folder of the store with the logs of rollouts that are not stored yet."""
USER_LOG_FOLDER = "gateway-users"
"""The same, of users whose endpoint is not that of the agents."""


def make_user_upstream(llm: LlmSettings, upstream: UpstreamSettings) -> Upstream:
    """Return the endpoint of --llm as an upstream, without token ids."""
    return Upstream(
        url=llm.url,
        key=key.get_secret_value() if (key := llm.find_key()) else "",
        request_timeout=upstream.request_timeout,
        concurrency=upstream.concurrency,
        prices=TokenPrices.from_settings(llm),
    )


@contextlib.contextmanager
def open_gateway(
    settings: Settings, progress: SamplingProgress, upstream: Upstream | None = None, *, slot: str = ""
) -> Iterator[tuple[GatewayProcess, Path]]:
    """Open a gateway; yield it and its socket for containers.

    Args:
        settings: limits and store.
        progress: progress that shows the usage of the agents' gateway.
        upstream: the model that plays users; None for that of the agents, which the settings name.
        slot: slot of a worker process of a cluster, whose logs are in a folder of its own.

    Raises:
        UsageError: no upstream is named.
        InputError: it rejects the key.
        Transient: it does not answer.
        MachineError: the gateway does not start.
    """
    is_agents = upstream is None
    upstream = upstream or Upstream.from_settings(settings.upstream, settings.llm)
    check_upstream(upstream)
    logs = settings.storage.store_dir / ((LOG_FOLDER if is_agents else USER_LOG_FOLDER) + slot)
    folder = Path(tempfile.mkdtemp(prefix=make_folder_prefix("agents")))  # the path of a socket must be short
    try:
        with (
            hold_machine_lock("sample", str(logs.resolve()), on_wait=lambda: progress.print_message(WAITS)),
            GatewayProcess(upstream, logs, agent_socket=folder / SOCKET, port=0) as gateway,
        ):
            if is_agents:
                progress.read_usage = gateway.get_usage
            try:
                with _watch_gateway(gateway, progress):
                    yield gateway, folder / SOCKET
            except KeyboardInterrupt:
                gateway.release()
                raise
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def check_upstream(upstream: Upstream) -> None:
    """Request the upstream's list of models, which costs nothing, before anything is started for it.

    Raises:
        InputError: it rejects the key.
        Transient: it does not answer.
    """
    url = upstream.url.rstrip("/")
    headers = {"Authorization": f"Bearer {upstream.key}"} if upstream.key else {}
    if upstream.dialect == "anthropic":
        url = url if url.endswith("/v1") else f"{url}/v1"
        headers = {"x-api-key": upstream.key, "anthropic-version": "2023-06-01"}
    try:
        response = requests.get(f"{url}/models", headers=headers, timeout=CHECK_SECONDS)
    except requests.RequestException as error:
        advice = "start it, or correct --upstream; then run the same command again"
        raise Transient(
            f"the model server {upstream.url} does not answer: {type(error).__name__}", advice=advice
        ) from error
    if response.status_code in (401, 403):
        raise InputError(
            f"the model server rejects the key ({response.status_code})", advice="set MERGEMILL_UPSTREAM_KEY"
        )


@contextlib.contextmanager
def _watch_gateway(gateway: GatewayProcess, progress: SamplingProgress) -> Iterator[None]:
    """Start the gateway again when it dies: open rollouts go on, their agents wait."""
    stop = threading.Event()

    def watch() -> None:
        while not stop.wait(WATCH_SECONDS):
            if not gateway.is_alive and not stop.is_set():
                progress.print_message("the gateway died and is started again")
                try:
                    gateway.restart()
                except MergemillError as error:
                    progress.print_message(error.format_line())

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
