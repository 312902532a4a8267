"""Application of edits to a draft: pure functions, a function for each edit."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from builders.repair.edit_checks import RejectedEditError, check_edit
from builders.repair.edits import (
    AddDependency,
    AddDependencyStep,
    AddService,
    AddSourceStep,
    AddSystemPackage,
    ClearSwitch,
    DraftEdit,
    DraftEditModel,
    PinDependency,
    RelaxDependency,
    RemoveDependency,
    RemoveStep,
    RemoveSystemPackage,
    SetEnv,
    SetExcludeNewer,
    SetLanguageVersion,
    SetSwitch,
    SetTestFolder,
    SetTestOptions,
    SetTestPaths,
    UnsetEnv,
    UseFallback,
    format_edit,
)
from languages.draft import Dependency, PlanDraft, Role
from languages.facts import SourcedValue
from languages.registry import get_language
from languages.services import add_service
from taskdb.records import Evidence


def apply_edit(draft: PlanDraft, edit: DraftEdit, origin: str) -> PlanDraft:
    """Return the draft with the edit applied; the same draft when the edit changes nothing.

    `origin`: the evidence's path, `format_skill_origin(NAME)` or AGENT_ORIGIN.

    Raises:
        RejectedEditError: the edit could only hide failures, or is invalid for this draft; the text gives the reason.
    """
    if reason := check_edit(edit, draft):
        raise RejectedEditError(reason)
    return _APPLY_FUNCTIONS[type(edit)](draft, edit, origin)


def apply_edits(draft: PlanDraft, edits: Iterable[DraftEdit], origin: str) -> PlanDraft:
    """Return the draft with several edits applied in order; raises as `apply_edit`."""
    for edit in edits:
        draft = apply_edit(draft, edit, origin)
    return draft


def _append_evidence(draft: PlanDraft, edit: DraftEdit, origin: str) -> tuple[Evidence, ...]:
    """Return the draft's evidence with a line for the edit, for choices without an origin field."""
    return (*draft.evidence, Evidence(choice=edit.edit, value=format_edit(edit).partition(" ")[2], path=origin, line=0))


def _is_same_package(draft: PlanDraft, requirement: str, other: str) -> bool:
    parse_name = get_language(draft.language).parse_package_name
    return parse_name(requirement) == parse_name(other)


def _add_dependency(draft: PlanDraft, edit: AddDependency, origin: str) -> PlanDraft:
    if any(
        _is_same_package(draft, d.source.text, edit.requirement) and d.role is not Role.OPTIONAL
        for d in draft.dependencies
    ):
        return draft
    return _replace_dependency(draft, edit.requirement, edit.role, origin)


def _replace_dependency(draft: PlanDraft, requirement: str, role: Role, origin: str) -> PlanDraft:
    kept = tuple(d for d in draft.dependencies if not _is_same_package(draft, d.source.text, requirement))
    added = Dependency(role=role, source=SourcedValue(text=requirement, path=origin))
    return replace(draft, dependencies=(*kept, added))


def _remove_dependency(draft: PlanDraft, edit: RemoveDependency, origin: str) -> PlanDraft:
    kept = tuple(d for d in draft.dependencies if not _is_same_package(draft, d.source.text, edit.name))
    edited = replace(draft, dependencies=kept).leave_out(edit.name)
    return draft if edited == draft else replace(edited, evidence=_append_evidence(edited, edit, origin))


def _pin_dependency(draft: PlanDraft, edit: PinDependency, origin: str) -> PlanDraft:
    existing = [d for d in draft.dependencies if _is_same_package(draft, d.source.text, edit.requirement)]
    if [d.source.text for d in existing] == [edit.requirement]:
        return draft
    # An optional dependency may be left out of the build, and a pinned dependency must be installed.
    roles = [d.role for d in existing if d.role is not Role.OPTIONAL]
    return _replace_dependency(draft, edit.requirement, roles[0] if roles else edit.role, origin)


def _relax_dependency(draft: PlanDraft, edit: RelaxDependency, origin: str) -> PlanDraft:
    dependencies = [d for d in draft.dependencies if d.source.text == edit.requirement]
    if not dependencies:
        return draft
    others = [d for d in draft.dependencies if d not in dependencies]
    if not any(_is_same_package(draft, d.source.text, edit.requirement) for d in others):
        # A scoped npm package begins with `@`, which does not separate a version.
        text = re.split(r"(?<=.)@|[\s<>=~!^;]", edit.requirement, maxsplit=1)[0]
        if text == edit.requirement:
            return draft
        others.append(replace(dependencies[0], source=replace(dependencies[0].source, text=text)))
    return replace(draft, dependencies=tuple(others), evidence=_append_evidence(draft, edit, origin))


def _add_system_package(draft: PlanDraft, edit: AddSystemPackage, origin: str) -> PlanDraft:
    if edit.name in {package.text for package in draft.system_packages}:
        return draft
    added = SourcedValue(text=edit.name, path=origin)
    # Sorted packages give the same plan in whatever order edits add them.
    packages = sorted((*draft.system_packages, added), key=lambda package: package.text)
    return replace(draft, system_packages=tuple(packages))


def _remove_system_package(draft: PlanDraft, edit: RemoveSystemPackage, origin: str) -> PlanDraft:
    kept = tuple(package for package in draft.system_packages if package.text != edit.name)
    if kept == draft.system_packages:
        return draft
    return replace(draft, system_packages=kept, evidence=_append_evidence(draft, edit, origin))


def _set_language_version(draft: PlanDraft, edit: SetLanguageVersion, origin: str) -> PlanDraft:
    if draft.versions[0].value == edit.version:
        return draft
    chosen = Evidence(choice="language_version", value=edit.version, path=origin, line=0)
    return replace(draft, versions=(chosen, *(v for v in draft.versions if v.value != edit.version)))


def _set_exclude_newer(draft: PlanDraft, edit: SetExcludeNewer, origin: str) -> PlanDraft:
    if draft.exclude_newer == edit.day:
        return draft
    return replace(draft, exclude_newer=edit.day, evidence=_append_evidence(draft, edit, origin))


def _set_env(draft: PlanDraft, edit: SetEnv, origin: str) -> PlanDraft:
    if (edit.name, edit.value) in draft.env:
        return draft
    kept = tuple(pair for pair in draft.env if pair[0] != edit.name)
    return replace(draft, env=(*kept, (edit.name, edit.value)), evidence=_append_evidence(draft, edit, origin))


def _unset_env(draft: PlanDraft, edit: UnsetEnv, origin: str) -> PlanDraft:
    kept = tuple(pair for pair in draft.env if pair[0] != edit.name)
    return draft if kept == draft.env else replace(draft, env=kept, evidence=_append_evidence(draft, edit, origin))


def _set_switch(draft: PlanDraft, edit: SetSwitch, origin: str) -> PlanDraft:
    if edit.name in draft.switches:
        return draft
    return replace(draft, switches=draft.switches | {edit.name}, evidence=_append_evidence(draft, edit, origin))


def _clear_switch(draft: PlanDraft, edit: ClearSwitch, origin: str) -> PlanDraft:
    if edit.name not in draft.switches:
        return draft
    return replace(draft, switches=draft.switches - {edit.name}, evidence=_append_evidence(draft, edit, origin))


def _add_dependency_step(draft: PlanDraft, edit: AddDependencyStep, origin: str) -> PlanDraft:
    if edit.command in draft.dependency_steps:
        return draft
    return replace(
        draft, dependency_steps=(*draft.dependency_steps, edit.command), evidence=_append_evidence(draft, edit, origin)
    )


def _add_source_step(draft: PlanDraft, edit: AddSourceStep, origin: str) -> PlanDraft:
    if edit.command in draft.source_steps:
        return draft
    return replace(
        draft, source_steps=(*draft.source_steps, edit.command), evidence=_append_evidence(draft, edit, origin)
    )


def _remove_step(draft: PlanDraft, edit: RemoveStep, origin: str) -> PlanDraft:
    return replace(
        draft,
        dependency_steps=tuple(step for step in draft.dependency_steps if step != edit.command),
        source_steps=tuple(step for step in draft.source_steps if step != edit.command),
        evidence=_append_evidence(draft, edit, origin),
    )


def _set_test_paths(draft: PlanDraft, edit: SetTestPaths, origin: str) -> PlanDraft:
    test = draft.test.model_copy(update={"paths": edit.paths})
    return draft if test == draft.test else replace(draft, test=test, evidence=_append_evidence(draft, edit, origin))


def _set_test_options(draft: PlanDraft, edit: SetTestOptions, origin: str) -> PlanDraft:
    kept = [word for word in draft.test.argv if word not in edit.remove]
    argv = (*kept, *(word for word in edit.add if word not in kept or not word.startswith("-")))
    test = draft.test.model_copy(update={"argv": argv})
    return draft if test == draft.test else replace(draft, test=test, evidence=_append_evidence(draft, edit, origin))


def _set_test_folder(draft: PlanDraft, edit: SetTestFolder, origin: str) -> PlanDraft:
    test = draft.test.model_copy(update={"folder": edit.folder.strip("/")})
    return draft if test == draft.test else replace(draft, test=test, evidence=_append_evidence(draft, edit, origin))


def _add_service(draft: PlanDraft, edit: AddService, origin: str) -> PlanDraft:
    return add_service(draft, SourcedValue(text=edit.name, path=origin))


def _use_fallback(draft: PlanDraft, edit: UseFallback, origin: str) -> PlanDraft:
    fallback = next(fallback for fallback in get_language(draft.language).fallbacks if fallback.__name__ == edit.name)
    edited = fallback(draft)
    return draft if edited == draft else replace(edited, evidence=_append_evidence(edited, edit, origin))


_APPLY_FUNCTIONS: dict[type[DraftEditModel], Callable[[PlanDraft, Any, str], PlanDraft]] = {
    AddDependency: _add_dependency,
    RemoveDependency: _remove_dependency,
    RelaxDependency: _relax_dependency,
    PinDependency: _pin_dependency,
    AddSystemPackage: _add_system_package,
    RemoveSystemPackage: _remove_system_package,
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
    UseFallback: _use_fallback,
}
