"""The log: torn lines, full disks, other writers."""

from __future__ import annotations

import asyncio
import json
import resource
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from backends.llm.meter import TokenUsage
from core.errors import InputError, MachineError, Transient
from samplers.gateway.exchanges import read_exchanges
from samplers.gateway.log import ExchangeLog, LogFolder
from samplers.gateway.process import GatewayProcess, RolloutAccess, Upstream
from samplers.gateway.rollout_state import RecordedAnswer, RolloutState
from tests.samplers.gateway.clients import make_body, make_url, post
from tests.samplers.gateway.conftest import ServeModel, StartGateway
from tests.samplers.scripted_model import ScriptedModel, Turn

ROOT = Path(__file__).parents[3]


def test_a_torn_last_line_is_ignored_by_readers_and_cut_before_the_next(
    start_gateway: StartGateway, serve_model: ServeModel
) -> None:
    with serve_model([Turn(text="ok")]) as model:
        gateway = start_gateway(model)
        gateway.open_rollout("r", RolloutAccess(secret="s"))
        for text in "ab":
            post(gateway, "s", "chat", text)
        gateway.close_rollout("r")
        log = gateway.log_dir / "r.jsonl"
        whole = log.read_bytes()
        end = whole.rindex(b'{"event":"end"')
        log.write_bytes(whole[: end + 50])
        assert [exchange.exchange for exchange in read_exchanges(log)] == [0]
        gateway.open_rollout("r", RolloutAccess(secret="s", replay=True))
        for text in "ab":
            assert post(gateway, "s", "chat", text).status_code == 200
        assert [json.loads(line)["event"] for line in log.read_text().splitlines()].count("end") == 2
        assert [exchange.exchange for exchange in read_exchanges(log)] == [0, 1]
        assert len({request.headers["idempotency-key"] for request in model.requests}) == 2


def test_a_log_that_is_none_is_an_error_of_the_input(tmp_path: Path) -> None:
    log = tmp_path / "r.jsonl"
    log.write_text("no JSON\n")
    with pytest.raises(InputError, match="not a log of the gateway"):
        read_exchanges(log)
    with pytest.raises(InputError, match="not a log of the gateway"):
        ExchangeLog(log)
    with pytest.raises(InputError, match="cannot read the log"):
        read_exchanges(tmp_path / "missing.jsonl")


def test_one_gateway_at_a_time_has_a_folder(tmp_path: Path) -> None:
    first = LogFolder(tmp_path)
    with pytest.raises(MachineError, match="another gateway"):
        LogFolder(tmp_path)
    first.close()
    LogFolder(tmp_path).close()


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".hidden", "x" * 300])
def test_a_name_that_is_no_files_is_refused(tmp_path: Path, name: str) -> None:
    folder = LogFolder(tmp_path)
    with pytest.raises(InputError, match="not a rollout's name"):
        folder.find_path(name)
    folder.close()


def limit_files(size: int) -> None:
    """Let the process and its children write no file past a size; it fails as a full disk does."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


LIMITED = """
import json, resource, signal, sys
from pathlib import Path
import httpx
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]),) * 2)
from samplers.gateway.process import GatewayProcess, RolloutAccess, Upstream
from tests.samplers.gateway.clients import post
with GatewayProcess(Upstream(url=sys.argv[1]), Path(sys.argv[2]), agent_socket=None, port=0) as gateway:
    gateway.open_rollout("r", RolloutAccess(secret="s"))
    statuses = []
    for number in range(40):
        statuses.append(post(gateway, "s", "chat", f"{number}").status_code)
    print(json.dumps([statuses, gateway.get_usage("r").model_dump()]))
"""


def test_a_full_disk_is_a_failure_that_the_driver_sees_and_no_loss(tmp_path: Path) -> None:
    """Every answer that an agent got is in the log."""
    with ScriptedModel([Turn(text="word " * 40)]) as model:
        command = [sys.executable, "-c", LIMITED, model.url, str(tmp_path), "20000"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        statuses, usage = json.loads(done.stdout)
    answered = statuses.count(200)
    assert 1 < answered < 40
    assert statuses == [200] * answered + [507] * (40 - answered)
    assert usage["stopped_by"] == usage["last_error"]["kind"] == "disk"
    log = tmp_path / "r.jsonl"
    assert log.read_bytes().endswith(b"\n")
    assert len(read_exchanges(log)) == answered
    assert model.paid <= answered + 1


def test_a_rollout_that_cannot_be_recorded_is_not_opened(tmp_path: Path) -> None:
    command = [sys.executable, "-c", LIMITED, "http://127.0.0.1:1/v1", str(tmp_path), "10"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert Transient.__name__ in done.stderr.splitlines()[-1]
    assert "cannot write the log" in done.stderr


def test_logs_are_readable_for_their_owner_alone(start_gateway: StartGateway, serve_model: ServeModel) -> None:
    with serve_model([Turn(text="ok")]) as model:
        gateway = start_gateway(model)
        gateway.open_rollout("r", RolloutAccess(secret="a-secret"))
        post(gateway, "a-secret", "chat")
        log = gateway.log_dir / "r.jsonl"
        assert log.stat().st_mode & 0o777 == 0o600
        assert b"a-secret" not in log.read_bytes()


def test_an_exchange_is_written_before_it_is_sent_and_before_it_is_given(tmp_path: Path) -> None:
    """The model looks into the log while it answers, the client when it has the answer."""
    seen: list[list[str]] = []

    def list_events() -> list[str]:
        return [json.loads(line)["event"] for line in (tmp_path / "r.jsonl").read_text().splitlines()]

    with ScriptedModel([]) as model:
        model.answer = lambda _: seen.append(list_events()) or Turn(text="ok")  # type: ignore[func-returns-value]
        with GatewayProcess(Upstream(url=model.url), tmp_path, agent_socket=None, port=0) as gateway:
            gateway.open_rollout("r", RolloutAccess(secret="s"))
            url = f"http://127.0.0.1:{gateway.port}/r/s/v1/chat/completions"
            with httpx.stream("POST", url, json=make_body("chat", "q", streamed=True)) as response:
                seen.extend(list_events() for piece in response.iter_text() if "[DONE]" in piece)
    assert seen[0] == ["run", "begin"]
    assert seen[1][:3] == ["run", "begin", "end"]


@pytest.mark.parametrize("upstream", ["openai", "anthropic"])
def test_no_agent_sees_the_end_of_an_answer_before_it_is_recorded(
    start_gateway: StartGateway, serve_model: ServeModel, upstream: str
) -> None:
    """Agents go on at the finish reason; the model takes its time between this and the last event."""
    dialect, mark = ("chat", '"finish_reason": "stop"') if upstream == "openai" else ("messages", "message_delta")
    with serve_model([Turn(text="one two", delay=0.05)]) as model:
        gateway = start_gateway(model, upstream)
        gateway.open_rollout("r", RolloutAccess(secret="s"))
        body = make_body(dialect, "q", streamed=True)
        with httpx.stream("POST", make_url(gateway, "s", dialect), json=body) as response:
            seen = [(gateway.log_dir / "r.jsonl").read_text() for piece in response.iter_text() if mark in piece]
        assert len(seen) == 1
        assert '"event":"end"' in seen[0]


def test_what_is_noted_after_a_rollout_was_closed_gets_into_no_other_log(tmp_path: Path) -> None:
    """The next log has the descriptor of the closed one."""
    state = RolloutState("a", RolloutAccess(secret="s"), ExchangeLog(tmp_path / "a.jsonl"))
    answer = RecordedAnswer(number=0, fingerprint="f", response={}, usage=TokenUsage(), cost=0.0)
    state.keep_unsent(answer)
    asyncio.run(state.close())
    other = ExchangeLog(tmp_path / "b.jsonl")
    state.mark_sent("f", 0)
    assert (tmp_path / "b.jsonl").read_bytes() == b""
    assert state.get_usage().stopped_by is None
    other.close()
