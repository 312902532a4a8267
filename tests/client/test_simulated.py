"""Adapters of simulated environments against a real server: what trainers receive, also where there is no reward.

RAGEN's own classes run in the tests marked as slow, which clone it. Those of verl need the libraries of a GPU, so its
loop runs here on a class with the methods of verl 0.9.1.
"""

from __future__ import annotations

import asyncio
import json
import math
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from mergemill_client import ClientError
from mergemill_client.environment import UnscoredError
from mergemill_client.simulated import SimulatedEnvironment, connect

from tests.client import simulated_programs as programs
from tests.exporters.consumers import fetch_source
from tests.samplers.scripted_model import ModelRequest, ScriptedModel, Turn
from tests.simulators.environment.making import BAD, FIND, GOOD, is_judge, play, tag
from tests.simulators.environment.test_server import serve
from tests.simulators.making import read_prompt

CLIENT = Path(__file__).parents[2] / "client"
RAGEN = "https://github.com/mll-lab-nu/RAGEN"
RAGEN_COMMIT = "20daedc47558e000f7de912b060646bf2e8026bd"


def answer(request: ModelRequest) -> Turn:
    """A judge that is content, not content, or unreadable, as the agent's text has it; else as `play`."""
    if not is_judge(request):
        return play(request)
    prompt = read_prompt(request)
    return Turn(text="?" if "unreadable" in prompt else BAD if "badly" in prompt else GOOD)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("server")
    with ScriptedModel(answer) as model, serve(folder, model, "--episode-rewrites", "0") as address:
        yield address


# ------------------------------------------------------------------------------------------------------- client


def test_the_client_plays_an_episode(url: str) -> None:
    server = connect(url)
    opened = server.reset(seed=0)
    said = server.step(opened["episode"], "Your email?", turn=0, context_tokens=100)
    assert (said["role"], said["turn"], said["done"]) == ("user", 1, False)
    assert server.step(opened["episode"], tool_calls=[FIND], turn=1)["observation"] == "ana_case_0"
    assert server.evaluate(opened["episode"])["termination_reason"] == "forced_evaluation"
    assert server.get_record(opened["episode"])["reward"] == 1.0
    assert server.describe()["environment"] == "simulated"


def test_a_step_that_is_sent_twice_is_played_once(url: str) -> None:
    server = SimulatedEnvironment(url)
    episode = server.reset(seed=0)["episode"]
    assert server.step(episode, "Your email?", turn=0) == server.step(episode, "Your email?", turn=0)
    assert server.get_record(episode)["num_steps"] == 1


def test_errors_of_the_client_are_a_line(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MERGEMILL_ENV_URL", raising=False)
    with pytest.raises(ClientError, match="no server of simulated environments is named"):
        connect()
    with pytest.raises(ClientError, match="there is no episode x"):
        SimulatedEnvironment(url).step("x", "a", turn=0)
    with pytest.raises(ClientError, match="refused"):
        SimulatedEnvironment("http://127.0.0.1:9", patience=0.1).reset()


# ------------------------------------------------------------------------------------------------------- RAGEN


@pytest.fixture(scope="module")
def ragen() -> Path:
    return fetch_source("ragen", RAGEN, RAGEN_COMMIT)


def run(program: str, *words: str | Path) -> Any:
    """Run a program of `simulated_programs`; return what it printed."""
    command = [sys.executable, "-c", program, *map(str, words)]
    done = subprocess.run(command, env={"PYTHONPATH": str(CLIENT)}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
def test_ragens_base_class_runs_an_episode(ragen: Path, url: str) -> None:
    made = run(programs.ONE_EPISODE, ragen, url)
    assert made["first"] == made["again"]
    assert made["first"].startswith(made["system"])
    assert made["first"].endswith("\n\nHello, this is case number 0. I want to cancel an order.")
    cases = [[int(text.split("case number ")[1][0]) for text in texts] for texts in made["samples"]]
    assert cases == [[0, 0, 1, 1], [2, 2, 0, 0]], "Simia's fork: (group + episode * 2) mod 3"
    assert [int(text.split("case number ")[1][0]) for text in made["validation"]] == [0, 1, 2, 0]
    (email, broken, ended) = made["steps"]
    assert email[0].startswith("It is ana0@example.org")
    assert email[1:3] == broken[1:3] == [0.0, False]
    assert broken[0].startswith("Error: ")
    assert ended[1:] == [1.0, True, {"success": True, "mergemill/unscored": 0.0}]
    assert made["rendered"] == ""
    assert (made["record"]["reward"], made["record"]["termination_reason"]) == (1.0, "gpt_decision")
    assert "find_user_id_by_email" in made["system"]
    assert "no usable answer of scripted" in made["raised"]


@pytest.mark.slow
def test_ragens_manager_gives_unscored_rollouts_an_advantage_of_zero(ragen: Path, url: str) -> None:
    """Six rollouts in two groups of three: rewards 1, null and 0; and three that are null."""
    made = run(programs.MANAGER, ragen, url)
    assert [len(set(made["beginnings"][n : n + 3])) for n in (0, 3)] == [1, 1]
    assert made["beginnings"][0] != made["beginnings"][3]
    assert (made["left"], made["unscored"]) == (0, [0, 1, 0, 1, 1, 1])
    first, second = made["rewards"][:3], made["rewards"][3:]
    assert first == [1.0, 0.5, 0.0], "the mean of the others: the advantage is 0"
    assert second == [0.0, 0.0, 0.0], "all equal: no advantage"


# -------------------------------------------------------------------------------------------------------- verl


class Loop:
    """The methods of verl 0.9.1's AgentLoopBase that the adapter calls; a token is a letter here."""

    def __init__(self, *, texts: list[str], response_length: int = 100_000) -> None:
        self.rollout_config = SimpleNamespace(response_length=response_length)
        self.tokenizer = SimpleNamespace(decode=lambda ids, **_: "".join(map(chr, ids)))
        self.server_manager = self
        self.texts, self.prompts, self.messages = texts, list[list[int]](), list[list[dict[str, Any]]]()

    async def generate(self, request_id: str, *, prompt_ids: list[int], sampling_params: Any) -> SimpleNamespace:
        del request_id, sampling_params
        self.prompts.append(prompt_ids)
        text = self.texts.pop(0)
        return SimpleNamespace(token_ids=[*map(ord, text)], log_probs=[-0.5] * len(text))

    async def ct_build_initial_tokens(self, messages: list[dict[str, Any]], tools: Any = None) -> list[int]:
        assert tools[0]["type"] == "function"
        self.messages.append(messages)
        return [1, *map(ord, messages[-1]["content"])]

    async def ct_merge_assistant_token(
        self,
        runtime_token_ids: list[int],
        assistant_token_ids: list[int],
        response_mask: list[int],
        response_logprobs: list[float] | None = None,
        assistant_logprobs: list[float] | None = None,
    ) -> Any:
        merged = SimpleNamespace(token_ids=[*runtime_token_ids, *assistant_token_ids])
        mask = [*response_mask, *[1] * len(assistant_token_ids)]
        return merged, mask, [*(response_logprobs or []), *(assistant_logprobs or [])]

    async def ct_merge_context_msg(
        self,
        previous_messages: list[dict[str, Any]],
        updated_messages: list[dict[str, Any]],
        runtime_token_ids: list[int],
        response_mask: list[int],
        response_logprobs: list[float] | None = None,
        tools: Any = None,
    ) -> Any:
        del tools
        assert updated_messages[: len(previous_messages)] == previous_messages
        self.messages.append(updated_messages)
        added = [
            ord(letter)
            for updated_message in updated_messages[len(previous_messages) :]
            for letter in updated_message["content"]
        ]
        merged = SimpleNamespace(token_ids=[*runtime_token_ids, *added])
        return merged, [*response_mask, *[0] * len(added)], [*(response_logprobs or []), *[0.0] * len(added)]


@pytest.fixture
def loop(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The adapter's loop on `Loop` in the place of verl's class."""
    names = ("verl", "verl.experimental", "verl.experimental.agent_loop", "verl.experimental.agent_loop.agent_loop")
    for name in names:
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    module = sys.modules[names[-1]]
    module.__dict__.update(
        AgentLoopBase=Loop,
        AgentLoopOutput=SimpleNamespace,
        AgentLoopMetrics=SimpleNamespace,
        register=lambda _: lambda kind: kind,
    )
    monkeypatch.delitem(sys.modules, "mergemill_client.simulated.verl", raising=False)
    from mergemill_client.simulated.verl import SimulatedAgentLoop  # noqa: PLC0415 - after verl is in place

    yield SimulatedAgentLoop
    sys.modules.pop("mergemill_client.simulated.verl", None)


def play_loop(loop: Any, url: str, texts: list[str], **options: Any) -> tuple[Any, Any]:
    limit = {"response_length": options.pop("response_length")} if "response_length" in options else {}
    made = loop(url=url, texts=texts, **options, **limit)
    task = connect(url).reset(seed=0)["task"]
    output = asyncio.run(made.run({}, raw_prompt=[], extra_info={"task": task, "index": 0}))
    return made, output


def test_verls_loop_trains_on_the_agents_tokens_alone(loop: Any, url: str) -> None:
    texts = ["Your email?", tag(FIND), "Done."]
    made, output = play_loop(loop, url, list(texts))
    trained = "".join(chr(t) for t, m in zip(output.response_ids, output.response_mask, strict=True) if m)
    assert trained == "".join(texts)
    response = "".join(map(chr, output.response_ids))
    assert "Your email?It is ana0@example.org" in response
    assert output.prompt_ids == made.prompts[0]
    assert len(output.response_ids) == len(output.response_mask) == len(output.response_logprobs)
    assert (output.reward_score, output.num_turns) == (1.0, 7)
    assert output.extra_fields["environment"] == "simulated"
    assert (output.extra_fields["unscored"], output.extra_fields["termination_reason"]) == (False, "gpt_decision")
    assert [message["role"] for message in made.messages[-1]] == [
        "system",
        "user",
        "assistant",
        "user",
        "assistant",
        "tool",
    ]


def test_verls_loop_drops_an_episode_without_a_reward(loop: Any, url: str) -> None:
    _, output = play_loop(loop, url, ["Done, unreadable."])
    assert math.isnan(output.reward_score)
    assert not any(output.response_mask)
    assert output.extra_fields["unscored"] is True
    with pytest.raises(UnscoredError):
        play_loop(loop, url, ["Done, unreadable."], unscored="raise")


def test_verls_loop_evaluates_an_episode_that_fills_the_response(loop: Any, url: str) -> None:
    made, output = play_loop(loop, url, ["Your email?", "never said"], response_length=5)
    assert (output.reward_score, output.extra_fields["termination_reason"]) == (1.0, "forced_evaluation")
    assert len(output.response_ids) == len(output.response_mask) == 5
    assert made.texts == ["never said"]
