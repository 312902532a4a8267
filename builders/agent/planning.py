"""`edit_plan`, `test` and `give_up`: the tools that change a draft, and end a turn.

Edits are those of `builders.repair.edits`. They are gathered until the model asks for a test; each is applied to the
draft at once, so a refusal is told at once.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, Field, ValidationError

from builders.agent.conversation import GIVE_UP, TEST
from builders.agent.tools import Arguments, Entry, TurnOver, wrong
from builders.repair import edits as known_edits
from builders.repair.edits import AGENT, Edit, apply, edit_of, in_words, switches_of
from builders.repair.refusals import RefusedEditError
from languages.draft import Draft
from languages.registry import language
from taskdb.records import BuildPlan

EVIDENCE = 40
"""Lines of evidence that a model is shown."""
EDIT_PLAN = "edit_plan"


def _listed(value: object) -> object:
    """Some models give one edit where a list is asked for, or write the list as text."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return value
    return [value] if isinstance(value, dict) else value


class EditPlan(Arguments):
    """Arguments of `edit_plan`."""

    edits: Annotated[list[dict[str, Any]], BeforeValidator(_listed), Field(min_length=1)]
    """Each an object with `edit` and what that one needs."""


class Test(Arguments):
    """Arguments of `test`."""

    __test__ = False
    why: str = ""
    """What you found and why this will help, in a sentence."""


class GiveUp(Arguments):
    """Arguments of `give_up`."""

    why: str = Field(min_length=1)
    """What stands in the way, in a sentence."""


class Desk:
    """The draft as the model edits it.

    Args:
        draft: to begin with.
        objection: why a draft's tests are not the project's any more, or nothing.
        progressed: called after each edit that changed something.
    """

    def __init__(self, draft: Draft, objection: Callable[[Draft], str], progressed: Callable[[], None]) -> None:
        self._objection = objection
        self._progressed = progressed
        self.begin(draft)

    def begin(self, draft: Draft) -> None:
        """Start anew from a draft."""
        self.draft = draft
        self.pending: list[Edit] = []

    def entries(self) -> tuple[Entry, ...]:
        """The tools."""
        return (
            Entry(name=EDIT_PLAN, description=described(), arguments=EditPlan, does=self.edit),
            Entry(name=TEST, description="Make the image from the plan and run the tests; ends your turn.",
                  arguments=Test, does=self.test),
            Entry(name=GIVE_UP, description="End: the build cannot be mended.", arguments=GiveUp, does=self.give_up),
        )  # fmt: skip

    def edit(self, asked: EditPlan) -> str:
        """Apply edits one after the other; what came of each."""
        return "\n".join(self._apply(data) for data in asked.edits)

    def test(self, asked: Test) -> str:
        """End the turn, when there is something new to test."""
        if not self.pending:
            return "Not done: the plan is as it was when it failed. Change it with edit_plan first."
        raise TurnOver(TEST, asked.why)

    def give_up(self, asked: GiveUp) -> str:
        """End it all."""
        raise TurnOver(GIVE_UP, asked.why)

    def _apply(self, data: dict[str, Any]) -> str:
        try:
            edit = edit_of(data)
            changed = apply(self.draft, edit, AGENT)
        except ValidationError as error:
            return f"Not done: {json.dumps(data)}: {wrong(error)}"
        except RefusedEditError as error:
            return f"Refused: {json.dumps(data)}: {error}"
        if why := self._objection(changed):
            return f"Refused: {json.dumps(data)}: {why}"
        if changed == self.draft:
            return f"Nothing changed: {in_words(edit)} is so already"
        self.draft = changed
        self.pending.append(edit)
        self._progressed()
        return f"Done: {in_words(edit)}"


def described() -> str:
    """All edits, one a line, for the model: name, values, what it does."""
    lines = [f"- {_name(kind)} {{{', '.join(_values(kind))}}}: {_first_line(kind)}" for kind in _kinds()]
    return "Change the plan, in one or more of these ways:\n" + "\n".join(lines)


def shown(draft: Draft, plan: BuildPlan) -> str:
    """A draft as a model sees it: JSON of its choices, one a line, and the lines that are run for them."""
    evidence = [f"{one.choice}={one.value} ({one.path}:{one.line})" for one in (*draft.versions, *draft.evidence)]
    said = {
        "language": draft.language,
        "version": draft.versions[0].value,
        "other_versions": [release.version for release in language(draft.language).RELEASES],
        "exclude_newer": draft.exclude_newer.isoformat(),
        "system_packages": [wanted.text for wanted in draft.system_packages],
        "dependencies": [f"{one.wanted.text} ({one.role})" for one in draft.dependencies],
        "services": [wanted.text for wanted in draft.services],
        "env": dict(draft.env),
        "switches_on": sorted(draft.switches),
        "switches": switches_of(draft),
        "test": draft.test.model_dump(mode="json"),
        "dependency_steps": plan.dependency_steps,
        "source_steps": plan.source_steps,
        "evidence": evidence[:EVIDENCE],
    }
    lines = [f" {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in said.items() if value]
    return "{\n" + ",\n".join(lines) + "\n}"


def _kinds() -> tuple[type[BaseModel], ...]:
    union = get_args(known_edits.Edit)[0]
    return tuple(get_args(union))


def _name(kind: type[BaseModel]) -> str:
    return str(kind.model_fields["edit"].default)


def _values(kind: type[BaseModel]) -> list[str]:
    fields = [(name, field) for name, field in kind.model_fields.items() if name != "edit"]
    return [
        f"{name}{'' if field.is_required() else '?'}{'[]' if get_origin(field.annotation) is tuple else ''}"
        for name, field in fields
    ]


def _first_line(kind: type[BaseModel]) -> str:
    doc = (kind.__doc__ or "").strip().splitlines()[0]
    notes = [f"{name}: {field.description}" for name, field in kind.model_fields.items() if field.description]
    return " ".join([doc, *notes])
