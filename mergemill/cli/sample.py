"""`mergemill sample`: agents on tasks."""

from __future__ import annotations

import json
import logging
import sys
from dataclasses import replace
from typing import Annotated, Any

import typer

from core.config import Settings
from core.errors import UsageError
from mergemill.cli.options import (
    GRADING_SETTINGS,
    SIMULATOR_SETTINGS,
    UPSTREAM_SETTINGS,
    JsonOption,
    resolve_filters,
    select_certified,
    split_words,
    with_filters,
    with_settings,
)
from taskdb.records import Kind
from taskdb.selection import TaskFilters

SAMPLE_SETTINGS = (
    *GRADING_SETTINGS,
    *UPSTREAM_SETTINGS,
    *SIMULATOR_SETTINGS,
    "model",
    "workers",
    "rollout_seconds",
    "rollout_turns",
    "rollout_requests",
    "rollout_tokens",
    "rollout_cost",
    "rollout_retries",
)

STAGED = "staged"
"""Value of --attempts."""
MAX_ATTEMPTS = 10_000
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
    credit: Annotated[
        str | None,
        typer.Option(
            "--credit",
            metavar="MODULE:FUNCTION",
            help="Divide the reward of a rollout among its trajectories by this function.",
        ),
    ] = None,
    uncertified: Annotated[
        bool, typer.Option("--uncertified", help="Sample tasks that are not certified, too.")
    ] = False,
    as_json: JsonOption = False,
    filters: TaskFilters,
    settings: Settings,
) -> None:
    """Run agents on tasks and store each rollout with its reward.

    Example: mergemill sample --scaffold react --model M --upstream http://localhost:8000/v1 --attempts 4
    """
    from mergemill.sampling.progress import (  # noqa: PLC0415 - a wrong option needs no samplers
        JsonSamplingProgress,
        LiveSamplingProgress,
        SamplingProgress,
    )
    from mergemill.sampling.request import SampleRequest  # noqa: PLC0415
    from mergemill.sampling.run import run_sampling  # noqa: PLC0415
    from samplers.scaffolds.registry import load_scaffold  # noqa: PLC0415
    from samplers.trajectories.credit import load_credit, share_reward  # noqa: PLC0415

    scaffolds = tuple(load_scaffold(word) for word in dict.fromkeys(split_words(scaffold)))
    if not scaffolds:
        raise UsageError("--scaffold names none", advice="such as --scaffold react,codex")
    if not settings.model and any(one.uses_model for one in scaffolds):
        raise UsageError("--model is missing", advice="name the model as the server at --upstream does")
    request = SampleRequest(
        filters=_select_tasks(filters, only, settings, uncertified=uncertified),
        scaffolds=scaffolds,
        model=settings.model or "",
        attempts=parse_attempts(attempts),
        checkpoint=checkpoint,
        sampling=parse_sampling(sampling or ()),
        uncertified=uncertified,
        credit=load_credit(credit) if credit else share_reward,
    )
    progress: SamplingProgress
    if as_json:
        progress = JsonSamplingProgress(out=sys.stdout)
    elif not logging.getLogger().isEnabledFor(logging.WARNING):
        progress = SamplingProgress()
    else:
        progress = LiveSamplingProgress() if sys.stderr.isatty() else JsonSamplingProgress()
    raise typer.Exit(run_sampling(request, settings, progress))


def _select_tasks(filters: TaskFilters, only: str | None, settings: Settings, *, uncertified: bool) -> TaskFilters:
    """Return the resolved filters. A task that is named is selected whatever its status, so that it can be refused.

    Simulated tasks, which are never certified, are selected where the filters name them.
    """
    if only is not None:
        return resolve_filters(replace(filters, named=tuple(split_words(only))), settings)
    named = [word.lower() for words in (filters.environment, filters.kind) for word in list_words(words)]
    if uncertified or Kind.SIMULATED in named:
        return resolve_filters(filters, settings)
    return select_certified(filters, settings)


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
        UsageError: a word has no equals sign, or names what the agent sends.
    """
    found: dict[str, Any] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise UsageError(f"--sampling {word} is not NAME=VALUE")
        if name in RESERVED:
            raise UsageError(f"--sampling: {name} is the agent's", advice="such as temperature=0.7")
        try:
            found[name] = json.loads(value, parse_constant=_refuse_constant)
        except ValueError:
            found[name] = value
    return found


def _refuse_constant(name: str) -> None:
    """Refuse NaN and Infinity, which Python reads and JSON does not have."""
    raise ValueError(name)
