"""Options that many commands share, written once.

A command that takes `settings: Settings` and is decorated with `with_settings()` has an option for each setting (or for
those named); `with_filters` does the same for `filters: Filters`. What the option is for stands where it is defined.
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

from mergemill.config import SECRETS, Settings
from mergemill.errors import InputError, UsageError
from taskdb.queries import Filters
from taskdb.records import Kind
from taskdb.tags import ChangeKind

Command = Callable[..., None]

_SECRET = re.compile(r"token|secret|password|key", re.IGNORECASE)
"""Names, misspelt ones too, of what no error may show."""

Json = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, on standard output.")]
READING = ("db", "store")
"""The settings that reading commands need."""
IMAGES = (*READING, "base_source", "ca_bundle", "budget_seconds", "memory_mb", "disk_mb", "pids", "cpus", "output_mb")
"""Those of commands that work on images."""
GRADING = (*IMAGES, "test_timeout")
"""Those of a command that runs tests."""
GITHUB = ("github_api", "github_app_id", "github_app_key", "github_app_installation")
"""Those of a command that looks at GitHub."""
MODEL = ("llm", "model")
"""Those of a command that looks at a model's endpoint."""


class Status(StrEnum):
    """How far a task came."""

    DERIVED = "derived"
    CERTIFIED = "certified"
    REJECTED = "rejected"


def with_settings(*names: str) -> Callable[[Command], Command]:
    """Give a command an option for each of the settings named (all, when none is) instead of `settings`."""
    chosen = names or tuple(name for name in Settings.model_fields if name not in SECRETS)
    options = {name: _setting(name, Settings.model_fields[name]) for name in chosen}
    return functools.partial(_replacing, "settings", options, settings_of)


def with_filters(command: Command) -> Command:
    """Give a command the filters of `tasks list` instead of `filters`."""
    options: dict[str, Any] = {
        "source": Annotated[str | None, typer.Option("--source", help="Only of this source.")],
        "repo": Annotated[str | None, typer.Option("--repo", help="Only of this repository, OWNER/NAME.")],
        "language": Annotated[str | None, typer.Option("--language", help="Only in this language.")],
        "kind": Annotated[Kind | None, typer.Option("--kind", help="Only of this kind.")],
        "change_kind": Annotated[
            ChangeKind | None, typer.Option("--change-kind", help="Only of changes that are of this kind.")
        ],
        "status": Annotated[Status | None, typer.Option("--status", help="Only those that came so far.")],
        "license": Annotated[str | None, typer.Option("--license", help="Only under this licence (SPDX).")],
        "min_f2p": Annotated[int | None, typer.Option("--min-f2p", min=0, help="At least so many FAIL_TO_PASS tests.")],
    }
    return _replacing("filters", options, lambda given: Filters(**given), command)


def meant(filters: Filters, settings: Settings) -> Filters:
    """The filters with the source as its records spell it: a renamed repository's first name."""
    if filters.source is None:
        return filters
    from miner.sources import canonical  # noqa: PLC0415 - few ask for a source

    return replace(filters, source=canonical(filters.source, settings.store_dir / "clones"))


def settings_of(given: Mapping[str, Any]) -> Settings:
    """Settings from options, environment and mergemill.toml.

    Raises:
        UsageError: a value is not one the setting can have.
        InputError: mergemill.toml is not TOML.
    """
    try:
        return Settings(**{name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0])
        said = first["msg"][:1].lower() + first["msg"][1:]
        where = f"MERGEMILL_{name.upper()} or {name} in mergemill.toml"
        secret = name in SECRETS or (name not in Settings.model_fields and _SECRET.search(name))
        if secret or "@" in str(first["input"]):  # a URL may hold a password
            raise UsageError(f"{where}: {said}") from None
        instead = "" if first["input"] is None else f", not {first['input']!r}"
        raise UsageError(f"--{_dashed(name)}, {where}: {said}{instead}") from error
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"mergemill.toml: {error}") from error


def submission_of(word: str, path: Path) -> bytes:
    """The content of a file that is to be graded; `word`: what it is (patch, tests, review).

    Raises:
        InputError: it cannot be read or is empty.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read the {word} {path}: {error.strerror}") from error
    if not content.strip():
        raise InputError(f"the {word} {path} is empty", advice="--noop grades the empty submission")
    return content


def words(text: str | None) -> Sequence[str]:
    """What stands between the commas."""
    return [word.strip() for word in (text or "").split(",") if word.strip()]


def _setting(name: str, field: FieldInfo) -> Any:
    # Values go to pydantic as they were typed: it knows the types, and says the same for all three places.
    option = typer.Option(
        f"--{_dashed(name)}", help=f"{field.description} {_default(field)}".strip(), metavar=_metavar(field)
    )
    return Annotated[str | None, option]


def _default(field: FieldInfo) -> str:
    return "" if field.default in (None, ()) else f"Default: {field.default}."


def _metavar(field: FieldInfo) -> str:
    kinds = [field.annotation, *get_args(field.annotation)]
    words = [word for kind in kinds if get_origin(kind) is Literal for word in get_args(kind)]
    names = {int: "N", float: "N", Path: "PATH", date: "DATE", str: "TEXT", ByteSize: "SIZE"}
    found = next((names[kind] for kind in kinds if kind in names), "" if words else "TEXT")
    return "|".join([*words, *([found] if found else [])])


def _dashed(name: str) -> str:
    return name.replace("_", "-")


def _replacing(
    parameter: str, options: Mapping[str, Any], build: Callable[[Mapping[str, Any]], Any], command: Command
) -> Command:
    """A command whose `parameter` is built from the options, which stand behind its own in the signature."""
    signature = inspect.signature(command, eval_str=True)
    own = [p for p in signature.parameters.values() if p.name != parameter]
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
        for name, annotation in options.items()
    ]

    @functools.wraps(command)
    def replaced(**given: Any) -> None:
        built = build({name: given.pop(name) for name in options})
        command(**given, **{parameter: built})

    keyword_only = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own]
    replaced.__signature__ = inspect.Signature([*keyword_only, *added])  # type: ignore[attr-defined]
    replaced.__annotations__ = {p.name: p.annotation for p in [*own, *added]}
    del replaced.__wrapped__  # its annotations are not those of this function
    return replaced
