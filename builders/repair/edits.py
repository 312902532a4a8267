"""Edits of a draft: everything that skills and models can change, as data.

`builders.repair.edit_application` applies them. Images are rendered from the edited draft.
"""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from languages.draft import PlanDraft, Role
from languages.registry import get_language

AGENT_ORIGIN = "(agent)"
"""Origin of a model's edits in the evidence."""


def format_skill_origin(name: str) -> str:
    """Return the origin of a skill's edits in the evidence."""
    return f"(skill {name})"


class DraftEditModel(BaseModel):
    """Base of all edits: immutable, without unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class AddDependency(DraftEditModel):
    """Install one more package of the language's registry."""

    edit: Literal["add-dependency"] = "add-dependency"
    requirement: str = Field(min_length=1)
    """In the language's notation, with a version where needed: `attrs>=20` in Python, `chalk@4` in JavaScript."""
    role: Role = Role.TEST
    """`build` is installed before the project, `optional` is left out where it cannot be installed."""


class RemoveDependency(DraftEditModel):
    """Do not install a package."""

    edit: Literal["remove-dependency"] = "remove-dependency"
    name: str = Field(min_length=1)


class PinDependency(DraftEditModel):
    """Restrict a package to certain versions, overriding the project's files; adds it when it is missing."""

    edit: Literal["pin-dependency"] = "pin-dependency"
    requirement: str = Field(min_length=1)
    """Such as `werkzeug<3`."""
    role: Role = Role.TEST
    """Role of a package that is added."""


class RelaxDependency(DraftEditModel):
    """Give up the version of one requirement; the requirement itself where another one names the package, too."""

    edit: Literal["relax-dependency"] = "relax-dependency"
    requirement: str = Field(min_length=1)
    """As it stands in the draft."""


class AddSystemPackage(DraftEditModel):
    """Install a Debian package."""

    edit: Literal["add-system-package"] = "add-system-package"
    name: str = Field(pattern=r"^[a-z0-9][a-z0-9.+-]+$")


class RemoveSystemPackage(DraftEditModel):
    """Do not install a Debian package."""

    edit: Literal["remove-system-package"] = "remove-system-package"
    name: str = Field(min_length=1)


class SetLanguageVersion(DraftEditModel):
    """Build on another version of the language."""

    edit: Literal["set-language-version"] = "set-language-version"
    version: str = Field(min_length=1)


class SetExcludeNewer(DraftEditModel):
    """Ignore packages uploaded on or after this day."""

    edit: Literal["set-exclude-newer"] = "set-exclude-newer"
    day: date


class SetEnv(DraftEditModel):
    """Set a variable for build and tests."""

    edit: Literal["set-env"] = "set-env"
    name: str = Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    value: str


class UnsetEnv(DraftEditModel):
    """Do not set a variable."""

    edit: Literal["unset-env"] = "unset-env"
    name: str


class SetSwitch(DraftEditModel):
    """Turn on one of the language's named switches."""

    edit: Literal["set-switch"] = "set-switch"
    name: str


class ClearSwitch(DraftEditModel):
    """Turn a switch off."""

    edit: Literal["clear-switch"] = "clear-switch"
    name: str


class AddDependencyStep(DraftEditModel):
    """Add a shell command to the install of dependencies: as root, with network, without the project's tree."""

    edit: Literal["add-dependency-step"] = "add-dependency-step"
    command: str = Field(min_length=1, max_length=2000)


class AddSourceStep(DraftEditModel):
    """Add a shell command in the project's tree, before the project is installed or built."""

    edit: Literal["add-source-step"] = "add-source-step"
    command: str = Field(min_length=1, max_length=2000)


class RemoveStep(DraftEditModel):
    """Remove a step that an edit added."""

    edit: Literal["remove-step"] = "remove-step"
    command: str = Field(min_length=1)


class SetTestPaths(DraftEditModel):
    """Set the files or folders, relative to the tree's root, of a full test run; empty: the project's default."""

    edit: Literal["set-test-paths"] = "set-test-paths"
    paths: tuple[str, ...]


class SetTestOptions(DraftEditModel):
    """Add and remove options of the test runner; the program stays."""

    edit: Literal["set-test-options"] = "set-test-options"
    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()


class SetTestFolder(DraftEditModel):
    """Set the folder of the tree in which the test command runs; empty for its root."""

    edit: Literal["set-test-folder"] = "set-test-folder"
    folder: str


class AddService(DraftEditModel):
    """Start a server beside the tests."""

    edit: Literal["add-service"] = "add-service"
    name: str


class UseFallback(DraftEditModel):
    """Give up a choice, with one of the language's fallbacks."""

    edit: Literal["fallback"] = "fallback"
    name: str


DraftEdit = Annotated[
    AddDependency
    | RemoveDependency
    | RelaxDependency
    | PinDependency
    | AddSystemPackage
    | RemoveSystemPackage
    | SetLanguageVersion
    | SetExcludeNewer
    | SetEnv
    | UnsetEnv
    | SetSwitch
    | ClearSwitch
    | AddDependencyStep
    | AddSourceStep
    | RemoveStep
    | SetTestPaths
    | SetTestOptions
    | SetTestFolder
    | AddService
    | UseFallback,
    Field(discriminator="edit"),
]
_EDIT_ADAPTER: TypeAdapter[DraftEdit] = TypeAdapter(DraftEdit)
_EDITS_ADAPTER: TypeAdapter[tuple[DraftEdit, ...]] = TypeAdapter(tuple[DraftEdit, ...])


def parse_edit(data: Any) -> DraftEdit:
    """Return the edit of plain data such as `{"edit": "add-system-package", "name": "libffi-dev"}`.

    Raises:
        pydantic.ValidationError: the data are not an edit.
    """
    return _EDIT_ADAPTER.validate_python(data)


def parse_edits(data: Any) -> tuple[DraftEdit, ...]:
    """Return the edits of a list of plain data; raises as `parse_edit`."""
    return _EDITS_ADAPTER.validate_python(data)


def build_edit_schema() -> dict[str, Any]:
    """Return the JSON schema of an edit, for tools."""
    return _EDIT_ADAPTER.json_schema()


def dump_edit(edit: DraftEdit) -> dict[str, Any]:
    """Return the plain data of an edit; the inverse of `parse_edit`."""
    return edit.model_dump(mode="json")


def format_edit(edit: DraftEdit) -> str:
    """Return an edit in one line, such as `add-system-package libffi-dev`."""
    values = [value for name, value in dump_edit(edit).items() if name not in ("edit", "role")]
    if isinstance(edit, SetEnv):
        return f"{edit.edit} {edit.name}={edit.value}"
    if isinstance(edit, SetTestOptions):
        return " ".join([edit.edit, *(f"+{word}" for word in edit.add), *(f"without {word}" for word in edit.remove)])
    return " ".join([edit.edit, *(" ".join(v) if isinstance(v, list) else str(v) for v in values)])


def describe_switches(draft: PlanDraft) -> dict[str, str]:
    """Return the description of each switch of the draft's language, by name."""
    return dict(get_language(draft.language).switches)
