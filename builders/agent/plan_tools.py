"""Tools `edit_plan`, `test` and `give_up`, which change a draft and end a turn.

Edits are those of `builders.repair.edits`. They are collected until the model calls `test`; each is applied to the
draft at once, so that a rejection is returned at once.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, Field, ValidationError

from builders.agent.conversation import GIVE_UP_TOOL, TEST_TOOL
from builders.agent.tools import AgentTool, EndTurn, ToolArguments, format_validation_error
from builders.repair.edit_application import apply_edit
from builders.repair.edit_checks import RejectedEditError
from builders.repair.edits import AGENT_ORIGIN, DraftEdit, describe_switches, format_edit, parse_edit
from languages.draft import PlanDraft
from languages.registry import get_language
from taskdb.records import BuildPlan

MAX_EVIDENCE = 40
"""Limit of evidence lines in a prompt."""
EDIT_PLAN_TOOL = "edit_plan"


def _wrap_in_list(value: object) -> object:
    """Return a list also for a single edit or for JSON text, which some models produce."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return value
    return [value] if isinstance(value, dict) else value


class EditPlanArguments(ToolArguments):
    """Arguments of `edit_plan`."""

    edits: Annotated[list[dict[str, Any]], BeforeValidator(_wrap_in_list), Field(min_length=1)]
    """Each an object with `edit` and the fields of that edit."""


class TestArguments(ToolArguments):
    """Arguments of `test`."""

    __test__ = False
    why: str = ""
    """The cause and why this change repairs it, in one sentence."""


class GiveUpArguments(ToolArguments):
    """Arguments of `give_up`."""

    why: str = Field(min_length=1)
    """The obstacle, in one sentence."""


class PlanEditor:
    """Draft that the model edits.

    Args:
        draft: the first draft.
        check_draft: function that returns why a draft must not be built, or an empty string.
        on_progress: function that is called after each edit that changed the draft.
    """

    def __init__(
        self, draft: PlanDraft, check_draft: Callable[[PlanDraft], str], on_progress: Callable[[], None]
    ) -> None:
        self._check_draft = check_draft
        self._on_progress = on_progress
        self.reset(draft)

    def reset(self, draft: PlanDraft) -> None:
        """Replace the draft and discard pending edits."""
        self.draft = draft
        self.pending: list[DraftEdit] = []

    def create_tools(self) -> tuple[AgentTool, ...]:
        """Return the tools."""
        return (
            AgentTool(
                name=EDIT_PLAN_TOOL, description=describe_edits(), arguments=EditPlanArguments, function=self.edit
            ),
            AgentTool(
                name=TEST_TOOL,
                description="Build the image from the plan and run the tests; ends your turn.",
                arguments=TestArguments,
                function=self.test,
            ),
            AgentTool(
                name=GIVE_UP_TOOL,
                description="End the conversation: the build cannot be repaired.",
                arguments=GiveUpArguments,
                function=self.give_up,
            ),
        )

    def edit(self, arguments: EditPlanArguments) -> str:
        """Apply edits one after the other; return a line for each."""
        return "\n".join(self._apply_edit(data) for data in arguments.edits)

    def test(self, arguments: TestArguments) -> str:
        """End the turn if the plan has pending edits, else return an error."""
        if not self.pending:
            return "Not done: the plan has not changed since it failed. Change it with edit_plan first."
        raise EndTurn(TEST_TOOL, arguments.why)

    def give_up(self, arguments: GiveUpArguments) -> str:
        """End the conversation."""
        raise EndTurn(GIVE_UP_TOOL, arguments.why)

    def _apply_edit(self, data: dict[str, Any]) -> str:
        try:
            edit = parse_edit(data)
            changed = apply_edit(self.draft, edit, AGENT_ORIGIN)
        except ValidationError as error:
            return f"Not done: {json.dumps(data)}: {format_validation_error(error)}"
        except RejectedEditError as error:
            return f"Rejected: {json.dumps(data)}: {error}"
        if reason := self._check_draft(changed):
            return f"Rejected: {json.dumps(data)}: {reason}"
        if changed == self.draft:
            return f"Nothing changed: {format_edit(edit)} is in the plan already"
        self.draft = changed
        self.pending.append(edit)
        self._on_progress()
        return f"Done: {format_edit(edit)}"


def describe_edits() -> str:
    """Return all edits for the model, one per line: name, fields, description."""
    lines = [
        f"- {_get_edit_name(model)} {{{', '.join(_list_fields(model))}}}: {_describe_edit(model)}"
        for model in _list_edit_types()
    ]
    return "Change the plan with one or more of these edits:\n" + "\n".join(lines)


def format_draft(draft: PlanDraft, plan: BuildPlan) -> str:
    """Return a draft for a prompt: JSON of its choices, one per line, with the steps rendered from them."""
    evidence = [f"{item.choice}={item.value} ({item.path}:{item.line})" for item in (*draft.versions, *draft.evidence)]
    data = {
        "language": draft.language,
        "version": draft.versions[0].value,
        "other_versions": [release.version for release in get_language(draft.language).releases],
        "exclude_newer": draft.exclude_newer.isoformat(),
        "system_packages": [package.text for package in draft.system_packages],
        "dependencies": [f"{dependency.source.text} ({dependency.role})" for dependency in draft.dependencies],
        "services": [service.text for service in draft.services],
        "env": dict(draft.env),
        "switches_on": sorted(draft.switches),
        "switches": describe_switches(draft),
        "test": draft.test.model_dump(mode="json"),
        "dependency_steps": plan.dependency_steps,
        "source_steps": plan.source_steps,
        "evidence": evidence[:MAX_EVIDENCE],
    }
    lines = [f" {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in data.items() if value]
    return "{\n" + ",\n".join(lines) + "\n}"


def _list_edit_types() -> tuple[type[BaseModel], ...]:
    union = get_args(DraftEdit)[0]
    return tuple(get_args(union))


def _get_edit_name(kind: type[BaseModel]) -> str:
    return str(kind.model_fields["edit"].default)


def _list_fields(kind: type[BaseModel]) -> list[str]:
    fields = [(name, field) for name, field in kind.model_fields.items() if name != "edit"]
    return [
        f"{name}{'' if field.is_required() else '?'}{'[]' if get_origin(field.annotation) is tuple else ''}"
        for name, field in fields
    ]


def _describe_edit(kind: type[BaseModel]) -> str:
    doc = (kind.__doc__ or "").strip().splitlines()[0]
    notes = [f"{name}: {field.description}" for name, field in kind.model_fields.items() if field.description]
    return " ".join([doc, *notes])
