"""`mergemill sample`: agents on tasks."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from core.config import Settings
from core.errors import InputError, UsageError
from core.files import read_text
from core.settings.agents import RolloutSettings
from core.settings.machine import ClusterSettings
from core.settings.storage import StorageSettings
from mergemill.cli.agents.environments import (
    EnvironmentChoice,
    EnvironmentOption,
    WorldOption,
    parse_environment,
    refuse_task_filters,
)
from mergemill.cli.options import (
    GRADING_SETTINGS,
    SIMULATOR_SETTINGS,
    UPSTREAM_SETTINGS,
    JsonOption,
    SettingChoices,
    resolve_filters,
    select_certified,
    split_words,
    with_filters,
    with_settings,
)
from taskdb.queries.task_filters import TaskFilters
from taskdb.queries.trajectories import SYNTHETIC
from taskdb.records import Kind
from taskdb.records.instructions import InstructionSource

if TYPE_CHECKING:
    from mergemill.agents.sampling.progress import SamplingProgress
    from mergemill.agents.sampling.world_scaffolds import WorldScaffold
    from samplers.scaffolds.base import SampledScaffold, Scaffold

SAMPLE_SETTINGS: SettingChoices = (
    *GRADING_SETTINGS,
    *UPSTREAM_SETTINGS,
    *SIMULATOR_SETTINGS,
    ClusterSettings,
    "model",
    RolloutSettings,
    "llm",
)

STAGED = "staged"
"""Value of --attempts."""
MAX_ATTEMPTS = 10_000
MAX_SYSTEM_BYTES = 100_000
"""Bytes of a text for system prompts. Linux gives a program arguments of 128 KiB each at most."""
RESERVED = frozenset(("model", "messages", "input", "system", "instructions", "tools", "stream"))
"""Fields of a request that are the agent's, and no setting of sampling."""

app = typer.Typer(add_completion=False)


@app.command("sample")
@with_filters
@with_settings(*SAMPLE_SETTINGS)
def sample(
    *,
    scaffold: Annotated[
        list[str],
        typer.Option("--scaffold", metavar="S[,S]", help="Scaffolds, or MODULE:CLASS; may be given several times."),
    ],
    attempts: Annotated[
        str,
        typer.Option(
            "--attempts", metavar="K|staged", help="Attempts at each task; staged: 4, then 16 where these differ."
        ),
    ] = "1",
    only: Annotated[
        str | None, typer.Option("--only", metavar="ID[,ID]", help="Sample these tasks (names or ids).")
    ] = None,
    checkpoint: Annotated[
        str, typer.Option("--checkpoint", metavar="NAME", help="Names the weights behind the model's name.")
    ] = "",
    sampling: Annotated[
        list[str] | None,
        typer.Option("--sampling", metavar="NAME=VALUE", help="Sampling setting, such as temperature=0.7."),
    ] = None,
    system: Annotated[
        Path | None,
        typer.Option(
            "--system", metavar="FILE", show_default=False, help="Add the text of this file to the system prompt."
        ),
    ] = None,
    context: Annotated[
        str,
        typer.Option(
            "--context",
            metavar="none|note|talk|MODULE:CLASS",
            help="Rule that clears the history of react; with settings such as note:trigger=0.5,last=3.",
        ),
    ] = "none",
    feedback: Annotated[
        int,
        typer.Option(
            "--retries-with-feedback",
            metavar="N",
            min=0,
            max=1,
            help="Second attempts of agents that broke instructions, after these are named to them.",
        ),
    ] = 0,
    credit: Annotated[
        str | None,
        typer.Option(
            "--credit",
            metavar="MODULE:FUNCTION",
            help="Divide the reward of a rollout among its trajectories by this function.",
        ),
    ] = None,
    uncertified: Annotated[bool, typer.Option("--uncertified", help="Sample what is not certified, too.")] = False,
    environment: EnvironmentOption = None,
    world: WorldOption = None,
    user: Annotated[
        str | None,
        typer.Option(
            "--user",
            metavar="NAME|scripted",
            show_default=False,
            help="Model that plays the user of a dialogue, at --llm or else at --upstream, or a script.",
        ),
    ] = None,
    as_json: JsonOption = False,
    filters: TaskFilters,
    settings: Settings,
) -> None:
    """Run agents on tasks or scenarios and store each rollout with its reward.

    Example: mergemill sample --scaffold react --model M --upstream http://localhost:8000/v1 --attempts 4
    """
    # Loaded in the function, since help and wrong options need no samplers.
    from samplers.trajectories.credit import load_credit, share_reward  # noqa: PLC0415

    words = list(dict.fromkeys(split_words(scaffold)))
    if not words:
        raise UsageError("--scaffold names none", advice="such as --scaffold react,codex")
    choice = parse_environment(environment, world)
    attempted: dict[str, Any] = {
        "model": settings.llm.model or "",
        "attempts": parse_attempts(attempts),
        "checkpoint": checkpoint,
        "sampling": parse_sampling(sampling or ()),
        "system": read_system(system) if system else "",
        "gives_feedback": feedback > 0,
        "uncertified": uncertified,
        "credit": load_credit(credit) if credit else share_reward,
    }
    if choice.has_scenarios:
        from mergemill.agents.sampling.world_scaffolds import make_world_scaffolds  # noqa: PLC0415

        _check_scenario_options(choice, filters)
        if feedback:
            raise UsageError("--retries-with-feedback is for tasks", advice="scenarios have no instructions besides")
        if context != "none":
            raise UsageError("--context is for tasks", advice="the history of a scenario is short")
        if system is not None:
            raise UsageError("--system is for tasks", advice="a scenario's system prompt has the rules of its world")
        scaffolds = make_world_scaffolds(words, user or "")
        code = _sample_scenarios(scaffolds, choice, only, attempted, settings, as_json=as_json)
    else:
        if user is not None:
            raise UsageError("--user is for scenarios", advice=f"add --environment {SYNTHETIC}")
        if choice.words is not None:
            filters = replace(filters, environment=choice.words)
        code = _sample_tasks(_load_scaffolds(words, context), filters, only, attempted, settings, as_json=as_json)
    raise typer.Exit(code)


def _load_scaffolds(words: Sequence[str], context: str) -> tuple[Scaffold, ...]:
    """Return the scaffolds of tasks; `context`: rule that clears their histories."""
    # A wrong option is reported without loading the samplers.
    from mergemill.agents.sampling.world_scaffolds import MODES  # noqa: PLC0415
    from samplers.context.loading import load_context_rule  # noqa: PLC0415
    from samplers.scaffolds.registry import SCAFFOLDS, load_scaffold  # noqa: PLC0415

    if of_scenarios := [word for word in words if word in MODES and word not in SCAFFOLDS]:
        raise UsageError(f"--scaffold {of_scenarios[0]} is for scenarios", advice=f"add --environment {SYNTHETIC}")
    rule = load_context_rule(context)
    return tuple(load_scaffold(word, rule) for word in words)


def _sample_tasks(
    scaffolds: tuple[Scaffold, ...],
    filters: TaskFilters,
    only: str | None,
    attempted: Mapping[str, Any],
    settings: Settings,
    *,
    as_json: bool,
) -> int:
    from mergemill.agents.sampling.request import SampleRequest  # noqa: PLC0415 - as above
    from mergemill.agents.sampling.run import run_sampling  # noqa: PLC0415 - as above
    from samplers.scaffolds.registry import SCAFFOLDS, load_scaffold  # noqa: PLC0415 - as above

    _require_model(attempted["model"], scaffolds)
    others = [scaffold.name for scaffold in scaffolds if InstructionSource.SYSTEM not in scaffold.delivers]
    if attempted["system"] and others:
        takers = ", ".join(name for name in SCAFFOLDS if InstructionSource.SYSTEM in load_scaffold(name).delivers)
        raise UsageError(f"--system: {others[0]} has no system prompt that can be added to", advice=f"one of {takers}")
    if attempted["gives_feedback"] and (
        ended := [scaffold.name for scaffold in scaffolds if scaffold.uses_model and not scaffold.continues]
    ):
        able = ", ".join(name for name in SCAFFOLDS if load_scaffold(name).continues)
        raise UsageError(f"--retries-with-feedback: {ended[0]} cannot go on after its end", advice=f"one of {able}")
    selected = _select_tasks(filters, only, settings.storage, uncertified=attempted["uncertified"])
    request = SampleRequest(filters=selected, scaffolds=scaffolds, **attempted)
    return run_sampling(request, settings, make_progress(as_json=as_json))


def _sample_scenarios(
    scaffolds: tuple[WorldScaffold, ...],
    choice: EnvironmentChoice,
    only: str | None,
    attempted: Mapping[str, Any],
    settings: Settings,
    *,
    as_json: bool,
) -> int:
    from mergemill.agents.sampling.request import WorldSampleRequest  # noqa: PLC0415 - as above
    from mergemill.agents.sampling.worlds import run_world_sampling  # noqa: PLC0415 - as above

    _require_model(attempted["model"], scaffolds)
    request = WorldSampleRequest(scaffolds=scaffolds, worlds=choice.worlds, only=tuple(split_words(only)), **attempted)
    return run_world_sampling(request, settings, make_progress(as_json=as_json))


def _check_scenario_options(choice: EnvironmentChoice, filters: TaskFilters) -> None:
    """Raise UsageError where tasks and scenarios are to be sampled at once: no scaffold is for both."""
    refuse_task_filters(choice, filters)
    if choice.words != (SYNTHETIC,):
        raise UsageError("tasks and scenarios are sampled by commands of their own", advice="name one environment")


def _require_model(model: str, scaffolds: Sequence[SampledScaffold]) -> None:
    if not model and any(scaffold.uses_model for scaffold in scaffolds):
        raise UsageError("--model is missing", advice="name the model as the server at --upstream does")


def make_progress(*, as_json: bool) -> SamplingProgress:
    """Return the receiver of the events of a sampling: a live table, JSON lines, or messages alone."""
    from mergemill.agents.sampling.progress import (  # noqa: PLC0415 - as above
        JsonSamplingProgress,
        LiveSamplingProgress,
        SamplingProgress,
    )

    if as_json:
        return JsonSamplingProgress(out=sys.stdout)
    if not logging.getLogger().isEnabledFor(logging.WARNING):
        return SamplingProgress()
    return LiveSamplingProgress() if sys.stderr.isatty() else JsonSamplingProgress()


def _select_tasks(
    filters: TaskFilters, only: str | None, storage: StorageSettings, *, uncertified: bool
) -> TaskFilters:
    """Return the resolved filters. A task that is named is selected whatever its status, so that it can be refused.

    Simulated tasks, which are never certified, are selected where the filters name them.
    """
    if only is not None:
        return resolve_filters(replace(filters, named=tuple(split_words(only))), storage)
    named = [word.lower() for words in (filters.environment, filters.kind) for word in list_words(words)]
    if uncertified or Kind.SIMULATED in named:
        return resolve_filters(filters, storage)
    return select_certified(filters, storage)


def list_words(words: tuple[str, ...] | str | None) -> tuple[str, ...]:
    """Return the words of a filter."""
    return (words,) if isinstance(words, str) else words or ()


def parse_attempts(word: str) -> int | None:
    """Return the number of attempts, None for staged sampling.

    Raises:
        UsageError: it is neither.
    """
    if word == STAGED:
        return None
    if not word.isdecimal() or not 1 <= int(word) <= MAX_ATTEMPTS:
        raise UsageError(f"--attempts {word} is neither a number from 1 to {MAX_ATTEMPTS} nor {STAGED}")
    return int(word)


def parse_sampling(words: list[str] | tuple[()]) -> dict[str, Any]:
    """Return sampling settings of NAME=VALUE words; values are JSON where they can be.

    Raises:
        UsageError: a word has no equals sign, or names the field that the agent sends.
    """
    options: dict[str, Any] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise UsageError(f"--sampling {word} is not NAME=VALUE")
        if name in RESERVED:
            raise UsageError(f"--sampling: {name} is the agent's", advice="such as temperature=0.7")
        try:
            options[name] = json.loads(value, parse_constant=_refuse_constant)
        except ValueError:
            options[name] = value
    return options


def read_system(path: Path) -> str:
    """Return the text of a file that is added to system prompts, without white space around it.

    Raises:
        InputError: the file cannot be read, is empty, or is longer than a program can be given as an argument.
    """
    text = read_text(path, f"--system: cannot read {path}", advice="name a file with a text").strip()
    if not text or len(text.encode()) > MAX_SYSTEM_BYTES or "\0" in text:
        raise InputError(f"--system: {path} is not a text of 1 to {MAX_SYSTEM_BYTES} bytes")
    return text


def _refuse_constant(name: str) -> None:
    """Refuse NaN and Infinity, which Python reads and JSON does not have."""
    raise ValueError(name)
