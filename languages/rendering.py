"""Parts of plan rendering that all languages share."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from languages import apt
from languages.draft import Dependency, PlanDraft
from languages.facts import SourcedValue
from languages.source_tree import SourceTree
from taskdb.records import BuildPlan, Evidence

LOCAL_SETTINGS = (("LANG", "C.UTF-8"), ("TZ", "UTC"))
"""Locale and time zone of builds and tests, unless the project sets others."""


def build_plan(
    draft: PlanDraft,
    dependency_steps: Sequence[str],
    source_steps: Sequence[str],
    *,
    kept_folders: Sequence[str] = (),
) -> BuildPlan:
    """Return the build plan of a draft, given the steps of its language.

    Args:
        draft: the draft to render.
        dependency_steps: the language's steps, between the Debian packages and the draft's own dependency steps.
        source_steps: the language's steps, after the draft's own source steps.
        kept_folders: folders in the tree that the dependency steps fill.
    """
    until = draft.exclude_newer.isoformat()
    note = f"first day of the month of {draft.day}" if draft.exclude_newer.day == 1 else f"the day after {draft.day}"
    return BuildPlan(
        language=draft.language,
        language_version=draft.versions[0].value,
        exclude_newer=until,
        system_packages=tuple(w.text for w in draft.system_packages),
        dependency_steps=(*render_apt_steps(draft.system_packages), *dependency_steps, *draft.dependency_steps),
        source_steps=(*draft.source_steps, *source_steps),
        manifests=draft.manifests,
        kept_folders=tuple(kept_folders),
        services=tuple(w.text for w in draft.services),
        test=draft.test,
        env=draft.env,
        evidence=(
            draft.versions[0],
            Evidence(choice="exclude_newer", value=until, path="(date)", line=0, note=note),
            *(_build_evidence("system_packages", w) for w in draft.system_packages),
            *(_build_evidence("services", w) for w in draft.services),
            *(_build_dependency_evidence(d) for d in draft.dependencies),
            *draft.evidence,
        ),
    )


def render_apt_steps(packages: Sequence[SourcedValue]) -> tuple[str, ...]:
    """Return the step that installs Debian packages; no step if there are none."""
    if not packages:
        return ()
    return (apt.render_install(w.text for w in packages),)


def quote_words(texts: Sequence[str]) -> str:
    """Return the words as a shell-quoted string."""
    return " ".join(shlex.quote(text) for text in texts)


def read_manifests(tree: SourceTree, paths: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return (path, blob id) of the files that exist, sorted by path."""
    return tuple((path, tree.entries[path].oid) for path in sorted(set(paths)) if tree.is_file(path))


def list_external_content(tree: SourceTree) -> list[Evidence]:
    """Return evidence for each submodule and each Git LFS file: their content is not in the repository."""
    note = "left empty: the content of a submodule is not in the repository"
    submodules = [
        Evidence(choice="submodule", value=p, path=".gitmodules", line=0, note=note) for p in tree.submodules()
    ]
    return submodules + _list_lfs_pointers(tree)


_LFS_BYTES = range(100, 400)
"""Size of a Git LFS pointer file."""


def _list_lfs_pointers(tree: SourceTree) -> list[Evidence]:
    attributes = tree.read(".gitattributes")
    if "filter=lfs" not in attributes:
        return []
    line = attributes.count("\n", 0, attributes.index("filter=lfs")) + 1
    small = [path for path, entry in tree.entries.items() if entry.size in _LFS_BYTES]
    pointers = [p for p, text in tree.read_many(sorted(small)).items() if text.startswith("version https://git-lfs")]
    note = "a pointer file: Git LFS stores the content outside the repository"
    return [Evidence(choice="lfs", value=p, path=".gitattributes", line=line, note=note) for p in pointers]


def _build_evidence(choice: str, source: SourcedValue) -> Evidence:
    return Evidence(choice=choice, value=source.text, path=source.path, line=source.line)


def _build_dependency_evidence(dependency: Dependency) -> Evidence:
    return _build_evidence("dependency_steps", dependency.source).model_copy(update={"note": dependency.role.value})
