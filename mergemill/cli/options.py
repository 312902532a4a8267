"""Options that several commands share.

A command that takes `settings: Settings`, or groups of them such as `storage: StorageSettings`, and is decorated with
`with_settings()` gets an option for each setting, or for those of the groups and names that are given; `with_filters`
does the same for `filters: TaskFilters`. The help of an option is the docstring of the setting.
"""

from __future__ import annotations

import functools
import inspect
import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import typer
from pydantic import ByteSize, ValidationError
from pydantic.fields import FieldInfo

from core.config import SECRETS, Settings, describe_settings, find_setting
from core.errors import InputError, UsageError
from core.settings.explore import EvolutionSettings, ExploreRequestSettings, QuestionGateSettings, WalkSettings
from core.settings.group import SettingsGroup, list_settings
from core.settings.machine import HostSettings, KubernetesSettings, LimitSettings, SandboxSettings
from core.settings.mining import MiningSettings
from core.settings.models import LlmSettings, UpstreamSettings
from core.settings.simulation import EpisodeSettings, MeasurementSettings, SimulationSettings
from core.settings.storage import StorageSettings
from core.settings.tasks import CertifySettings
from core.settings.worlds import ScenarioSettings, WorldAssessmentSettings, WorldBuildSettings, WorldThemeSettings
from mergemill.bundles import filter_resolution
from mergemill.cli import output
from taskdb.queries.task_filters import FILTERS, FilterField, TaskFilters, parse_filters
from taskdb.schema.task_columns import WORD_FILTERS, TaskStatus

CommandFunction = Callable[..., None]

_SECRET = re.compile(r"token|secret|password|key", re.IGNORECASE)
"""Names of settings, misspelt settings too, whose values no error message may contain."""

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON on standard output and nothing else.")]
NewFolderOption = Annotated[Path, typer.Option("--out", metavar="DIR", help="Write to this new or empty folder.")]
PredictionsOption = Annotated[
    Path | None,
    typer.Option(
        "--predictions",
        metavar="FILE",
        readable=False,
        help="Grade each row: instance_id or task; model_patch, patch, tests or review; model_name_or_path.",
    ),
]
IdArgument = Annotated[str, typer.Argument(metavar="ID", help="Name, id or unambiguous beginning of an id.")]

SettingChoice = str | type[SettingsGroup]
"""A setting by its flat name, or all of a group but its secrets."""
SettingChoices = Sequence[SettingChoice]


def list_names(chosen: Iterable[SettingChoice]) -> list[str]:
    """Return the flat names of settings, secrets left out."""
    names = [name for choice in chosen for name in ([choice] if isinstance(choice, str) else list_settings(choice))]
    return [name for name in dict.fromkeys(names) if name not in SECRETS]


IMAGE_SETTINGS: SettingChoices = (
    StorageSettings,
    SandboxSettings,
    HostSettings,
    "budget_seconds",
    LimitSettings,
)
"""Settings of a command that works on images."""
WORLD_SETTINGS: SettingChoices = (StorageSettings, "sandbox", "allow_untrusted_local", HostSettings)
"""Settings of a command that runs worlds in containers."""
GRADING_SETTINGS: SettingChoices = (*IMAGE_SETTINGS, "test_timeout")
"""Settings of a command that runs tests."""
CERTIFY_SETTINGS: SettingChoices = (*GRADING_SETTINGS, CertifySettings)
"""Settings of a command that certifies the tasks of bundles."""
GITHUB_SETTINGS = ("github_api", "github_app_id", "github_app_key", "github_app_installation")
"""Settings of a command that connects to GitHub."""
UPSTREAM_SETTINGS: SettingChoices = (
    UpstreamSettings,
    "llm_price_prompt",
    "llm_price_cached",
    "llm_price_completion",
)
"""Settings of a command that puts a gateway in front of the agents' model server."""
SIMULATOR_SETTINGS = ("llm", "simulator_model", "llm_timeout", "llm_context", "llm_answer_tokens")
"""Settings of a command in which a model answers for the programs of simulated tasks."""
MODEL_SETTINGS = tuple(name for name in list_names([LlmSettings]) if name != "simulator_model")
"""Settings of a command that queries a model."""
SIMULATE_SETTINGS: SettingChoices = (
    StorageSettings,
    *MODEL_SETTINGS,
    "workers",
    "ca_bundle",
    SimulationSettings,
)
"""Settings of a command that simulates conversations."""
EPISODE_SETTINGS: SettingChoices = (
    *MODEL_SETTINGS,
    "workers",
    "ca_bundle",
    "simulate_temperature",
    "simulate_target",
    "simulate_draw",
    EpisodeSettings,
)
"""Settings of a command that serves simulated environments."""
MEASURE_SETTINGS: SettingChoices = (
    *GRADING_SETTINGS,
    *MODEL_SETTINGS,
    "clones",
    "workers",
    MeasurementSettings,
)
"""Settings of a command that grades submissions and lets a simulator predict the scores."""

WORLDS_SETTINGS: SettingChoices = (
    StorageSettings,
    *MODEL_SETTINGS,
    "workers",
    "ca_bundle",
    "worlds_attempts",
    "worlds_temperature",
    "worlds_draw",
)
"""Settings of each command that makes worlds."""
WORLDS_SERVER_SETTINGS = ("sandbox", "allow_untrusted_local", "base_source")
"""Settings of a step that runs worlds in a container."""
WORLDS_STEP_SETTINGS: Mapping[str, SettingChoices] = {
    "discover": ("licenses", "clones", WorldThemeSettings),
    "build": (WorldBuildSettings,),
    "assess": (*WORLDS_SERVER_SETTINGS, WorldAssessmentSettings),
    "scenarios": (*WORLDS_SERVER_SETTINGS, ScenarioSettings),
}
"""Step of making worlds -> settings that it alone reads."""

EXPLORE_SETTINGS: SettingChoices = (StorageSettings, *MODEL_SETTINGS, "workers", "ca_bundle", ExploreRequestSettings)
"""Settings of each command that makes questions over a corpus."""
EXPLORE_STEP_SETTINGS: Mapping[str, SettingChoices] = {
    "walk": (*EXPLORE_SETTINGS, WalkSettings),
    "write": EXPLORE_SETTINGS,
    "evolve": (*EXPLORE_SETTINGS, EvolutionSettings),
    "gate": (*EXPLORE_SETTINGS, QuestionGateSettings),
}
"""Step of making questions -> its settings."""

COMMON = "Settings"
AGENTS = "Agents"
SELECTION = "Rejection sampling"
SIMULATION = "Simulation"
WORLDS = "Worlds"
EXPLORING = "Exploring"
PANELS: Mapping[str, Sequence[str]] = {
    COMMON: (
        "db",
        "store",
        "artifacts",
        "limit",
        "quota_changes",
        "quota_tasks",
        "since",
        "until",
        "language",
        "workers",
        "clones",
        "llm",
        "model",
    ),
    SIMULATION: ("max_false_pass",),
    "Machine": (
        "db_patience",
        "cluster",
        "worker_cpus",
        "node_registry",
        "sandbox",
        "allow_untrusted_local",
        "base_source",
        "ca_bundle",
        "image_budget",
        "drain_seconds",
        "metrics_port",
        "metrics_host",
    ),
    "Kubernetes": list_names([KubernetesSettings]),
    "Mining rules": list_names([MiningSettings]),
    "Build and verification": (
        "max_attempts",
        "skills",
        "repeats",
        "whole_suite_seconds",
        "certify_runs",
        "certify_exploits",
        "strength_runs",
        "write_tests",
        "write_attempts",
        "write_min_detected",
        "injected_per_change",
        "injected_bugs",
        "rebuilt_per_change",
    ),
    "Instruction tasks": (
        "instructions_per_task",
        "instruction_constraints",
        "instruction_sources",
        "instruction_turns",
        "constraint_folder",
    ),
    "Tasks from environments": ("per_environment",),
    "Limits": list_names(["budget_seconds", "test_timeout", LimitSettings]),
}
"""Heading in the help of a command -> its settings, both in the order of the help; the rest: `PREFIX_PANELS`."""
PREFIX_PANELS = {
    "github": "GitHub",
    "llm": "Model",
    "judge": "Model",
    "budget": "Model",
    "upstream": AGENTS,
    "request": AGENTS,
    "token": AGENTS,
    "rollout": AGENTS,
    "select": SELECTION,
    "simulate": SIMULATION,
    "episode": SIMULATION,
    "worlds": WORLDS,
    "explore": EXPLORING,
    "simulator": SIMULATION,
}
"""First word of a setting's name -> heading, for settings that `PANELS` does not list."""

METAVARS: Mapping[type, str] = {int: "N", float: "N", Path: "PATH", date: "DATE", str: "TEXT", ByteSize: "SIZE"}
SETTING_METAVARS = {
    "db": "URL",
    "store": "DIR",
    "artifacts": "DIR|URL",
    "kubernetes_context": "NAME",
    "kubernetes_namespace": "NAME",
    "kubernetes_registry": "HOST/PREFIX",
    "kubernetes_pull_secret": "NAME",
    "kubernetes_helper_image": "IMAGE",
    "kubernetes_nodes": "KEY=VALUE",
    "kubernetes_runtime_class": "NAME",
    "node_registry": "HOST/PREFIX",
    "clones": "DIR",
    "certify_exploits": "sample:SHARE|quick|all|off",
    "skills": "DIR",
    "repeats": "adaptive|N",
    "instruction_constraints": "LEAST:GREATEST",
    "instruction_sources": "LEAST:GREATEST",
    "instruction_turns": "LEAST:GREATEST",
    "constraint_folder": "DIR",
    "llm": "URL",
    "model": "NAME",
    "judge_models": "NAME[,NAME]",
    "language": "LANGUAGE",
    "licenses": "SPDX[,SPDX]",
    "benchmarks": "FILE[,FILE]",
    "simulate_benchmarks": "FILE[,FILE]",
    "simulator_model": "NAME",
    "ca_bundle": "FILE",
    "github_api": "URL",
    "github_app_id": "ID",
    "github_app_key": "FILE",
    "github_app_installation": "ID",
    "upstream": "URL",
    "worlds_embedding_model": "NAME",
    "worlds_embedding_url": "URL",
    "worlds_tester_model": "NAME",
    "worlds_checker_model": "NAME",
    "worlds_solver_model": "NAME",
}
"""Metavars that are more specific than the type of the setting."""


def with_settings(*settings: SettingChoice) -> Callable[[CommandFunction], CommandFunction]:
    """Give a command an option for each setting (without any: of the pipeline).

    They take the place of its parameters that are `Settings` or a group of them, which has the name of the group.
    """
    chosen = sorted(list_names(settings) or list_pipeline_settings(), key=_place_option)
    options = {name: _build_option(name, list_settings(Settings)[name]) for name in chosen}

    def decorate(command: CommandFunction) -> CommandFunction:
        parameters = inspect.signature(command, eval_str=True).parameters.values()
        replaced = [parameter.name for parameter in parameters if _is_settings(parameter.annotation)]

        def build(given: Mapping[str, Any]) -> dict[str, Any]:
            whole = build_settings(given)
            return {name: whole if name == "settings" else getattr(whole, name) for name in replaced}

        return _replace_parameters(replaced, options, build, command)

    return decorate


def _is_settings(annotation: Any) -> bool:
    return inspect.isclass(annotation) and issubclass(annotation, (Settings, SettingsGroup))


def list_pipeline_settings() -> list[str]:
    """Return the settings of the stages: all but secrets and those of agents, simulators and explorers."""
    return [
        name
        for name in list_names(list_settings(Settings))
        if _find_panel(name) not in (AGENTS, SELECTION, SIMULATION, EXPLORING)
    ]


def with_filters(command: CommandFunction) -> CommandFunction:
    """Give a command the filters of `tasks list` in place of `filters`.

    An option of the command's own with a filter's name takes its place: `export --split` is not a filter.
    """
    own = inspect.signature(command).parameters
    options = {name: _build_filter_option(FILTERS[name]) for name in FILTERS if name not in own}
    return replace_parameter("filters", options, _build_filters, command)


def complete_words(words: Iterable[str]) -> Callable[[str], list[str]]:
    """Return what typer calls to complete the last word of an option's value, which may have several with commas."""

    def complete(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        return [f"{before}{comma}{word}" for word in words if word.startswith(last)]

    return complete


def _list_choices(metavar: str) -> list[str]:
    """Return the words between which a metavar such as `auto|registry|debian` leaves the choice."""
    return [word for word in metavar.split("|") if word.islower()] if "|" in metavar else []


def _list_words(option: FilterField) -> Sequence[str]:
    declared = WORD_FILTERS.get(option.name)
    return declared.choices if declared and declared.choices else _list_choices(option.metavar)


def _build_filter_option(option: FilterField) -> Any:
    is_file = option.name == "ids"
    return Annotated[
        str | None,
        typer.Option(
            f"--{_to_option_name(option.name)}",
            help="Select the tasks of this file: ids or names, one a line; `-` for standard input."
            if is_file
            else option.help,
            metavar="FILE" if is_file else option.metavar,
            autocompletion=complete_words(_list_words(option)),
            rich_help_panel=option.panel,
        ),
    ]


def _build_filters(given: Mapping[str, Any]) -> TaskFilters:
    names = given.get("ids")
    filters = parse_filters({name: value for name, value in given.items() if name != "ids"})
    return filters if names is None else replace(filters, named=filter_resolution.read_names(names, sys.stdin))


def resolve_filters(filters: TaskFilters, storage: StorageSettings) -> TaskFilters:
    """Return the filters with names, files, saved selections and samples resolved to a condition."""
    return _resolve(filters, storage, None)


def select_certified(filters: TaskFilters, storage: StorageSettings) -> TaskFilters:
    """Return the resolved filters; without `--status` they select certified tasks."""
    return _resolve(filters, storage, TaskStatus.CERTIFIED)


def _resolve(filters: TaskFilters, storage: StorageSettings, default_status: str | None) -> TaskFilters:
    if filters.difficulty is not None and not filter_resolution.has_rollouts(storage):
        output.print_note("--difficulty selects no task: there are no rollouts")
    return filter_resolution.resolve_filters(filters, storage, default_status=default_status)


def build_settings(given: Mapping[str, Any]) -> Settings:
    """Return the settings from options, environment and mergemill.toml.

    Raises:
        UsageError: a setting has a value it cannot have.
        InputError: mergemill.toml is not TOML.
    """
    try:
        return Settings(**{name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        first = error.errors()[0]
        name = find_setting(first["loc"])
        problem = first["msg"][:1].lower() + first["msg"][1:]
        where = f"MERGEMILL_{name.upper()} or {name} in mergemill.toml"
        is_secret = name in SECRETS or (name not in list_settings(Settings) and _SECRET.search(name))
        # A URL may hold a password, which must not appear in a message.
        if is_secret or "@" in str(first["input"]):
            raise UsageError(f"{where}: {problem}") from None
        instead = "" if first["input"] is None else f", not {first['input']!r}"
        raise UsageError(f"--{_to_option_name(name)}, {where}: {problem}{instead}") from error
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"mergemill.toml: {error}") from error


def split_words(given: str | Sequence[str] | None) -> Sequence[str]:
    """Return the words between the commas of an option, which may be given several times."""
    texts = [given] if isinstance(given, str) else given or ()
    return [word.strip() for text in texts for word in text.split(",") if word.strip()]


def _find_panel(name: str) -> str:
    listed = next((panel for panel, names in PANELS.items() if name in names), None)
    return listed or PREFIX_PANELS.get(name.partition("_")[0], COMMON)


def _place_option(name: str) -> tuple[int, int]:
    """Return the place of a setting in the help: by panel, then by its place in the panel."""
    panel = _find_panel(name)
    panels = [*PANELS, *dict.fromkeys(PREFIX_PANELS.values())]
    names = PANELS.get(panel, ())
    return panels.index(panel), names.index(name) if name in names else len(names)


def _build_option(name: str, field: FieldInfo) -> Any:
    option = functools.partial(
        typer.Option,
        f"--{_to_option_name(name)}",
        help=f"{describe_settings()[name]} {_format_default(field)}".strip(),
        rich_help_panel=_find_panel(name),
    )
    if field.annotation is bool:
        return Annotated[bool | None, option()]
    # Values are passed to pydantic as text, which validates options, variables and mergemill.toml alike.
    metavar = SETTING_METAVARS.get(name) or _format_metavar(field)
    return Annotated[str | None, option(metavar=metavar, autocompletion=complete_words(_list_choices(metavar)))]


def _format_default(field: FieldInfo) -> str:
    return "" if field.default in (None, (), False) else f"Default: {field.default}."


def _format_metavar(field: FieldInfo) -> str:
    types = [field.annotation, *get_args(field.annotation)]
    choices = [choice for type_ in types if get_origin(type_) is Literal for choice in get_args(type_)]
    metavar = next((METAVARS[type_] for type_ in types if type_ in METAVARS), "" if choices else "TEXT")
    return "|".join([*choices, *([metavar] if metavar else [])])


def _to_option_name(name: str) -> str:
    return name.replace("_", "-")


def replace_parameter(
    parameter: str, options: Mapping[str, Any], build: Callable[[Mapping[str, Any]], Any], command: CommandFunction
) -> CommandFunction:
    """Return a command whose `parameter` is built from the options, which follow its own in the signature."""
    return _replace_parameters([parameter], options, lambda given: {parameter: build(given)}, command)


def _replace_parameters(
    parameters: Sequence[str],
    options: Mapping[str, Any],
    build: Callable[[Mapping[str, Any]], Mapping[str, Any]],
    command: CommandFunction,
) -> CommandFunction:
    signature = inspect.signature(command, eval_str=True)
    own = [p for p in signature.parameters.values() if p.name not in parameters]
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
        for name, annotation in options.items()
    ]

    @functools.wraps(command)
    def wrapper(**given: Any) -> None:
        values = build({name: given.pop(name) for name in options})
        command(**given, **values)

    keyword_only = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own]
    wrapper.__signature__ = inspect.Signature([*keyword_only, *added])  # type: ignore[attr-defined]
    wrapper.__annotations__ = {p.name: p.annotation for p in [*own, *added]}
    # Inspection follows `__wrapped__` to the annotations of the command, which differ from those of the wrapper.
    del wrapper.__wrapped__
    return wrapper
