"""Settings of models: the endpoints, the limits of a request, and the judges of problem statements."""

from __future__ import annotations

import os
from typing import Literal

from pydantic import ConfigDict, Field, SecretStr, ValidationInfo, field_validator

from core.settings.group import SettingsGroup, WordList, check_url

OFF = "off"
"""Value of `llm` for no model."""


class LlmSettings(SettingsGroup):
    """Endpoint of the models that the stages query, and its prices."""

    model_config = ConfigDict(alias_generator="llm_{}".format)

    url: Literal["off"] | str = Field(alias="llm", default=OFF)
    """URL of the OpenAI-compatible API to query (such as `http://localhost:8000/v1`), or `off`."""
    simulator_model: str | None = Field(alias="simulator_model", default=None)
    """Name of the model at --llm that answers for the programs and tests of simulated tasks. Default: --model."""
    model: str | None = Field(alias="model", default=None)
    """Name of the model at --llm; for agents, of that at --upstream."""
    key: SecretStr | None = None
    """Key for the API of --llm. Default: OPENAI_API_KEY."""
    timeout: float = Field(default=300, gt=0)
    """Seconds that a model may take for one response."""
    context: int = Field(default=64_000, ge=2048)
    """Token limit of a conversation with the model, its response included."""
    answer_tokens: int = Field(default=4096, ge=64)
    """Token limit of one response."""
    price_prompt: float = Field(default=0.0, ge=0)
    """Price of a million prompt tokens."""
    price_cached: float | None = Field(default=None, ge=0)
    """Price of a million cached prompt tokens. Default: the price of prompt tokens."""
    price_completion: float = Field(default=0.0, ge=0)
    """Price of a million completion tokens."""

    @field_validator("url")
    @classmethod
    def _check_url(cls, value: str) -> str:
        return value if value == OFF else check_url(value, "keys belong in MERGEMILL_LLM_KEY")

    @field_validator("model")
    @classmethod
    def _check_model(cls, value: str | None, info: ValidationInfo) -> str | None:
        if not value and info.data.get("url", OFF) != OFF and not info.data.get("simulator_model"):
            raise ValueError("is missing: --llm needs the name of a model")
        return value

    def find_key(self) -> SecretStr | None:
        """Return the key of the API: the setting, else OPENAI_API_KEY of the environment, else None."""
        named = self.key or SecretStr(os.environ.get("OPENAI_API_KEY", "").strip())
        return named or None


class BudgetSettings(SettingsGroup):
    """Limits of a change in a stage."""

    model_config = ConfigDict(alias_generator="budget_{}".format)

    tokens: int | None = Field(default=500_000, ge=1)
    """Token limit of one change in one stage, prompt and completion."""
    cost: float | None = Field(default=None, gt=0)
    """Cost limit of one change in one stage, at the given prices."""
    seconds: float = Field(default=1800, gt=0)
    """Wall time limit of one change in one stage."""


class JudgeSettings(SettingsGroup):
    """Panel of models that judges problem statements."""

    model_config = ConfigDict(alias_generator="judge_{}".format)

    models: WordList = ()
    """Models at --llm that judge problem statements, comma-separated. Default: --model."""
    samples: int = Field(default=3, ge=1, le=20)
    """Opinions per judging model."""


class UpstreamSettings(SettingsGroup):
    """Model server that the gateway puts behind agents."""

    model_config = ConfigDict(alias_generator="upstream_{}".format)

    url: str | None = Field(alias="upstream", default=None)
    """URL of the model server for agents (such as `http://localhost:8000/v1`)."""
    dialect: Literal["openai", "anthropic"] = "openai"
    """API of the model server for agents: chat completions as of OpenAI, or Anthropic's Messages."""
    key: SecretStr | None = None
    """Key for the API of --upstream."""
    concurrency: int = Field(default=64, ge=1)
    """Requests to --upstream at once; further ones wait."""
    request_timeout: float = Field(alias="request_timeout", default=600, gt=0)
    """Seconds without a byte of an answer after which a request to --upstream is sent again."""
    token_ids: Literal["off", "vllm"] = Field(alias="token_ids", default="off")
    """Record the token ids and log-probs that --upstream gives, requested as vLLM takes it."""

    @field_validator("url")
    @classmethod
    def _check_url(cls, value: str | None) -> str | None:
        return None if value is None else check_url(value, "keys belong in MERGEMILL_UPSTREAM_KEY")
