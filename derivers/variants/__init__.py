"""Statement variants: the bug fix or feature of a change with another problem statement, and everything else the same.

Tests, image, script and gold patch are those of the original, so its runs certify the variants, too. A variant is
written by rules, or by a model where `--variants model` requests it. `mergemill.pipeline.variants` applies the rules of
the judge to each: a statement that lacks the facts that the tests need and the original contains is rejected.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from backends.services import Services
from derivers.base import KindRejection
from derivers.variants.failure_output import collect_outputs, is_truncated, render_outputs
from derivers.variants.original import derive_original
from derivers.variants.rewriting import shorten_statement, split_sentences, write_user_story
from derivers.variants.variant_writer import VariantWriter
from taskdb.records import Kind, Task
from taskdb.records.lineage import Lineage

MAX_TERSE_SHARE = 0.7
"""Share of the original's words that a terse statement may have."""


class Reason(StrEnum):
    """Why a change gives no variant. Where the judge's rules reject its statement, the reason is the name of a rule."""

    NO_MODEL = "no-model"
    NO_ANSWER = "no-answer"
    """The model's statement is unusable."""
    NOT_SHORTER = "not-shorter"
    """The original is about as short as a terse statement."""
    NO_OUTPUT = "no-output"
    """A FAIL_TO_PASS test left no message, or only that it is absent or cannot be collected."""
    TRUNCATED_OUTPUT = "truncated-output"
    """The test runner has shortened an output, so the output that a test expects is not known from it."""
    TOO_SHORT = "too-short"
    """The original is a single sentence, which a user story would only repeat."""
    TOO_MUCH_OUTPUT = "too-much-output"
    LOSES_DETAIL = "loses-detail"
    """The tests use something that the original contains and the variant does not."""


def derive_terse(lineage: Lineage, services: Services) -> list[Task] | KindRejection:
    """Return the task with a statement of a few sentences. Nothing is executed.

    Raises:
        Transient: the model cannot be reached.
    """
    return _derive_variant(lineage, services, Kind.TERSE, shorten_statement)


def derive_user_story(lineage: Lineage, services: Services) -> list[Task] | KindRejection:
    """Return the task whose statement is a user story with acceptance criteria. Nothing is executed.

    Raises:
        Transient: the model cannot be reached.
    """
    return _derive_variant(
        lineage,
        services,
        Kind.USER_STORY,
        lambda statement: write_user_story(statement, lineage.candidate.repo.rpartition("/")[2]),
    )


def derive_traceback(lineage: Lineage, services: Services) -> list[Task] | KindRejection:
    """Return the task whose statement is the output of the failing tests, without their names and source text.

    The output is that of the first test-only run of the verification; nothing is executed.
    """
    original = derive_original(lineage, services)
    if isinstance(original, KindRejection):
        return original
    outputs, silent = collect_outputs(lineage.require_verification(), services.artifacts)
    if silent:
        return KindRejection(Reason.NO_OUTPUT, f"{len(silent)} failing tests say nothing, such as {silent[0]}")
    if any(is_truncated(output) for output in outputs):
        return KindRejection(Reason.TRUNCATED_OUTPUT, "the test runner has shortened what a failing test reports")
    text = render_outputs(outputs, lineage.candidate.repo.rpartition("/")[2])
    if text is None:
        return KindRejection(Reason.TOO_MUCH_OUTPUT, f"{len(outputs)} different failures")
    return [_build_variant(original, Kind.TRACEBACK, text)]


def _derive_variant(
    lineage: Lineage, services: Services, kind: Kind, rewrite: Callable[[str], str]
) -> list[Task] | KindRejection:
    """Return the task with the statement rewritten by rules or by the model."""
    original = derive_original(lineage, services)
    if isinstance(original, KindRejection):
        return original
    statement = lineage.candidate.problem_statement
    if kind is Kind.USER_STORY and len(split_sentences(statement)) < 2 and "```" not in statement:
        return KindRejection(Reason.TOO_SHORT, "the statement is one sentence")
    by_model = services.settings.derive.variants == "model"
    if by_model and services.model is None:
        return KindRejection(Reason.NO_MODEL, "--variants model needs --llm and --model")
    text: str | None = (
        VariantWriter(services).write(kind, lineage.candidate.repo, statement) if by_model else rewrite(statement)
    )
    if text is None:
        return KindRejection(Reason.NO_ANSWER, "the model gave no usable statement")
    n_words, n_original = len(text.split()), len(statement.split())
    if kind is Kind.TERSE and n_words > MAX_TERSE_SHARE * n_original:
        return KindRejection(Reason.NOT_SHORTER, f"{n_words} of {n_original} words remain")
    return [_build_variant(original, kind, text + _get_interface_section(original, statement))]


def _get_interface_section(original: Task, statement: str) -> str:
    """Return the content that the original's statement has in addition to the change's.

    A completion, and names of an interface.
    """
    return "\n\n" + extra + "\n" if (extra := original.problem_statement.removeprefix(statement).strip()) else "\n"


def _build_variant(original: Task, kind: Kind, statement: str) -> Task:
    """Return the original with another statement; hints could restore the facts that the variant leaves out."""
    fields = {
        "kind": kind,
        "name": f"{original.name}.{kind}",
        "problem_statement": statement.strip() + "\n",
        "hints": "",
        "variant_of": original.name,
        "published": None,
    }
    return original.model_copy(update=fields)
