"""A test run as a model plays it: it reads tests and program and says how each test ends."""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field

from backends.git import GitError, Repository, touched
from backends.index import ScratchIndex
from backends.llm.base import ContextFullError, Message
from backends.llm.meter import Budget, BudgetSpentError, Meter
from backends.llm.prompts import Prompts
from backends.llm.structured import structured
from backends.services import Services
from backends.testing.outcomes import Outcome, Report, Status
from languages.paths import is_protected
from taskdb.answers import Answers

PROMPT = "play-1"
"""The version that is asked with."""
LONGEST = 120_000
"""Characters of tests and program together; more is not played."""
_ENDS = {
    "passed": Status.PASSED, "assertion": Status.FAILED, "error": Status.ERROR, "absent": None,
    "skipped": Status.SKIPPED,
}  # fmt: skip
_PROMPTS = Prompts(Path(__file__).parent / "prompts")


class UnplayableError(Exception):
    """A run was not played; the text says why."""


class End(BaseModel):
    """How one test ends."""

    test: str
    ends: Literal["passed", "assertion", "error", "absent", "skipped"]
    because: str


class Played(BaseModel):
    """How all tests end."""

    tests: list[End] = Field(min_length=1)


@dataclass(frozen=True, kw_only=True)
class Scene:
    """What a run is played on. `sources`: None for a file that is not there; `errors`: why a patch is not in them."""

    language: str
    tests: tuple[tuple[str, str], ...]
    sources: tuple[tuple[str, str | None], ...]
    errors: str = ""


def scene(
    tree: Repository, base: str, *, language: str, test_patch: bytes, test_files: Collection[str], patch: bytes,
    files: Sequence[str],
) -> Scene:  # fmt: skip
    """The tests with the test patch, and the program with a patch.

    Args:
        tree: the history that holds `base`.
        base: the commit that both patches are made for.
        language: of the change.
        test_patch: brings the tests.
        test_files: the files with tests.
        patch: gold patch, submission, or nothing; what it changes of the tests' side is left out, and where it does not
            apply the program is the base's.
        files: program files to be seen beside those that the patch touches.

    Raises:
        GitError: the test patch does not apply.
    """
    with ScratchIndex(tree, base) as index:
        index.apply(test_patch)
        tests = tuple((path, _text(index.read(path)) or "") for path in sorted(test_files))
    with ScratchIndex(tree, base) as index:
        errors = ""
        try:
            changed = touched(patch)
            index.apply(patch)
        except GitError as error:
            changed, errors = [], str(error)
        seen = sorted({*files, *(path for path in changed if not is_protected(path))})
        sources = tuple((path, _text(index.read(path))) for path in seen)
    return Scene(language=language, tests=tests, sources=sources, errors=errors)


def _text(content: bytes | None) -> str | None:
    return None if content is None else content.decode(errors="replace")


def play(setting: Scene, services: Services, *, sample: int = 1) -> Report:
    """One run as the model plays it.

    Args:
        setting: what it is played on.
        services: model and settings; answers are kept in the store.
        sample: which of several runs of the same.

    Raises:
        UnplayableError: there is no model, the files are too long, or no answer could be used.
        Transient: the endpoint failed.
    """
    if services.model is None:
        raise UnplayableError("no model takes part")
    length = sum(len(text or "") for _, text in (*setting.tests, *setting.sources))
    if length > LONGEST:
        raise UnplayableError(f"{length} characters of tests and program, {LONGEST} are played at most")
    settings = services.settings
    try:
        answered = structured(
            services.model, _question(setting), Played, meter=Meter(Budget.of(settings)), sample=sample,
            check=lambda played: _wrong(played, setting), answers=Answers(settings.store_dir / "answers"),
            deadline=time.monotonic() + settings.budget_seconds,
        )  # fmt: skip
    except (BudgetSpentError, ContextFullError) as error:
        raise UnplayableError(str(error)) from error
    if answered.value is None:
        raise UnplayableError(answered.problem)
    return _report(answered.value)


def _question(setting: Scene) -> tuple[Message, ...]:
    return _PROMPTS.question(
        PROMPT, language=setting.language, tests=setting.tests, sources=setting.sources, errors=setting.errors,
        schema=Played.model_json_schema(),
    )  # fmt: skip


def _wrong(played: Played, setting: Scene) -> str:
    """A test that stands nowhere, or one that ends twice."""
    texts = dict(setting.tests)
    seen: set[str] = set()
    for end in played.tests:
        path, _, name = end.test.partition("::")
        words = re.findall(r"\w+", name.partition("[")[0])
        if path not in texts:
            return f"{end.test}: there is no such test file"
        if not words or not all(word in texts[path] for word in words):
            return f"{end.test}: there is no such test in {path}"
        if end.test in seen:
            return f"{end.test} is told twice"
        seen.add(end.test)
    return ""


def _report(played: Played) -> Report:
    outcomes = {}
    for end in played.tests:
        status = _ENDS[end.ends]
        if status is not None:
            message = f"AssertionError: {end.because}" if status is Status.FAILED else end.because
            outcomes[end.test] = Outcome(status=status, message="" if status is Status.PASSED else message)
    return Report(outcomes=outcomes, uncollected={})
