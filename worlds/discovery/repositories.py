"""Seed tasks from repositories.

A model infers the purpose that their software is for, and the tasks that people of that domain want done.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from pydantic import BaseModel

from backends.llm.meter import UsageMeter
from backends.llm.structured import build_response_schema
from core.settings.worlds import WorldsSettings
from worlds.discovery.rules import find_broken_rule
from worlds.discovery.seed_tasks import SeedTask
from worlds.model_requests import PROMPTS, ModelQuestion, ModelRole, RoleModels, StepFailedError, make_reader
from worlds.reasons import Reason

PROMPT = "repository-task-1"
MAX_CHARS = 6000
"""Characters of a repository's texts that the model reads."""
_NOISE = re.compile(r"```.*?```|<!--.*?-->|<[^>\n]{1,300}>|!\[[^\]]*\]\([^)]*\)|https?://\S+", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class RepositoryText:
    """Facts that are known about a repository: its README, or issue texts of its changes.

    `license`: SPDX expression.
    """

    repo: str
    text: str
    license: str

    @property
    def excerpt(self) -> str:
        """The beginning of the text without code, markup, images and addresses."""
        bare = _NOISE.sub(" ", self.text)
        lines = [" ".join(line.split()) for line in bare.splitlines()]
        return "\n".join(line for line in lines if line)[:MAX_CHARS]


class RepositoryTask(BaseModel):
    """A request of somebody in the domain that a repository's software is for."""

    analysis: str
    has_domain: bool
    task: str


def infer_seed_task(about: RepositoryText, models: RoleModels, options: WorldsSettings, meter: UsageMeter) -> SeedTask:
    """Return a seed task in the domain of a repository's software, under the repository's licence.

    Raises:
        StepFailedError: there is no such domain, or the model gave no usable answer.
        Transient, InputError, CancelledRunError: as `LanguageModel.complete`.
    """
    if not about.excerpt:
        raise StepFailedError(Reason.NO_DOMAIN, "neither its README nor its issues have a text")
    schema = json.dumps(build_response_schema(RepositoryTask).schema)
    answer = models.require(
        ModelQuestion(
            role=ModelRole.WRITER,
            purpose="repository-task",
            version=PROMPT,
            subject=about.repo,
            messages=PROMPTS.render_conversation(PROMPT, repo=about.repo, about=about.excerpt, schema=schema),
            read=make_reader(RepositoryTask, _check_task),
            attempts=options.attempts,
            temperature=options.temperature,
            answer_type=RepositoryTask,
        ),
        meter,
    )
    if not answer.has_domain:
        raise StepFailedError(Reason.NO_DOMAIN, answer.analysis[:500])
    return SeedTask(text=" ".join(answer.task.split()), source=about.repo, license=about.license)


def _check_task(answer: RepositoryTask) -> str:
    """Return the problem with the task: it must keep the rules of seed tasks."""
    if not answer.has_domain:
        return ""
    if not answer.task.strip():
        return "the task is empty"
    broken = find_broken_rule(answer.task)
    return f"the task breaks the rule {broken[0].value}: {broken[1]}" if broken else ""
