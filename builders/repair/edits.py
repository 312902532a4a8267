"""The edits of a draft: all that skills and models can change. Each is data, and applying one is pure.

What is rendered from a draft is the image; nobody writes a Dockerfile, a report or a verdict.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import date
from typing import Annotated, Any, Literal

from packaging.utils import canonicalize_name
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from builders.repair import refusals
from builders.repair.refusals import RefusedEditError
from languages.draft import Dependency, Draft, Role
from languages.facts import Wanted, distribution
from languages.registry import language
from languages.services import with_service
from taskdb.records import Evidence

AGENT = "(agent)"
"""The place of what a model edited."""


def skill_place(name: str) -> str:
    """The place of what a skill edited: a path of evidence."""
    return f"(skill {name})"


class _Edit(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class AddDependency(_Edit):
    """Install one more package of the language's registry."""

    edit: Literal["add-dependency"] = "add-dependency"
    requirement: str = Field(min_length=1)
    """As the language writes it, with a version where needed: `attrs>=20` in Python, `chalk@4` in JavaScript."""
    role: Role = Role.TEST
    """`build` is there before the project is installed, `optional` is left out where it cannot be had."""


class RemoveDependency(_Edit):
    """Do not install a package."""

    edit: Literal["remove-dependency"] = "remove-dependency"
    name: str = Field(min_length=1)


class PinDependency(_Edit):
    """Take certain versions of a package whatever files ask for; adds it when it is not there."""

    edit: Literal["pin-dependency"] = "pin-dependency"
    requirement: str = Field(min_length=1)
    """Such as `werkzeug<3`."""
    role: Role = Role.TEST
    """When it is not there yet."""


class AddSystemPackage(_Edit):
    """Install a Debian package."""

    edit: Literal["add-system-package"] = "add-system-package"
    name: str = Field(pattern=r"^[a-z0-9][a-z0-9.+-]+$")


class SetLanguageVersion(_Edit):
    """Build on another version of the language."""

    edit: Literal["set-language-version"] = "set-language-version"
    version: str = Field(min_length=1)


class SetExcludeNewer(_Edit):
    """Packages uploaded from this day on don't exist for the build."""

    edit: Literal["set-exclude-newer"] = "set-exclude-newer"
    day: date


class SetEnv(_Edit):
    """Set a variable for build and tests."""

    edit: Literal["set-env"] = "set-env"
    name: str = Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    value: str


class UnsetEnv(_Edit):
    """Do not set a variable."""

    edit: Literal["unset-env"] = "unset-env"
    name: str


class SetSwitch(_Edit):
    """Turn on one of the language's named ways to do things."""

    edit: Literal["set-switch"] = "set-switch"
    name: str


class ClearSwitch(_Edit):
    """Turn it off."""

    edit: Literal["clear-switch"] = "clear-switch"
    name: str


class AddDependencyStep(_Edit):
    """One more line of shell where dependencies are installed: as root, with network, without the project's tree."""

    edit: Literal["add-dependency-step"] = "add-dependency-step"
    command: str = Field(min_length=1, max_length=2000)


class AddSourceStep(_Edit):
    """One more line of shell in the project's tree, before it is installed or built there."""

    edit: Literal["add-source-step"] = "add-source-step"
    command: str = Field(min_length=1, max_length=2000)


class RemoveStep(_Edit):
    """Take back a step that an edit added."""

    edit: Literal["remove-step"] = "remove-step"
    command: str = Field(min_length=1)


class SetTestPaths(_Edit):
    """Files or folders, from the tree's root, that a run of all tests is given; none leaves it to the project."""

    edit: Literal["set-test-paths"] = "set-test-paths"
    paths: tuple[str, ...]


class SetTestOptions(_Edit):
    """Options of the test runner to add and to take away; the program stays."""

    edit: Literal["set-test-options"] = "set-test-options"
    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()


class SetTestFolder(_Edit):
    """The folder of the tree in which the test command runs; empty for its root."""

    edit: Literal["set-test-folder"] = "set-test-folder"
    folder: str


class AddService(_Edit):
    """Start a server beside the tests."""

    edit: Literal["add-service"] = "add-service"
    name: str


class TakeFallback(_Edit):
    """Give up a choice as the language itself would when nothing else is known."""

    edit: Literal["fallback"] = "fallback"
    name: str


Edit = Annotated[
    AddDependency | RemoveDependency | PinDependency | AddSystemPackage | SetLanguageVersion | SetExcludeNewer | SetEnv
    | UnsetEnv | SetSwitch | ClearSwitch | AddDependencyStep | AddSourceStep | RemoveStep | SetTestPaths
    | SetTestOptions | SetTestFolder | AddService | TakeFallback,
    Field(discriminator="edit"),
]  # fmt: skip
_EDIT: TypeAdapter[Edit] = TypeAdapter(Edit)
_EDITS: TypeAdapter[tuple[Edit, ...]] = TypeAdapter(tuple[Edit, ...])


def edit_of(data: Any) -> Edit:
    """The edit that plain data describes, such as `{"edit": "add-system-package", "name": "libffi-dev"}`.

    Raises:
        pydantic.ValidationError: it describes none.
    """
    return _EDIT.validate_python(data)


def edits_of(data: Any) -> tuple[Edit, ...]:
    """Several at once; as `edit_of`."""
    return _EDITS.validate_python(data)


def schema() -> dict[str, Any]:
    """JSON schema of an edit, for tools."""
    return _EDIT.json_schema()


def to_data(edit: Edit) -> dict[str, Any]:
    """Plain data of an edit; the inverse of `edit_of`."""
    return edit.model_dump(mode="json")


def in_words(edit: Edit) -> str:
    """An edit in a line for people: `add-system-package libffi-dev`."""
    values = [value for name, value in to_data(edit).items() if name not in ("edit", "role")]
    if isinstance(edit, SetEnv):
        return f"{edit.edit} {edit.name}={edit.value}"
    if isinstance(edit, SetTestOptions):
        return " ".join([edit.edit, *(f"+{word}" for word in edit.add), *(f"without {word}" for word in edit.remove)])
    return " ".join([edit.edit, *(" ".join(v) if isinstance(v, list) else str(v) for v in values)])


def apply(draft: Draft, edit: Edit, place: str) -> Draft:
    """The draft with the edit; the same draft when there is nothing to change.

    `place`: who says so, as the evidence's path: `skill_place(NAME)` or AGENT.

    Raises:
        RefusedEditError: the edit can do nothing but cheat, or makes no sense for this draft; the text says why.
    """
    if why := refusals.of(edit, draft):
        raise RefusedEditError(why)
    change = _CHANGES[type(edit)]
    return change(draft, edit, place)


def apply_all(draft: Draft, edits: Iterable[Edit], place: str) -> Draft:
    """The draft with several edits, one after the other; as `apply`."""
    for edit in edits:
        draft = apply(draft, edit, place)
    return draft


# ----------------------------------------------------------------------------------------- what each does


def _said(draft: Draft, edit: Edit, place: str) -> tuple[Evidence, ...]:
    """The draft's evidence with a line for the edit, for choices that have no place of their own."""
    return (*draft.evidence, Evidence(choice=edit.edit, value=in_words(edit).partition(" ")[2], path=place, line=0))


def _same_name(draft: Draft, one: str, other: str) -> bool:
    if draft.language == "python":
        return canonicalize_name(distribution(one)) == canonicalize_name(distribution(other))
    return _bare(one) == _bare(other)


def _bare(text: str) -> str:
    """A package's name without its version: `@scope/name@1`, `name>=1`, `name 1`."""
    return re.split(r"(?<=.)@|[\s<>=~!^;\[]", text, maxsplit=1)[0]


def _add_dependency(draft: Draft, edit: AddDependency, place: str) -> Draft:
    if any(_same_name(draft, d.wanted.text, edit.requirement) and d.role is not Role.OPTIONAL
           for d in draft.dependencies):  # fmt: skip
        return draft
    return _with_dependency(draft, edit.requirement, edit.role, place)


def _with_dependency(draft: Draft, requirement: str, role: Role, place: str) -> Draft:
    kept = tuple(d for d in draft.dependencies if not _same_name(draft, d.wanted.text, requirement))
    added = Dependency(role=role, wanted=Wanted(text=requirement, path=place))
    return replace(draft, dependencies=(*kept, added))


def _remove_dependency(draft: Draft, edit: RemoveDependency, place: str) -> Draft:
    kept = tuple(d for d in draft.dependencies if not _same_name(draft, d.wanted.text, edit.name))
    if len(kept) == len(draft.dependencies):
        return draft
    return replace(draft, dependencies=kept, evidence=_said(draft, edit, place))


def _pin_dependency(draft: Draft, edit: PinDependency, place: str) -> Draft:
    held = [d for d in draft.dependencies if _same_name(draft, d.wanted.text, edit.requirement)]
    if [d.wanted.text for d in held] == [edit.requirement]:
        return draft
    roles = [d.role for d in held if d.role is not Role.OPTIONAL]
    return _with_dependency(draft, edit.requirement, roles[0] if roles else edit.role, place)


def _add_system_package(draft: Draft, edit: AddSystemPackage, place: str) -> Draft:
    if edit.name in {wanted.text for wanted in draft.system_packages}:
        return draft
    found = sorted((*draft.system_packages, Wanted(text=edit.name, path=place)), key=lambda wanted: wanted.text)
    return replace(draft, system_packages=tuple(found))


def _set_language_version(draft: Draft, edit: SetLanguageVersion, place: str) -> Draft:
    if draft.versions[0].value == edit.version:
        return draft
    chosen = Evidence(choice="language_version", value=edit.version, path=place, line=0)
    return replace(draft, versions=(chosen, *(v for v in draft.versions if v.value != edit.version)))


def _set_exclude_newer(draft: Draft, edit: SetExcludeNewer, place: str) -> Draft:
    if draft.exclude_newer == edit.day:
        return draft
    return replace(draft, exclude_newer=edit.day, evidence=_said(draft, edit, place))


def _set_env(draft: Draft, edit: SetEnv, place: str) -> Draft:
    if (edit.name, edit.value) in draft.env:
        return draft
    kept = tuple(pair for pair in draft.env if pair[0] != edit.name)
    return replace(draft, env=(*kept, (edit.name, edit.value)), evidence=_said(draft, edit, place))


def _unset_env(draft: Draft, edit: UnsetEnv, place: str) -> Draft:
    kept = tuple(pair for pair in draft.env if pair[0] != edit.name)
    return draft if kept == draft.env else replace(draft, env=kept, evidence=_said(draft, edit, place))


def _set_switch(draft: Draft, edit: SetSwitch, place: str) -> Draft:
    if edit.name in draft.switches:
        return draft
    return replace(draft, switches=draft.switches | {edit.name}, evidence=_said(draft, edit, place))


def _clear_switch(draft: Draft, edit: ClearSwitch, place: str) -> Draft:
    if edit.name not in draft.switches:
        return draft
    return replace(draft, switches=draft.switches - {edit.name}, evidence=_said(draft, edit, place))


def _add_dependency_step(draft: Draft, edit: AddDependencyStep, place: str) -> Draft:
    if edit.command in draft.dependency_steps:
        return draft
    return replace(draft, dependency_steps=(*draft.dependency_steps, edit.command), evidence=_said(draft, edit, place))


def _add_source_step(draft: Draft, edit: AddSourceStep, place: str) -> Draft:
    if edit.command in draft.source_steps:
        return draft
    return replace(draft, source_steps=(*draft.source_steps, edit.command), evidence=_said(draft, edit, place))


def _remove_step(draft: Draft, edit: RemoveStep, place: str) -> Draft:
    return replace(
        draft,
        dependency_steps=tuple(step for step in draft.dependency_steps if step != edit.command),
        source_steps=tuple(step for step in draft.source_steps if step != edit.command),
        evidence=_said(draft, edit, place),
    )


def _set_test_paths(draft: Draft, edit: SetTestPaths, place: str) -> Draft:
    test = draft.test.model_copy(update={"paths": edit.paths})
    return draft if test == draft.test else replace(draft, test=test, evidence=_said(draft, edit, place))


def _set_test_options(draft: Draft, edit: SetTestOptions, place: str) -> Draft:
    kept = [word for word in draft.test.argv if word not in edit.remove]
    argv = (*kept, *(word for word in edit.add if word not in kept or not word.startswith("-")))
    test = draft.test.model_copy(update={"argv": argv})
    return draft if test == draft.test else replace(draft, test=test, evidence=_said(draft, edit, place))


def _set_test_folder(draft: Draft, edit: SetTestFolder, place: str) -> Draft:
    test = draft.test.model_copy(update={"folder": edit.folder.strip("/")})
    return draft if test == draft.test else replace(draft, test=test, evidence=_said(draft, edit, place))


def _add_service(draft: Draft, edit: AddService, place: str) -> Draft:
    return with_service(draft, Wanted(text=edit.name, path=place))


def _fallback(draft: Draft, edit: TakeFallback, place: str) -> Draft:
    chosen = next(one for one in language(draft.language).FALLBACKS if one.__name__ == edit.name)
    made = chosen(draft)
    return draft if made == draft else replace(made, evidence=_said(made, edit, place))


_CHANGES: dict[type[_Edit], Callable[[Draft, Any, str], Draft]] = {
    AddDependency: _add_dependency,
    RemoveDependency: _remove_dependency,
    PinDependency: _pin_dependency,
    AddSystemPackage: _add_system_package,
    SetLanguageVersion: _set_language_version,
    SetExcludeNewer: _set_exclude_newer,
    SetEnv: _set_env,
    UnsetEnv: _unset_env,
    SetSwitch: _set_switch,
    ClearSwitch: _clear_switch,
    AddDependencyStep: _add_dependency_step,
    AddSourceStep: _add_source_step,
    RemoveStep: _remove_step,
    SetTestPaths: _set_test_paths,
    SetTestOptions: _set_test_options,
    SetTestFolder: _set_test_folder,
    AddService: _add_service,
    TakeFallback: _fallback,
}


def switches_of(draft: Draft) -> dict[str, str]:
    """Switches of the draft's language -> what each does, for who proposes edits."""
    return dict(language(draft.language).SWITCHES)
