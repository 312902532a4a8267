"""What all languages do alike when a draft becomes a plan."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from languages import apt
from languages.draft import Dependency, Draft
from languages.facts import Wanted
from languages.tree import Tree
from taskdb.records import BuildPlan, Evidence

LOCAL_SETTINGS = (("LANG", "C.UTF-8"), ("TZ", "UTC"))
"""Locale and time zone of builds and tests where the project asks for no other."""


def plan_of(
    made: Draft, dependency_steps: Sequence[str], source_steps: Sequence[str], *,
    kept_folders: Sequence[str] = (),
) -> BuildPlan:  # fmt: skip
    """The plan of a draft with its language's steps; packages of Debian, services and evidence as in every plan.

    Args:
        made: the draft.
        dependency_steps: the language's, after Debian's packages and before the draft's own.
        source_steps: the language's, after the draft's own.
        kept_folders: folders in the tree that the dependency steps fill.
    """
    until = made.exclude_newer.isoformat()
    note = f"first day of the month of {made.day}" if made.exclude_newer.day == 1 else f"the day after {made.day}"
    return BuildPlan(
        language=made.language,
        language_version=made.versions[0].value,
        exclude_newer=until,
        system_packages=tuple(w.text for w in made.system_packages),
        dependency_steps=(*apt_steps(made.system_packages), *dependency_steps, *made.dependency_steps),
        source_steps=(*made.source_steps, *source_steps),
        manifests=made.manifests,
        kept_folders=tuple(kept_folders),
        services=tuple(w.text for w in made.services),
        test=made.test,
        env=made.env,
        evidence=(
            made.versions[0],
            Evidence(choice="exclude_newer", value=until, path="(date)", line=0, note=note),
            *(_evidence("system_packages", w) for w in made.system_packages),
            *(_evidence("services", w) for w in made.services),
            *(_dependency_evidence(d) for d in made.dependencies),
            *made.evidence,
        ),
    )


def apt_steps(wanted: Sequence[Wanted]) -> tuple[str, ...]:
    """The step that installs Debian packages; none of none."""
    if not wanted:
        return ()
    return (apt.install(w.text for w in wanted),)


def quoted(texts: Sequence[str]) -> str:
    """Words of a shell line."""
    return " ".join(shlex.quote(text) for text in texts)


def read_manifests(tree: Tree, paths: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """(path, blob id) of the files that there are, sorted."""
    return tuple((path, tree.entries[path].oid) for path in sorted(set(paths)) if tree.is_file(path))


def elsewhere_evidence(tree: Tree) -> list[Evidence]:
    """A line for each submodule and each file of Git LFS: their content is not in the repository."""
    note = "left empty: a submodule's content is not in the repository"
    found = [Evidence(choice="submodule", value=p, path=".gitmodules", line=0, note=note) for p in tree.submodules()]
    return found + _lfs_evidence(tree)


_LFS_BYTES = range(100, 400)
"""How large a pointer of Git LFS can be."""


def _lfs_evidence(tree: Tree) -> list[Evidence]:
    attributes = tree.read(".gitattributes")
    if "filter=lfs" not in attributes:
        return []
    line = attributes.count("\n", 0, attributes.index("filter=lfs")) + 1
    small = [path for path, entry in tree.entries.items() if entry.size in _LFS_BYTES]
    pointers = [p for p, text in tree.read_many(sorted(small)).items() if text.startswith("version https://git-lfs")]
    note = "a pointer: Git LFS keeps the content elsewhere"
    return [Evidence(choice="lfs", value=p, path=".gitattributes", line=line, note=note) for p in pointers]


def _evidence(choice: str, wanted: Wanted) -> Evidence:
    return Evidence(choice=choice, value=wanted.text, path=wanted.path, line=wanted.line)


def _dependency_evidence(dependency: Dependency) -> Evidence:
    return _evidence("dependency_steps", dependency.wanted).model_copy(update={"note": dependency.role.value})
