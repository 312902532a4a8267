"""The servers that are compared: the fast model, the gateway, LiteLLM's proxy in an environment of its own."""

from __future__ import annotations

import os
import resource
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import uv

from benchmarks.gateway.load import LoadTarget
from samplers.gateway.process import GatewayProcess, RolloutAccess, Upstream

ROOT = Path(__file__).parents[2]
LITELLM = "litellm[proxy]==1.106.2"
START_SECONDS = 120.0
PAGE_SIZE = os.sysconf("SC_PAGE_SIZE")
TICKS = os.sysconf("SC_CLK_TCK")
SECRET = "bench"  # noqa: S105 - of a gateway that lives for a minute


@contextmanager
def run_model() -> Iterator[LoadTarget]:
    """Run the fast model in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.gateway.fast_model"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            if process.stdout is None:
                raise SystemExit("the model has no output")
            yield LoadTarget(name="model alone", port=int(process.stdout.readline()))
        finally:
            process.kill()


@contextmanager
def run_gateway(model: LoadTarget, folder: Path, concurrency: int) -> Iterator[tuple[LoadTarget, GatewayProcess]]:
    """Run a gateway that records to a folder."""
    upstream = Upstream(url=f"http://127.0.0.1:{model.port}/v1", concurrency=concurrency)
    with GatewayProcess(upstream, folder, agent_socket=None, port=0) as gateway:
        gateway.open_rollout("bench", RolloutAccess(secret=SECRET))
        yield LoadTarget(name="gateway", port=gateway.port or 0, key=SECRET), gateway


def install_litellm() -> Path:
    """Install the proxy into an environment of its own, once, and return its program.

    Raises:
        OSError: it cannot be installed.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mergemill-benchmarks"
    cache.mkdir(parents=True, exist_ok=True)
    venv = cache / LITELLM.replace("[proxy]==", "-")
    program = venv / "bin" / "litellm"
    if (venv / "whole").is_file():
        return program
    for command in (
        ["venv", "--clear", "--python", sys.executable, str(venv)],
        ["pip", "install", "--python", str(venv), LITELLM],
    ):
        done = subprocess.run([uv.find_uv_bin(), *command], capture_output=True, text=True, check=False)
        if done.returncode:
            raise OSError(f"{LITELLM} cannot be installed: {done.stderr.strip()[-300:]}")
    (venv / "whole").touch()
    return program


@contextmanager
def run_litellm(model: LoadTarget, folder: Path, port: int) -> Iterator[LoadTarget]:
    """Run LiteLLM's proxy with one worker, without a database and without callbacks."""
    program = install_litellm()
    config = folder / "litellm.yaml"
    base = f"http://127.0.0.1:{model.port}/v1"
    config.write_text(
        "model_list:\n  - model_name: m\n    litellm_params:\n"
        f"      model: openai/m\n      api_base: {base}\n      api_key: k\n"
        "litellm_settings:\n  telemetry: false\n  callbacks: []\n"
    )
    command = [str(program), "--config", str(config), "--port", str(port), "--host", "127.0.0.1", "--num_workers", "1"]
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    key = f"sk-{secrets.token_hex(32)}"  # without one it refuses to start
    environment |= {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_LOG": "ERROR", "LITELLM_MASTER_KEY": key}
    with (
        (folder / "litellm.log").open("wb") as log,
        subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log) as process,
    ):
        try:
            _wait_for(f"http://127.0.0.1:{port}/health/liveliness", process)
            yield LoadTarget(name="LiteLLM", port=port, key=key)
        finally:
            process.terminate()
            process.wait()


def _wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until and process.poll() is None:
        try:
            if httpx.get(url, timeout=2).status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.5)
    raise OSError("LiteLLM's proxy does not start")


def read_memory(pid: int) -> int:
    """Return the greatest resident size of a process so far, in bytes."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) << 10
    return 0


def read_cpu(pid: int) -> float:
    """Return the seconds of processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def raise_file_limit() -> None:
    """Permit this process and its children as many open files as the system does."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
