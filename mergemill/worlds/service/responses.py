"""Responses of a service of worlds; docs/guide/worlds/worlds.md lists the fields. A client gets them as JSON."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from mergemill.worlds.service.catalog import ENVIRONMENT


class HealthResponse(BaseModel):
    """Response to `GET /health`: numbers of the service."""

    ok: bool = True
    worlds: int
    episodes: int
    """Open ones."""
    limit: int
    container: str
    containers_started: int


class ResetResponse(BaseModel):
    """Response to `POST /reset`: the opened episode, and what its agent is given."""

    episode: str
    world: str
    scenario: str
    seed: int
    mode: str
    environment: str = ENVIRONMENT
    mcp: str
    """Path of the episode's MCP server."""
    observation: dict[str, Any]
    info: dict[str, Any]


class StepResponse(BaseModel):
    """Response to `POST /step`: outcome of an action."""

    episode: str
    observation: dict[str, Any]
    reward: float
    terminated: bool
    truncated: bool
    info: dict[str, Any]


class StateResponse(BaseModel):
    """Response to `POST /state`. `steps`: number of actions so far."""

    episode: str
    state: Any
    digest: str
    steps: int
    ended: bool


class CheckResponse(BaseModel):
    """Outcome of a check of a scenario. `kept`: whether it held from the start."""

    function: str
    outcome: str
    kept: bool


class EvaluateResponse(BaseModel):
    """Response to `POST /evaluate`: reward and checks of the present state."""

    episode: str
    environment: str = ENVIRONMENT
    reward: float
    checks: list[CheckResponse]
    ended: bool


class CloseResponse(BaseModel):
    """Response to `POST /close`."""

    episode: str
    closed: bool = True
