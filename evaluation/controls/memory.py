"""What the controls of tasks with the same tree of the gold patch share: test files, sites, and the results of trials.

Results are facts about a tree and texts of its tests, whichever task they were tried for. They can be stored as JSON
(`ControlMemory.list_fields`), so that a later call or another process need not run them again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from backends.git import GitRepository
from evaluation.controls.alternatives import TreeWords
from evaluation.controls.blocks import TestBlock, TestFile, parse_test_file
from evaluation.controls.features import TreeCounter, TreeCounts
from evaluation.controls.sites import list_sites
from evaluation.controls.trials import TrialResult, TriedBlock, TriedInstance
from evaluation.reports.outcomes import Outcome, OutcomeStatus
from taskdb.records import TestId

BlockKey = tuple[str, bytes, int, frozenset[bytes]]
"""Path and content of a test file, first byte of a test in it, and the stripped lines that the agent's tree has."""


@dataclass(kw_only=True)
class ControlMemory:
    """Test files, their sites and the results of trials, of all tasks that share the tree of their gold patches.

    The other values of a test are the same in all of these tasks. A submission that sees two of them graded therefore
    learns no more than from two gradings of a single task, where values drawn for each task would leave the true one as
    the only one that stands in both.

    Args:
        seed: seed of the values.
        read_tree: path of a test file -> counts of the agent's tree by which its values are chosen.
        read_file: path -> content of a file of the shared tree; None where a single task uses the memory.
        listed: tests that pass in the shared tree, each of which any task may list.
        counter: counter of the agents' trees.
    """

    seed: str
    read_tree: Callable[[str], TreeCounts]
    read_file: Callable[[str], bytes | None] | None = None
    listed: frozenset[TestId] = frozenset()
    counter: TreeCounter = field(default_factory=TreeCounter)
    crowded: set[str] = field(default_factory=set)
    """Test files of which a run left no instance that had values for further tasks."""
    _files: dict[tuple[str, bytes], TestFile | None] = field(default_factory=dict)
    _blocks: dict[BlockKey, TriedBlock | None] = field(default_factory=dict)
    _stored: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """Digest of the key of a test -> its stored results, until a task has it."""
    _words: dict[str, tuple[TreeCounts, TreeWords]] = field(default_factory=dict)

    @classmethod
    def share_tree(
        cls,
        repository: GitRepository,
        commit: str,
        listed: Collection[TestId],
        stored: Mapping[str, Any] | None = None,
    ) -> ControlMemory:
        """Return the memory of tasks whose tree with gold patch and tests is that of a commit.

        Args:
            repository: repository that contains the commit.
            commit: the commit; the agents' trees lack some of its test files.
            listed: tests that pass there in every run.
            stored: fields of the memory of earlier tasks (`list_fields`); None where there were none.
        """
        counter = TreeCounter()
        counter.count(repository, commit)  # first, as its files are those that all repositories of agents' trees have
        memory = cls(
            seed=commit,
            read_tree=lambda path: counter.count(repository, commit, without=path),
            read_file=lambda path: repository.read_file(commit, path),
            listed=frozenset(listed),
            counter=counter,
        )
        if stored:
            memory.restore(stored)
        return memory

    def parse(self, path: str, content: bytes) -> TestFile | None:
        """Return a parsed test file; None as `parse_test_file`."""
        if (path, content) not in self._files:
            self._files[path, content] = parse_test_file(path, content)
        return self._files[path, content]

    def find_block(self, file: TestFile, block: TestBlock, old_lines: frozenset[bytes]) -> TriedBlock | None:
        """Return a test with its sites and earlier results; None where it has no site.

        Args:
            file: file of the test.
            block: the test.
            old_lines: stripped lines that the file has in the agent's tree.
        """
        key = (file.path, file.source, block.start, old_lines)
        if key not in self._blocks:
            tree, words = self._read_words(file.path)
            # Of its own, so that the values do not depend on which tasks came before.
            random = Random(f"{self.seed} {file.path} {block.start}")  # noqa: S311 - the values are no secret
            sites = list_sites(file, block, old_lines, random, words)
            tried = TriedBlock.read(file, block, sites, tree) if sites else None
            if tried and self._stored and (fields := self._stored.pop(_compute_digest(key), None)):
                _restore_results(tried, fields)
            self._blocks[key] = tried
        return self._blocks[key]

    def has_results(self, file: TestFile, block: TestBlock, old_lines: frozenset[bytes]) -> bool:
        """Return whether values of a test were tried; arguments as in `find_block`."""
        key = (file.path, file.source, block.start, old_lines)
        if key in self._blocks:
            tried = self._blocks[key]
            return tried is not None and bool(tried.results)
        return bool(self._stored) and bool(self._stored.get(_compute_digest(key), {}).get("runs"))

    def list_fields(self) -> dict[str, Any]:
        """Return the results of all trials as JSON."""
        tried = {_compute_digest(key): tried for key, tried in self._blocks.items() if tried and tried.was_tried}
        blocks = {digest: _list_results(block) for digest, block in tried.items()}
        return {"seed": self.seed, "crowded": sorted(self.crowded), "blocks": {**self._stored, **blocks}}

    def restore(self, fields: Mapping[str, Any]) -> None:
        """Add the results that `list_fields` described; those of another seed show nothing here."""
        if fields["seed"] == self.seed:
            self.crowded |= set(fields["crowded"])
            self._stored = dict(fields["blocks"])

    def _read_words(self, path: str) -> tuple[TreeCounts, TreeWords]:
        if path not in self._words:
            tree = self.read_tree(path)
            self._words[path] = (tree, TreeWords.read(tree.tokens))
        return self._words[path]


def _compute_digest(key: BlockKey) -> str:
    path, content, start, old_lines = key
    digest = hashlib.sha256(f"{path}\0{start}\0".encode(errors="surrogateescape"))
    for part in (content, *sorted(old_lines)):
        digest.update(hashlib.sha256(part).digest())
    return digest.hexdigest()[:32]


def _list_results(tried: TriedBlock) -> dict[str, Any]:
    """Return the results of a test; those of a run have its true instance in common."""
    runs: dict[str, dict[str, Any]] = {}
    for (spans, text, is_silent), result in tried.results.items():
        first = {"true": _list_instance(result.true), "files": sorted(result.files), "others": []}
        run = runs.setdefault(result.true.name, first)
        run["others"].append([spans, text, is_silent, _list_instance(result.instance)])
    fields: dict[str, Any] = {"runs": list(runs.values())}
    if tried.single.was_tried:
        fields["forms"] = [[site.spans, form] for site, form in tried.single.forms]
    return fields


def _restore_results(tried: TriedBlock, fields: Mapping[str, Any]) -> None:
    """Add stored results to a test."""
    for run in fields["runs"]:
        true, files = _read_instance(tried.name, run["true"]), frozenset(run["files"])
        for spans, text, is_silent, instance in run["others"]:
            result = TrialResult(true=true, instance=_read_instance(tried.name, instance), files=files)
            tried.results[_read_spans(spans), text, is_silent] = result
    sites = {site.spans: site for site in tried.sites}
    forms = [(_read_spans(spans), form) for spans, form in fields.get("forms", ())]
    if "forms" in fields and all(spans in sites for spans, _ in forms):
        tried.single.forms = [(sites[spans], form) for spans, form in forms]
        tried.single.was_tried = True


def _read_spans(rows: Collection[Collection[int]]) -> tuple[tuple[int, int], ...]:
    return tuple((start, end) for start, end in rows)


def _list_instance(instance: TriedInstance) -> list[Any]:
    return [instance.name, {test: list(_iterate_fields(outcome)) for test, outcome in instance.outcomes.items()}]


def _iterate_fields(outcome: Outcome) -> Iterator[Any]:
    yield from (outcome.status.value, outcome.message, round(outcome.seconds, 4))
    if outcome.by_assertion is not None:
        yield outcome.by_assertion


def _read_instance(old: str, row: Collection[Any]) -> TriedInstance:
    name, outcomes = row
    return TriedInstance(
        old=old, name=name, outcomes={test: _read_outcome(*fields) for test, fields in outcomes.items()}
    )


def _read_outcome(status: str, message: str, seconds: float, by_assertion: bool | None = None) -> Outcome:
    return Outcome(status=OutcomeStatus(status), message=message, seconds=seconds, by_assertion=by_assertion)
