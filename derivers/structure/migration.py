"""Dependency migrations: a module is given up, another takes its place, and the tests pass as before."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePosixPath

from backends.git import GitError, GitRepository
from backends.index import ScratchIndex
from backends.services import Services
from derivers.base import KindRejection, build_task, check_statement
from derivers.statements import render_template
from guest.harness.structure.structure_check import (
    MANIFESTS,
    MAX_FILE_BYTES,
    SOURCE_SUFFIXES,
    find_violations,
    imports_module,
    list_modules,
    names_package,
    uses_module,
)
from languages.paths import is_source
from languages.registry import find_language
from taskdb.records import Candidate, Kind, Task
from taskdb.records.lineage import Lineage
from taskdb.records.oracles import MigrationOracle

_LANGUAGE_ROOTS = frozenset({"crate", "self", "super", "std", "core", "alloc", "__future__", "typing", "types"})
"""Modules that are part of a language; another import of them is not a migration."""


class Reason(StrEnum):
    """Why a verified change is not a migration. Where the judge excluded the statement, the reason is its finding."""

    NO_PASSING_TESTS = "no-passing-tests"
    NO_MIGRATION = "no-migration"
    """No module of others is given up for another module that is new in the program."""
    NOT_INTENDED = "not-intended"
    """Neither the statement nor a manifest names any of the modules."""
    DOES_NOT_APPLY = "does-not-apply"
    NOT_CONFIRMED = "not-confirmed"
    """The check does not accept the gold tree, or accepts the base tree."""


@dataclass(frozen=True)
class DependencyTree:
    """The source files and manifests of a tree: path -> text."""

    texts: Mapping[str, str]

    @classmethod
    def read(cls, repository: GitRepository, tree: str) -> DependencyTree:
        """Return the files of a commit or tree that the check reads."""
        entries = [
            entry
            for entry in repository.ls_tree(tree)
            if entry.mode.startswith("100")
            and entry.size <= MAX_FILE_BYTES
            and (MANIFESTS.search(entry.path) or (entry.path.endswith(SOURCE_SUFFIXES) and is_source(entry.path)))
        ]
        contents = repository.read_blobs([entry.oid for entry in entries])
        return cls({e.path: c.decode(errors="replace") for e, c in zip(entries, contents, strict=True)})

    @property
    def manifests(self) -> str:
        """The text of all manifests."""
        return "\n".join(text for path, text in self.texts.items() if MANIFESTS.search(path))

    def list_modules(self, paths: Iterable[str]) -> set[str]:
        """Return the modules of others that some files import, and in Python the packages that contain them."""
        own = {part for path in self.texts for part in (*PurePosixPath(path).parts[:-1], PurePosixPath(path).stem)}
        modules = set()
        for path in paths:
            for module in list_modules(path, self.texts.get(path, ""), with_names=False):
                root = re.split(r"[./:]", module)[0]
                if module.startswith(".") or root in own | _LANGUAGE_ROOTS or (root and module in own):
                    continue
                modules |= _list_enclosing_packages(path, module)
        return modules

    def imports(self, module: str) -> bool:
        """Return whether a source file imports a module."""
        return any(module in text and imports_module(path, text, module) for path, text in self.texts.items())

    def uses(self, module: str) -> bool:
        """Return whether a source file refers to a name that it imports from a module."""
        sources = {path: text for path, text in self.texts.items() if path.endswith(SOURCE_SUFFIXES)}
        return uses_module(sources, module)


def _list_enclosing_packages(path: str, module: str) -> set[str]:
    """Return a module that a file imports, with the packages that contain it in languages that have such."""
    language = find_language(path)
    separator = language.modules.separator if language is not None and language.modules is not None else ""
    parts = module.split(separator) if separator else [module]
    return {separator.join(parts[:end]) for end in range(1, len(parts) + 1)}


def derive_migration(lineage: Lineage, services: Services) -> list[Task] | KindRejection:
    """Return the migration task of a verified change. Nothing is executed."""
    candidate = lineage.candidate
    if not lineage.require_verification().PASS_TO_PASS:
        return KindRejection(Reason.NO_PASSING_TESTS, "no test passes before and after the change")
    try:
        before, after = _read_trees(candidate, services)
    except GitError as error:
        return KindRejection(Reason.DOES_NOT_APPLY, str(error))
    oracle = find_migration(before, after, candidate.gold_files)
    rejection = _check_migration(candidate, oracle, before, after) or check_statement(lineage)
    if rejection is not None:
        return rejection
    task = build_task(lineage, Kind.DEPENDENCY_MIGRATION, oracle=oracle)
    statement = render_template("structure/migration.md.j2", statement=task.problem_statement.rstrip(), oracle=oracle)
    return [task.model_copy(update={"problem_statement": statement})]


def _check_migration(
    candidate: Candidate, oracle: MigrationOracle | None, before: DependencyTree, after: DependencyTree
) -> KindRejection | None:
    """Return why a change is not a migration; None if it is a migration and the check distinguishes the trees."""
    if oracle is None:
        return KindRejection(Reason.NO_MIGRATION, "no module of others is given up for a new one")
    if not oracle.old_packages and not _names_any(candidate.problem_statement, oracle):
        names = ", ".join((*oracle.old_modules, *oracle.new_modules))
        return KindRejection(Reason.NOT_INTENDED, f"neither the statement nor a manifest is about {names}")
    rules = oracle.build_rules()
    violations = [find_violations(rules, tree.texts.get, sorted(tree.texts)) for tree in (before, after)]
    if not violations[0] or violations[1]:
        return KindRejection(Reason.NOT_CONFIRMED, "; ".join(violations[1]) or "the base tree has the structure")
    return None


def find_migration(before: DependencyTree, after: DependencyTree, paths: Iterable[str]) -> MigrationOracle | None:
    """Return the modules that a change gives up, and those that it begins to use; None unless there are both.

    Args:
        before: the base tree.
        after: the gold tree.
        paths: files that the change touches.
    """
    touched = [path for path in paths if path.endswith(SOURCE_SUFFIXES) and is_source(path)]
    was, now = before.list_modules(touched), after.list_modules(touched)
    old = _keep_outermost(module for module in was - now if not after.imports(module))
    new = _keep_outermost(module for module in now - was if not before.imports(module) and after.uses(module))
    if not old or not new:
        return None
    manifests = before.manifests, after.manifests
    return MigrationOracle(
        old_modules=old,
        new_modules=new,
        old_packages=_list_packages(old, *manifests),
        new_packages=_list_packages(new, *reversed(manifests)),
    )


def _read_trees(candidate: Candidate, services: Services) -> tuple[DependencyTree, DependencyTree]:
    repository = services.clones.open_tree(candidate.source, candidate.repo, candidate.base_commit)
    with ScratchIndex(repository, candidate.base_commit) as index:
        index.apply(services.artifacts.get(candidate.gold_patch))
        after = DependencyTree.read(index.repository, index.write_tree())
    return DependencyTree.read(repository, candidate.base_commit), after


def _keep_outermost(modules: Iterable[str]) -> tuple[str, ...]:
    """Return modules without those below another."""
    every = set(modules)
    return tuple(sorted(name for name in every if not any(name.startswith(f"{other}.") for other in every)))


def _list_packages(modules: Iterable[str], there: str, elsewhere: str) -> tuple[str, ...]:
    """Return the modules' own names that a side's manifests name as packages and the other's do not."""
    names = {module if "/" in module else module.split(".")[0] for module in modules}
    return tuple(sorted(name for name in names if names_package(there, name) and not names_package(elsewhere, name)))


def _names_any(statement: str, oracle: MigrationOracle) -> bool:
    names = {module.rpartition("/")[2] for module in (*oracle.old_modules, *oracle.new_modules)}
    return any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", statement, re.IGNORECASE) for name in names)
