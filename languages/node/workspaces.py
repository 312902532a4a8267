"""Members of a workspace that a change touches, and those that they depend on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from languages.node.package import NodePackage, NodeProject


def list_needed_members(project: NodeProject, changed_paths: Sequence[str]) -> list[NodePackage]:
    """Return the members that the change touches with the packages that they depend on, dependencies first.

    Empty for no member.
    """
    by_name = {member.name: member for member in project.members if member.name}
    touched = [
        member for member in project.members if any(path.startswith(f"{member.folder}/") for path in changed_paths)
    ]
    needed: dict[str, NodePackage] = {}
    for member in touched:
        for other in _walk(member, by_name, set()):
            needed.setdefault(other.folder, other)
    return list(needed.values())


def _walk(member: NodePackage, by_name: dict[str, NodePackage], seen: set[str]) -> Iterator[NodePackage]:
    if member.folder in seen:
        return
    seen.add(member.folder)
    for name in member.dependencies:
        if name in by_name:
            yield from _walk(by_name[name], by_name, seen)
    yield member
