"""Services of episodes with a scripted simulator over real HTTP, and the scripts of its answers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from backends.llm.client import ChatModel
from backends.llm.ledger import CallLedger
from core.config import Settings
from simulators.domains.pack import DomainPack, load_pack
from simulators.environment.agent_turn import AgentTurn, parse_agent_text
from simulators.environment.calls import SimulatorCalls
from simulators.environment.episode_player import ResetRequest
from simulators.environment.folder import EpisodeFolder
from simulators.environment.options import PROFILES, EpisodeOptions
from simulators.environment.player import ConversationPlayer
from simulators.environment.service import EpisodeService
from simulators.seeds.reading import read_seeds
from tests.samplers.scripted_model import ModelRequest, ScriptedModel, Turn
from tests.simulators.making import read_prompt, write_seeds

GOOD, BAD = json.dumps({"reasoning": "All was right.", "reward": 1}), json.dumps({"reasoning": "No.", "reward": 0})
FIND = {"name": "find_user_id_by_email", "arguments": {"email": "ana0@example.org"}}
ORDER = {"name": "get_order_details", "arguments": {"order_id": "#W4000000"}}
EMAIL = "It is ana0@example.org, and the order is #W4000000."
_LATEST = re.compile(r"A JSON string\.\n\n\w+\n(.*)\n")
_CASE = re.compile(r"case number (\d+)")


def is_judge(request: ModelRequest) -> bool:
    return "You judge whether an agent did its task" in read_prompt(request)


def is_opening(request: ModelRequest) -> bool:
    return "You rewrite the first message" in read_prompt(request)


def read_latest(request: ModelRequest) -> str:
    """Return the agent's latest turn in a prompt of a step."""
    match = _LATEST.search(read_prompt(request))
    assert match, read_prompt(request)
    return str(json.loads(match[1]))


def play(request: ModelRequest) -> Turn:
    """A simulator that follows the reference, ends after thanks, and a judge that is content."""
    if is_judge(request):
        return Turn(text=GOOD)
    if is_opening(request):
        return Turn(text="Please help: " + str(request.at))
    return Turn(text=answer_turn(read_latest(request), read_prompt(request)))


def answer_turn(latest: str, prompt: str) -> str:
    """Return what person or tool says to a turn."""
    if "find_user_id_by_email" in latest:
        return "ana_case_0"
    if "get_order_details" in latest:
        match = re.search(r'"order_id": "([^"]*)"', latest)
        return json.dumps({"order_id": match[1] if match else "", "status": "pending", "total": 20})
    if "cancel_pending_order" in latest:
        return json.dumps({"status": "cancelled"})
    if "email" in latest:
        number = _CASE.search(prompt)
        assert number
        return f"It is ana{number[1]}@example.org, and the order is #W{4_000_000 + int(number[1])}."
    return "[TERMINATE]"


def tag(*calls: dict[str, Any], before: str = "") -> str:
    """Return calls in Hermes form."""
    return before + "\n".join(f"<tool_call>\n{json.dumps(call)}\n</tool_call>" for call in calls)


@contextmanager
def open_episodes(
    folder: Path,
    model: ScriptedModel | str,
    *,
    profile: str = "default",
    pack: DomainPack | None = None,
    seeds: int = 3,
    context: int | None = None,
    **options: Any,
) -> Iterator[EpisodeService]:
    """Open the service of a folder; `seeds`: their number; `options`: other than the profile's."""
    path = write_seeds(folder / "seeds.json", range(seeds))
    chosen: EpisodeOptions = replace(PROFILES[profile], **{"rewrites": 0.0, **options})
    given = Settings(llm=model if isinstance(model, str) else model.url, model="scripted", llm_timeout=10.0)
    client = ChatModel(given.llm, given.host, first_pause=0.01)
    if context is not None:
        client.context_tokens = context
    with CallLedger(folder / "episodes") as ledger:
        calls = SimulatorCalls(model=client, ledger=ledger, settings={})
        player = ConversationPlayer(
            pack=pack or load_pack("retail"),
            seeds=read_seeds(path).seeds,
            options=chosen,
            simulator=calls,
            judge=calls,
        )
        yield EpisodeService(player=player, folder=EpisodeFolder(folder / "episodes"), options=chosen)
    client.close()


@contextmanager
def play_episodes(
    folder: Path, answer: Callable[[ModelRequest], Turn] = play, **options: Any
) -> Iterator[tuple[EpisodeService, ScriptedModel]]:
    """Open a service with its scripted simulator."""
    with ScriptedModel(answer) as model, open_episodes(folder, model, **options) as service:
        yield service, model


def begin(service: EpisodeService, **request: Any) -> str:
    """Begin an episode, return its id."""
    return str(service.reset(ResetRequest(**request))["episode"])


def say(service: EpisodeService, episode: str, text: str | AgentTurn, **more: Any) -> dict[str, Any]:
    """Take a step."""
    return service.step(episode, parse_agent_text(text) if isinstance(text, str) else text, **more)
