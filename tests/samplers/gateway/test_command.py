"""`mergemill gateway`: the gateway alone."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from samplers.gateway.exchanges import read_exchanges
from tests.cli import OpenCommand, open_mergemill, run_mergemill
from tests.samplers.gateway.clients import make_body
from tests.samplers.scripted_model import ScriptedModel, Turn

ROOT = Path(__file__).parents[3]
CODE = "from mergemill.cli import main; main()"


@contextmanager
def open_gateway(*arguments: str, **variables: str) -> Iterator[tuple[OpenCommand, str]]:
    """Run the command; yield it and its address."""
    with open_mergemill("gateway", "--port", "0", "--json", *arguments, cwd=Path(arguments[1]), **variables) as command:
        match = re.search(r"http://[\d.:]+", command.stderr.readline())
        assert match, command.stderr.read()
        yield command, match[0]


def send(url: str, secret: str) -> int:
    headers = {"authorization": f"Bearer {secret}"}
    return httpx.post(f"{url}/v1/chat/completions", json=make_body("chat", "q"), headers=headers).status_code


def test_any_secret_is_a_rollout_named_by_its_hash(tmp_path: Path) -> None:
    with ScriptedModel([Turn(text="ok")], key="upstream-key") as model:
        arguments = ("--log", str(tmp_path), "--upstream", model.url, "--model", "trained")
        with open_gateway(*arguments, MERGEMILL_UPSTREAM_KEY="upstream-key") as (command, url):
            assert [send(url, "one"), send(url, "two"), send(url, "one")] == [200] * 3
            os.kill(command.process.pid, signal.SIGINT)
            assert command.process.wait(20) == 0, command.stderr.read()
            rows = [json.loads(line) for line in command.stdout]
        names = ["secret-" + hashlib.sha256(secret.encode()).hexdigest()[:16] for secret in ("one", "two")]
        assert {row["rollout"]: row["requests"] for row in rows} == dict(zip(names, (2, 1), strict=True))
        assert len(read_exchanges(tmp_path / f"{names[0]}.jsonl")) == 2
        assert model.requests[0].body["model"] == "trained"


def test_named_secrets_are_the_only_ones(tmp_path: Path) -> None:
    with ScriptedModel([Turn(text="ok")]) as model:
        arguments = ("--log", str(tmp_path), "--upstream", model.url, "--secret", "first=one")
        with open_gateway(*arguments) as (command, url):
            assert [send(url, "one"), send(url, "two")] == [200, 401]
            os.kill(command.process.pid, signal.SIGTERM)
            assert command.process.wait(20) == 0
        assert len(read_exchanges(tmp_path / "first.jsonl")) == 1


def test_a_full_disk_ends_it_with_75(tmp_path: Path) -> None:
    limit = "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
    limit += "resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000)); "
    with ScriptedModel([Turn(text="ok")]) as model:
        command = [sys.executable, "-c", limit + CODE, "gateway", "--port", "0", "--log", str(tmp_path)]
        command += ["--upstream", model.url]
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr
            match = re.search(r"http://[\d.:]+", process.stderr.readline())
            assert match
            statuses = [200]
            while statuses[-1] == 200 and len(statuses) < 20:
                statuses.append(send(match[0], "s"))
            assert statuses[-1] == 507
            assert process.wait(20) == 75
            assert "File too large" in process.stderr.read()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ((), 2, "--upstream URL"),
        (("--upstream", "http://x/v1", "--secret", "nothing"), 2, "NAME=SECRET"),
        (("--upstream", "http://x/v1", "--secret", "a=1", "--secret", "b=1"), 2, "must differ"),
        (("--upstream", "http://x/v1", "--host", "192.0.2.1"), 2, "no address of this machine"),
        (("--upstream", "http://user:pa55@x/v1"), 2, "MERGEMILL_UPSTREAM_KEY"),
        (("--upstream", "http://x/v1", "--secret", "../x=1"), 3, "not a rollout's name"),
    ],
)
def test_a_mistake_is_one_line(tmp_path: Path, arguments: tuple[str, ...], code: int, words: str) -> None:
    done = run_mergemill("gateway", "--log", str(tmp_path), *arguments, "--port", "0", cwd=tmp_path)
    assert done.exit_code == code, done.stderr
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert "pa55" not in done.stderr
