"""Everything that a run of `mergemill sample` leaves, in a form that is the same each time.

Exit code, events, messages, requests of the models, records with their ids, artifacts, and files that are left in the
store. Times are left out, addresses, folders and versions of the grader are replaced, and long texts are shortened to
their hash. The result of a scripted run is compared with a file in `data/`. Where a change of records is intended, this
command writes the files:

    MERGEMILL_TEST_RECORD=yes python -m pytest tests/samplers/test_recorded_runs.py
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from mergemill.execution.grader_version import compute_grader_version, compute_scenario_grader_version
from samplers.gateway.exchanges import parse_exchange, read_log
from samplers.rollouts.recorded import RecordedTraffic
from taskdb.artifacts import Artifacts
from taskdb.records.rollouts import Rollout, RolloutPlan, Trajectory
from taskdb.store import Store
from tests.samplers.scripted_model import ModelRequest

DATA = Path(__file__).with_name("data")
VARYING = frozenset(
    (
        "at",
        "seconds",
        "start_seconds",
        "agent_seconds",
        "grade_seconds",
        "started_at",
        "latencies",
        "first_token_seconds",
    )
)
"""Fields that differ from run to run."""
GRADERS = {"GRADER": compute_grader_version(), "SCENARIO-GRADER": compute_scenario_grader_version()}
"""Word in the files -> version of the code that grades, which differs from commit to commit."""
MAX_TEXT = 160
"""Characters of a text that is kept as it is."""


def check_recorded(name: str, left: Any, folder: Path = DATA) -> None:
    """Compare the result of a run with the file of that name, which is written where the environment says so."""
    path = folder / f"{name}.json"
    text = json.dumps(left, indent=1, sort_keys=True) + "\n"
    if os.environ.get("MERGEMILL_TEST_RECORD"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert text.splitlines() == path.read_text().splitlines()


def describe_run(
    folder: Path, exit_code: int, lines: Iterable[str], messages: str, requests: Sequence[ModelRequest] = ()
) -> dict[str, Any]:
    """Return the result of a run in a folder with `mergemill.db` and `mergemill-store`.

    Args:
        folder: the folder.
        exit_code: exit code of the run.
        lines: events of the command, as lines of JSON.
        messages: standard error of the command.
        requests: requests that came to its models, in any order.
    """
    store_folder = folder / "mergemill-store"
    artifacts = Artifacts(store_folder / "artifacts")
    with Store.open(f"sqlite:///{folder}/mergemill.db", create=False) as store:
        rollouts = sorted(store.load_all(Rollout), key=lambda rollout: (rollout.plan, rollout.retry))
        trajectories = sorted(store.load_all(Trajectory), key=lambda trajectory: trajectory.id)
    left = {
        "exit_code": exit_code,
        "events": sorted((json.loads(line) for line in lines), key=lambda event: json.dumps(event, sort_keys=True)),
        "messages": messages.splitlines(),
        "requests": sorted(request.fingerprint[:16] for request in requests),
        "rollouts": [_describe_rollout(rollout, artifacts) for rollout in rollouts],
        "trajectories": [_describe_trajectory(trajectory, artifacts) for trajectory in trajectories],
        "logs": sorted(str(path.relative_to(store_folder)) for path in store_folder.glob("gateway*/*.jsonl")),
    }
    return dict(shorten(left, folder))


def describe_rows(folder: Path, path: Path) -> list[Any]:
    """Return the rows of a file of JSON lines."""
    return [shorten(json.loads(line), folder) for line in path.read_text().splitlines()]


def _describe_rollout(rollout: Rollout, artifacts: Artifacts) -> dict[str, Any]:
    shared = set(RolloutPlan.model_fields) & set(Rollout.model_fields)
    plan = RolloutPlan(task=rollout.parent, **rollout.model_dump(include=shared))
    assert plan.key == rollout.plan
    return {
        **rollout.model_dump(mode="json", exclude={"exchanges", "states"}, exclude_defaults=True),
        "id": rollout.id,
        # How many states are observed depends on the speed of the machine.
        "trees": sorted({state.tree for state in rollout.states}),
        "n_latencies": len(rollout.latencies),
        "content": {
            name: None if (key := getattr(rollout, name)) is None else artifacts.get(key).decode()
            for name in ("submission", "log")
        },
        "exchanges": _describe_exchanges(artifacts.get(rollout.exchanges)) if rollout.exchanges else None,
    }


def _describe_exchanges(raw: bytes) -> list[str]:
    """Return a line for each exchange: hashes of request and answer, how it ended, and what it cost."""
    ends = read_log(raw.splitlines(keepends=True)).ends
    exchanges = [parse_exchange(ends[number]) for number in sorted(ends)]
    chats = RecordedTraffic(exchanges=exchanges, n_doubtful=0, raw=raw).list_chats()
    return [
        f"{_hash(exchange.request)} {_hash(answer)} {exchange.finish_reason or exchange.error} {exchange.cost:.6f}"
        for exchange, (_, answer) in zip(exchanges, chats, strict=True)
    ]


def _describe_trajectory(trajectory: Trajectory, artifacts: Artifacts) -> dict[str, Any]:
    content = drop_times(json.loads(artifacts.get(trajectory.content)))
    return {
        **trajectory.model_dump(mode="json", exclude={"content"}),
        "id": trajectory.id,
        "content": _hash(content),
    }


def _hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def drop_times(value: Any) -> Any:
    """Return a JSON value without the fields that are times."""
    if isinstance(value, dict):
        return {name: drop_times(inner) for name, inner in value.items() if name not in VARYING}
    return [drop_times(inner) for inner in value] if isinstance(value, list) else value


def shorten(value: Any, folder: Path) -> Any:
    """Return a JSON value without times, with all that differs between runs replaced and long texts as their hash."""
    if isinstance(value, dict):
        return {name: shorten(inner, folder) for name, inner in value.items() if name not in VARYING}
    if isinstance(value, list):
        return [shorten(inner, folder) for inner in value]
    if not isinstance(value, str):
        return value
    text = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:PORT", value.replace(str(folder), "FOLDER"))
    for word, version in GRADERS.items():
        text = text.replace(version, word)
    if len(text) <= MAX_TEXT:
        return text
    return f"{text[:40]}... {len(text)} characters, {_hash(text)}"
