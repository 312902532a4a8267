"""Settings. Each is an option, an environment variable `MERGEMILL_...` and a key of `mergemill.toml`.

Precedence: option, environment, `mergemill.toml` in the working directory, default. The settings are grouped by
capability (`core.settings`), and a function takes the groups that it reads. Users write the flat names.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from pydantic import BaseModel, model_validator
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from core.settings.agents import RolloutSettings, SelectionSettings
from core.settings.explore import ExploreSettings
from core.settings.group import distribute_values, iterate_groups, list_settings
from core.settings.machine import (
    ClusterSettings,
    HostSettings,
    LimitSettings,
    OperationSettings,
    SandboxSettings,
)
from core.settings.mining import (
    GitHubSettings,
    MiningSettings,
    QuotaSettings,
    SourceSettings,
)
from core.settings.models import OFF, BudgetSettings, JudgeSettings, LlmSettings, UpstreamSettings
from core.settings.simulation import EpisodeSettings, MeasurementSettings, SimulationSettings
from core.settings.storage import StorageSettings
from core.settings.tasks import BuildSettings, CertifySettings, DeriveSettings, VerifySettings
from core.settings.worlds import WorldsSettings

SECRETS = ("github_tokens", "llm_key", "upstream_key")
"""Settings without an option, since other users of a machine can read its command lines."""


class Settings(BaseSettings):
    """All settings of one run. `Settings(**options)` reads the rest from the environment and `mergemill.toml`."""

    model_config = SettingsConfigDict(
        env_prefix="MERGEMILL_",
        toml_file="mergemill.toml",
        frozen=True,
        extra="forbid",
        env_ignore_empty=True,
        defer_build=True,  # help of commands needs no validator
        alias_generator="group {}".format,  # no name that a user can give: the keys are flat
    )

    storage: StorageSettings
    cluster: ClusterSettings
    sandbox: SandboxSettings
    limits: LimitSettings
    host: HostSettings
    operation: OperationSettings
    source: SourceSettings
    quota: QuotaSettings
    github: GitHubSettings
    mining: MiningSettings
    llm: LlmSettings
    judge: JudgeSettings
    budget: BudgetSettings
    build: BuildSettings
    verify: VerifySettings
    certify: CertifySettings
    derive: DeriveSettings
    upstream: UpstreamSettings
    rollout: RolloutSettings
    selection: SelectionSettings
    simulation: SimulationSettings
    episode: EpisodeSettings
    measurement: MeasurementSettings
    worlds: WorldsSettings
    explore: ExploreSettings

    def __init__(self, **flat: Any) -> None:
        super().__init__(**flat)

    @model_validator(mode="before")
    @classmethod
    def _distribute(cls, given: dict[str, object]) -> dict[str, object]:
        return distribute_values(cls, given)

    @property
    def can_write_tests(self) -> bool:
        """Whether tests are written for changes without tests, which needs a model."""
        return self.verify.write_tests and self.llm.url != OFF

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Return the sources in order of precedence: options, environment, mergemill.toml."""
        del env_settings, dotenv_settings, file_secret_settings
        return init_settings, _FlatVariables(settings_cls), TomlConfigSettingsSource(settings_cls)


def find_setting(location: Sequence[str | int]) -> str:
    """Return the flat name of the setting, or the unknown name, where pydantic found an error."""
    known = list_settings(Settings)
    return next((str(part) for part in location if part in known), str(location[0]))


class _FlatVariables(EnvSettingsSource):
    """Environment variables by the flat names of settings: pydantic's own source would read one for each group."""

    def __call__(self) -> dict[str, Any]:
        variables = {name: f"{self.env_prefix}{name}".lower() for name in list_settings(self.settings_cls)}
        return {name: self.env_vars[variable] for name, variable in variables.items() if variable in self.env_vars}


@cache
def describe_settings() -> Mapping[str, str]:
    """Return flat name of a setting -> its description, the text below it in its group.

    Pydantic can collect these texts, but takes longer for it than for the rest of the classes.
    """
    texts: dict[str, dict[str, str]] = {}
    for path in (Path(__file__).parent / "settings").glob("*.py"):
        texts |= {
            node.name: dict(_read_texts(node))
            for node in ast.parse(path.read_text(encoding="utf-8")).body
            if isinstance(node, ast.ClassDef)
        }
    return dict(_iterate_descriptions(Settings, texts))


def _iterate_descriptions(model: type[BaseModel], texts: Mapping[str, Mapping[str, str]]) -> Iterator[tuple[str, str]]:
    for name, field in model.model_fields.items():
        for owner in model.__mro__:
            if name in texts.get(owner.__name__, ()):
                yield field.alias or name, texts[owner.__name__][name]
    for _, group in iterate_groups(model):
        yield from _iterate_descriptions(group, texts)


def _read_texts(group: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for setting, below in pairwise(group.body):
        if (
            isinstance(setting, ast.AnnAssign)
            and isinstance(setting.target, ast.Name)
            and isinstance(below, ast.Expr)
            and isinstance(below.value, ast.Constant)
            and isinstance(below.value.value, str)
        ):
            yield setting.target.id, inspect.cleandoc(below.value.value)
