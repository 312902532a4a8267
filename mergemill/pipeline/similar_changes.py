"""Search for changes that may be mirrored in an environment: in the driver, as workers read no database."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from backends.services import Services
from core.settings.models import OFF
from languages.registry import language_family
from miner.benchmarks import load_benchmarks
from miner.licenses import is_allowed
from miner.similarity import build_sketch
from taskdb.queries.similar_changes import MAX_SIMILAR, find_similar_changes
from taskdb.records import Candidate, Kind, PullRequest
from taskdb.records.lineage import Lineage
from taskdb.store import Store

TRIED_PER_TASK = 3
"""Changes for each task that an environment is to give."""
MAX_SIMILAR_OF_MANY = 60
"""Changes that travel with a lineage at most."""


@dataclass(frozen=True)
class SimilarChangeFinder:
    """Finder of changes of other projects whose issues may be mirrored."""

    store: Store
    services: Services

    def add_similar(self, lineage: Lineage) -> Lineage:
        """Return a change with those that may be mirrored in its environment; unchanged where none is wanted."""
        if Kind.MIRRORED not in lineage.kinds or self.services.settings.llm.url == OFF:
            return lineage
        languages = sorted(language_family(lineage.candidate.language))
        used = {task.mirror.candidate for task in lineage.existing if task.mirror}
        # Changes that earlier steps of a search have tried in vain are still among the most similar ones.
        number = len(lineage.existing) + (lineage.wanted or 1)
        most = min(MAX_SIMILAR_OF_MANY, max(MAX_SIMILAR, TRIED_PER_TASK * number))
        may_mirror = partial(self._may_mirror, used=frozenset(used))
        similar = find_similar_changes(self.store, lineage.candidate, languages, may_mirror, most)
        return replace(lineage, similar=similar)

    def _may_mirror(self, candidate: Candidate, used: frozenset[str]) -> bool:
        """Return whether a change may be mirrored by the rules for mined changes: licences and lists of benchmarks.

        They are applied again, as a change may have been mined before the settings named them.

        Args:
            candidate: the change.
            used: ids of changes that are mirrored already.
        """
        mining, get_text = self.services.settings.mining, self.services.artifacts.get_text
        if candidate.id in used or (mining.licenses and not is_allowed(candidate.license, mining.licenses)):
            return False
        benchmarks = load_benchmarks(mining.benchmarks)
        number = self.store.get(PullRequest, candidate.parent).number
        if benchmarks.find_by_name(candidate.repo, number, candidate.base_commit, candidate.name) is not None:
            return False
        if not benchmarks.sketches:
            return True
        sketch = build_sketch(
            get_text(candidate.gold_patch), get_text(candidate.test_patch), candidate.problem_statement
        )
        return benchmarks.find_near_duplicate(sketch, mining) is None
