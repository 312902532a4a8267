"""Options that several commands share.

A command that takes `settings: Settings` and is decorated with `with_settings()` gets an option for each setting, or
for those named; `with_filters` does the same for `filters: TaskFilters`. The help of an option is the docstring of the
setting.
"""

from __future__ import annotations

import functools
import inspect
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import typer
from pydantic import ByteSize, ValidationError
from pydantic.fields import FieldInfo

from core.config import SECRETS, Settings
from core.errors import InputError, UsageError
from taskdb.queries import TaskFilters
from taskdb.records import Kind
from taskdb.tags import ChangeKind

CommandFunction = Callable[..., None]

_SECRET = re.compile(r"token|secret|password|key", re.IGNORECASE)
"""Names of settings, misspelt ones too, whose values no error message may contain."""

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON on standard output and nothing else.")]
IdArgument = Annotated[str, typer.Argument(metavar="ID", help="Name, id or unambiguous beginning of an id.")]

READ_SETTINGS = ("db", "store")
"""Settings of a command that reads the database."""
IMAGE_SETTINGS = (
    *READ_SETTINGS,
    "sandbox",
    "allow_untrusted_local",
    "base_source",
    "ca_bundle",
    "budget_seconds",
    "memory_mb",
    "disk_mb",
    "pids",
    "cpus",
    "output_mb",
)
"""Settings of a command that works on images."""
GRADING_SETTINGS = (*IMAGE_SETTINGS, "test_timeout")
"""Settings of a command that runs tests."""
GITHUB_SETTINGS = ("github_api", "github_app_id", "github_app_key", "github_app_installation")
"""Settings of a command that connects to GitHub."""
MODEL_SETTINGS = ("llm", "model")
"""Settings of a command that connects to a model's endpoint."""

METAVARS: Mapping[type, str] = {int: "N", float: "N", Path: "PATH", date: "DATE", str: "TEXT", ByteSize: "SIZE"}
SETTING_METAVARS = {
    "db": "URL",
    "store": "DIR",
    "clones": "DIR",
    "skills": "DIR",
    "llm": "URL",
    "model": "NAME",
    "judge_models": "NAME[,NAME]",
    "language": "LANGUAGE",
    "licenses": "SPDX[,SPDX]",
    "benchmarks": "FILE[,FILE]",
    "ca_bundle": "FILE",
    "github_api": "URL",
    "github_app_id": "ID",
    "github_app_key": "FILE",
    "github_app_installation": "ID",
}
"""Metavars that are more specific than the type of the setting."""


class TaskStatus(StrEnum):
    """Last stage that a task passed, or that it was rejected."""

    DERIVED = "derived"
    CERTIFIED = "certified"
    REJECTED = "rejected"


def with_settings(*names: str) -> Callable[[CommandFunction], CommandFunction]:
    """Give a command an option for each of the settings (all, when none is named) in place of `settings`."""
    chosen = names or tuple(name for name in Settings.model_fields if name not in SECRETS)
    options = {name: _build_option(name, Settings.model_fields[name]) for name in chosen}
    return functools.partial(_replace_parameter, "settings", options, build_settings)


def with_filters(command: CommandFunction) -> CommandFunction:
    """Give a command the filters of `tasks list` in place of `filters`."""

    def option(name: str, help_text: str, **attributes: Any) -> Any:
        return typer.Option(f"--{_to_option_name(name)}", help=help_text, rich_help_panel="Filters", **attributes)

    options: dict[str, Any] = {
        "source": Annotated[str | None, option("source", "Select tasks of this source.")],
        "repo": Annotated[str | None, option("repo", "Select tasks of this repository.", metavar="OWNER/NAME")],
        "language": Annotated[str | None, option("language", "Select tasks in this language.", metavar="LANGUAGE")],
        "kind": Annotated[Kind | None, option("kind", "Select tasks of this kind.")],
        "change_kind": Annotated[
            ChangeKind | None, option("change_kind", "Select tasks of changes of this kind.", metavar="KIND")
        ],
        "status": Annotated[TaskStatus | None, option("status", "Select tasks with this status.")],
        "license": Annotated[str | None, option("license", "Select tasks under this licence.", metavar="SPDX")],
        "min_f2p": Annotated[
            int | None, option("min_f2p", "Select tasks with at least N FAIL_TO_PASS tests.", min=0, metavar="N")
        ],
    }
    return _replace_parameter("filters", options, lambda given: TaskFilters(**given), command)


def resolve_filters(filters: TaskFilters, settings: Settings) -> TaskFilters:
    """Return the filters with the source spelled as records have it (a renamed repository's first name)."""
    if filters.source is None:
        return filters
    from miner.sources import canonicalize_source  # noqa: PLC0415 - few commands name a source

    return replace(filters, source=canonicalize_source(filters.source, settings.store_dir / "clones"))


def select_certified(filters: TaskFilters, settings: Settings) -> TaskFilters:
    """Return the resolved filters; without `--status` they select certified tasks."""
    return replace(resolve_filters(filters, settings), status=filters.status or TaskStatus.CERTIFIED)


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
        name = str(first["loc"][0])
        problem = first["msg"][:1].lower() + first["msg"][1:]
        where = f"MERGEMILL_{name.upper()} or {name} in mergemill.toml"
        is_secret = name in SECRETS or (name not in Settings.model_fields and _SECRET.search(name))
        if is_secret or "@" in str(first["input"]):  # a URL may hold a password
            raise UsageError(f"{where}: {problem}") from None
        instead = "" if first["input"] is None else f", not {first['input']!r}"
        raise UsageError(f"--{_to_option_name(name)}, {where}: {problem}{instead}") from error
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"mergemill.toml: {error}") from error


def split_words(text: str | None) -> Sequence[str]:
    """Return the words between the commas of an option."""
    return [word.strip() for word in (text or "").split(",") if word.strip()]


def _build_option(name: str, field: FieldInfo) -> Any:
    option = functools.partial(
        typer.Option,
        f"--{_to_option_name(name)}",
        help=f"{field.description} {_format_default(field)}".strip(),
        rich_help_panel="Settings",
    )
    if field.annotation is bool:
        return Annotated[bool | None, option()]
    # Values are passed to pydantic as text, which validates options, variables and mergemill.toml alike.
    return Annotated[str | None, option(metavar=SETTING_METAVARS.get(name) or _format_metavar(field))]


def _format_default(field: FieldInfo) -> str:
    return "" if field.default in (None, (), False) else f"Default: {field.default}."


def _format_metavar(field: FieldInfo) -> str:
    types = [field.annotation, *get_args(field.annotation)]
    choices = [choice for type_ in types if get_origin(type_) is Literal for choice in get_args(type_)]
    metavar = next((METAVARS[type_] for type_ in types if type_ in METAVARS), "" if choices else "TEXT")
    return "|".join([*choices, *([metavar] if metavar else [])])


def _to_option_name(name: str) -> str:
    return name.replace("_", "-")


def _replace_parameter(
    parameter: str, options: Mapping[str, Any], build: Callable[[Mapping[str, Any]], Any], command: CommandFunction
) -> CommandFunction:
    """Return a command whose `parameter` is built from the options, which follow its own in the signature."""
    signature = inspect.signature(command, eval_str=True)
    own = [p for p in signature.parameters.values() if p.name != parameter]
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
        for name, annotation in options.items()
    ]

    @functools.wraps(command)
    def wrapper(**given: Any) -> None:
        value = build({name: given.pop(name) for name in options})
        command(**given, **{parameter: value})

    keyword_only = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own]
    wrapper.__signature__ = inspect.Signature([*keyword_only, *added])  # type: ignore[attr-defined]
    wrapper.__annotations__ = {p.name: p.annotation for p in [*own, *added]}
    del wrapper.__wrapped__  # the annotations of the command differ from those of the wrapper
    return wrapper
