"""Evidence of a trajectory with given calls, for tests of rules."""

from __future__ import annotations

from typing import Any

from samplers.trajectories.evidence import TrajectoryEvidence
from taskdb.records.rollouts import Rollout, RolloutPlan, RolloutStatus
from tests.samplers.trajectories.making import SYSTEM, TASK, ask, call, give

PATCH = b"""diff --git a/greet.py b/greet.py
index 1111111..2222222 100644
--- a/greet.py
+++ b/greet.py
@@ -1,2 +1,2 @@
 def greet():
-    return "hi"
+    return "hello"
"""


def make_plain_rollout(**fields: Any) -> Rollout:
    plan = RolloutPlan(task="t", name="n", scaffold="react", scaffold_version="1", model="m", attempt=1)
    given: dict[str, Any] = {"status": RolloutStatus.DONE} | fields
    return Rollout(
        parent="t",
        name="n",
        plan=plan.key,
        scaffold="react",
        scaffold_version="1",
        model="m",
        attempt=1,
        **given,
    )


def observe(*pairs: tuple[str, str], submission: bytes = PATCH, **fields: Any) -> TrajectoryEvidence:
    """Return the evidence of a conversation with these commands and their results."""
    messages: list[dict[str, Any]] = [SYSTEM, TASK]
    requests = []
    for number, (command, result) in enumerate(pairs):
        requests.append(ask(number, messages, call(number, command)))
        messages = [*messages, call(number, command), give(number, result)]
    requests.append(ask(len(pairs), messages, {"role": "assistant", "content": "Done."}))
    rollout = make_plain_rollout(**fields)
    return TrajectoryEvidence(rollout=rollout, requests=requests, later=requests, submission=submission)
