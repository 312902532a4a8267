"""Facts that a model states about a seed task: whether it lives in an environment, and in which."""

from __future__ import annotations

import json

from pydantic import BaseModel, Field

from backends.llm.meter import UsageMeter
from backends.llm.structured import build_response_schema
from core.settings.worlds import WorldsSettings
from worlds.discovery.seed_tasks import SeedTask
from worlds.discovery.themes import ThemeDraft
from worlds.model_requests import PROMPTS, ModelQuestion, ModelRole, RoleModels, StepFailedError, make_reader
from worlds.reasons import Reason

FILTER_PROMPT = "seed-filter-1"
THEME_PROMPT = "theme-1"
MAX_LABEL_WORDS = 8


class FilterOpinion(BaseModel):
    """Whether a task lives in a persistent environment of one domain; the analysis comes first."""

    analysis: str = Field(min_length=1)
    answer: bool


class InferredTheme(BaseModel):
    """The environment that a task lives in."""

    analysis: str = Field(min_length=1)
    label: str = Field(min_length=2, max_length=80)
    description: str = Field(min_length=20, max_length=2000)
    usefulness: int = Field(ge=1, le=10)
    modelability: int = Field(ge=1, le=10)


def infer_theme(task: SeedTask, models: RoleModels, options: WorldsSettings, meter: UsageMeter) -> ThemeDraft:
    """Return the environment that a task lives in.

    Raises:
        StepFailedError: it lives in none, or the model gave no usable answer.
        Transient, InputError, CancelledRunError: as `LanguageModel.complete`.
    """
    schema = json.dumps(build_response_schema(FilterOpinion).schema)
    opinion = models.require(
        ModelQuestion(
            role=ModelRole.WRITER,
            purpose="seed-filter",
            version=FILTER_PROMPT,
            subject=task.id,
            messages=PROMPTS.render_conversation(FILTER_PROMPT, task=task.text, schema=schema),
            read=make_reader(FilterOpinion),
            attempts=options.attempts,
            temperature=options.temperature,
            answer_type=FilterOpinion,
        ),
        meter,
    )
    if not opinion.answer:
        raise StepFailedError(Reason.NO_ENVIRONMENT, opinion.analysis[:500])
    schema = json.dumps(build_response_schema(InferredTheme).schema)
    inferred = models.require(
        ModelQuestion(
            role=ModelRole.WRITER,
            purpose="theme",
            version=THEME_PROMPT,
            subject=task.id,
            messages=PROMPTS.render_conversation(THEME_PROMPT, task=task.text, schema=schema),
            read=make_reader(InferredTheme, lambda answer: _check_theme(answer, task)),
            attempts=options.attempts,
            temperature=options.temperature,
            answer_type=InferredTheme,
        ),
        meter,
    )
    return ThemeDraft(
        label=" ".join(inferred.label.split()),
        description=" ".join(inferred.description.split()),
        usefulness=inferred.usefulness,
        modelability=inferred.modelability,
        seed=task,
    )


def _check_theme(theme: InferredTheme, task: SeedTask) -> str:
    """Return the problem with a theme: a label that is a sentence, or a description that repeats the task."""
    if len(theme.label.split()) > MAX_LABEL_WORDS:
        return f"the label has more than {MAX_LABEL_WORDS} words"
    if task.text.lower() in theme.description.lower():
        return "the description repeats the task, and is to stand without it"
    return ""
