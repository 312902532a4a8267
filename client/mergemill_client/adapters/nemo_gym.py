"""NeMo-Gym: a resources server that has answers graded by a grading server.

::

    mergemill:
      resources_servers:
        mergemill:
          entrypoint: app.py          # from mergemill_client.adapters.nemo_gym import *; run_server()
          url: http://127.0.0.1:8400
          shape: graded

A rollout without a score is answered with status 503, which NeMo-Gym counts as a failed rollout: it has no reward.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fastapi import HTTPException
from nemo_gym.base_resources_server import (
    BaseResourcesServerConfig,
    BaseVerifyRequest,
    BaseVerifyResponse,
    SimpleResourcesServer,
)

from mergemill_client.adapters.connection import build_row_facts, connect, wait_for
from mergemill_client.environment import TaskEnvironment, UnscoredError

AGENT = {"type": "responses_api_agents", "name": "mergemill_simple_agent"}


class MergemillServerConfig(BaseResourcesServerConfig):  # type: ignore[misc]
    """Settings of the server; those of the grading server as in `connection.connect`."""

    url: str = ""
    token: str = ""
    shape: str = ""


class MergemillVerifyRequest(BaseVerifyRequest):  # type: ignore[misc]
    """Request with the facts of the row's task."""

    verifier_metadata: dict[str, Any]


class MergemillVerifyResponse(BaseVerifyResponse):  # type: ignore[misc]
    """Response with the task's name and kind, for metrics."""

    instance_id: str
    kind: str


class MergemillResourcesServer(SimpleResourcesServer):  # type: ignore[misc]
    """Server that has each response graded: the submission in its last fenced block."""

    config: MergemillServerConfig

    async def verify(self, body: MergemillVerifyRequest) -> MergemillVerifyResponse:
        """Grade a response."""
        facts = body.verifier_metadata
        environment = connect(self.config.url, self.config.token, self.config.shape)
        score = await wait_for(environment.grade_answer, facts["task"], facts["kind"], body.response.output_text)
        try:
            reward = environment.require_reward(score)
        except UnscoredError as error:
            raise HTTPException(503, str(error)) from error
        return MergemillVerifyResponse(
            **body.model_dump(exclude={"verifier_metadata"}),
            reward=reward,
            instance_id=facts["task"],
            kind=facts["kind"],
        )


def iterate_rows(environment: TaskEnvironment, **filters: Any) -> Iterator[dict[str, Any]]:
    """Yield the rows of NeMo-Gym's JSONL files for the tasks that filters select."""
    for prompt in environment.iterate_prompts(**filters):
        yield {
            "responses_create_params": {"input": prompt["messages"]},
            "agent_ref": AGENT,
            "verifier_metadata": build_row_facts(prompt),
        }


def run_server() -> None:
    """Run the server of this process, as NeMo-Gym starts it."""
    MergemillResourcesServer.run_webserver()
