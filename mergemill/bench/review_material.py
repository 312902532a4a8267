"""Texts under review and the trees around them, as metrics and judges read them: from the store, without clones."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from backends.base_trees import BaseTreeStore
from backends.git import GitError, GitRepository
from core.errors import InputError
from core.settings.storage import StorageSettings
from evaluation.scoring.review_bench import ReviewMaterial, SurroundingTree
from taskdb.artifacts import Artifacts
from taskdb.records import Task
from taskdb.records.oracles import ReviewOracle


class ReviewTree:
    """The tree of a review, of which files and names are looked up when a finding needs them."""

    def __init__(self, repository: GitRepository, commit: str) -> None:
        self._repository = repository
        self._commit = commit
        self.read = cache(self._read)
        self.has_name = cache(self._has_name)

    def _read(self, path: str) -> str | None:
        """Return the text of a file; None where there is none."""
        content = self._repository.read_file(self._commit, path)
        return None if content is None else content.decode(errors="replace")

    def _has_name(self, name: str) -> bool:
        """Return whether a name occurs as a word in a text file of the tree."""
        try:
            self._repository.run_git(
                "grep", "--quiet", "-I", "--word-regexp", "--fixed-strings", "-e", name, self._commit
            )
        except GitError:
            return False
        return True


@dataclass(frozen=True)
class ReviewMaterials:
    """Materials of review tasks.

    Attributes:
        artifacts: texts of the tasks.
        trees: trees in the store.
    """

    artifacts: Artifacts
    trees: BaseTreeStore

    @classmethod
    def open(cls, storage: StorageSettings, artifacts: Artifacts) -> ReviewMaterials:
        """Return the materials in a store."""
        return cls(artifacts, BaseTreeStore(storage.store_dir / "trees"))

    def load(self, task: Task) -> ReviewMaterial:
        """Return the texts of a review.

        Raises:
            InputError: its tree is not in the store.
            TypeError: the task is no review.
        """
        oracle = task.oracle
        if not isinstance(oracle, ReviewOracle):
            raise TypeError(f"{task.name} is no review")
        diff = self.artifacts.get_text(oracle.diff) if oracle.diff else ""
        return ReviewMaterial(
            files=oracle.load_files(self.artifacts), diff=diff, tree=self._open_tree(task, oracle.tree)
        )

    def _open_tree(self, task: Task, commit: str | None) -> SurroundingTree | None:
        if commit is None:
            return None
        repository = self.trees.find(task.repo, commit)
        if repository is None:
            raise InputError(
                f"{task.name}: the tree of the review is not in the store",
                advice=f"derive the task again: mergemill derive --only {task.name}",
            )
        return ReviewTree(repository, commit)
