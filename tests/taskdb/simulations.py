"""Records of simulated conversations for tests."""

from __future__ import annotations

import json
from typing import Any

from simulators.conversation import DialogueTurn, FunctionCall, TurnRole
from simulators.domains.pack import load_pack
from simulators.trajectory import SimulatedTrajectory
from taskdb.artifacts import Artifacts
from taskdb.records.simulations import PREFILTER, SimulatedConversation, SimulationRejection
from taskdb.store import Store

CALL = FunctionCall(name="get_order_details", arguments={"order_id": "#W1"})
TURNS = (
    DialogueTurn(role=TurnRole.HUMAN, text="Where is my order #W1?"),
    DialogueTurn(role=TurnRole.FUNCTION_CALL, calls=(CALL,)),
    DialogueTurn(role=TurnRole.OBSERVATION, text="It is on its way."),
    DialogueTurn(role=TurnRole.ASSISTANT, text="It is on its way."),
)


def make_conversation(seed: str = "aa", sample: int = 1, **fields: Any) -> SimulatedConversation:
    given: dict[str, Any] = {
        "parent": seed,
        "name": f"{seed}-{sample}",
        "domain": "retail",
        "pack_version": "1",
        "profile": "default",
        "simulator": "org/m",
        "prompt": "conversation-1",
        "sample": sample,
        "scenario": "new",
        "failure": None,
        "license": "MIT",
        "answer": f"answer of {seed}-{sample}",
        "turns_sha256": "1" * 64,
        "n_turns": 12,
        "n_calls": 3,
        "trajectory": "2" * 64,
        "content": "3" * 64,
    }
    return SimulatedConversation(**given | fields)


def drop(seed: str, sample: int, step: str, reason: str, **fields: Any) -> SimulationRejection:
    given: dict[str, Any] = {
        "parent": seed,
        "name": f"{seed}-{sample}",
        "domain": "retail",
        "profile": "default",
        "simulator": "org/m",
        "answer": f"answer of {seed}-{sample}",
        "step": step,
        "reason": reason,
        "detail": "",
    }
    return SimulationRejection(**given | fields)


def reject_seed(seed: str, reason: str = "seed-incomplete", **fields: Any) -> SimulationRejection:
    return drop(seed, 0, PREFILTER, reason, **{"name": seed, "answer": "", **fields})


def add_conversation(store: Store, artifacts: Artifacts) -> SimulatedConversation:
    """Add a conversation with its texts, and return it."""
    seed = {"id": "aa", "name": "", "file": "s.json", "line": 1, "format": "sharegpt", "turns": 4, "tools": []}
    trajectory = SimulatedTrajectory(
        id="2" * 64,
        parent="aa",
        domain="retail",
        pack_version="1",
        simulator="org/m",
        profile="default",
        prompt="conversation-1",
        seed=seed,
        sample=1,
        scenario="new",
        failure="",
        answer="",
        license="MIT",
        turns=TURNS,
        n_generated=4,
    )
    pack = load_pack("retail")
    held = {"name": pack.name, "version": "1", "policy": pack.policy, "tools": list(pack.tools.values())}
    record = make_conversation(
        content=artifacts.put_text(json.dumps(trajectory.to_json())), pack=artifacts.put_text(json.dumps(held))
    )
    store.add(record)
    return record
