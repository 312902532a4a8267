"""State that the steps of a run share: the domain, the options, and the conversations that were seen so far."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from core.minhash import Features, compute_jaccard_index, compute_keys
from simulators.domains.pack import DomainPack
from simulators.options import SimulationOptions
from simulators.post_processing.grams import GramIndex

SKETCH_KIND = "conversation"


@dataclass
class SeenConversations:
    """Conversations that passed, by the texts that duplicates are found. Not thread-safe."""

    digests: set[str] = field(default_factory=set)
    names: list[str] = field(default_factory=list)
    sketches: list[Features] = field(default_factory=list)
    by_key: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))

    def find_or_add(self, name: str, features: Features, limit: float) -> tuple[str, float] | None:
        """Return name and similarity of the first that is more similar than `limit`.

        Where there is none, this conversation is added under its name, and the result is None.
        """
        keys = tuple(compute_keys(SKETCH_KIND, features))
        for at in sorted({at for key in keys for at in self.by_key.get(key, ())}):
            similarity = compute_jaccard_index(features, self.sketches[at])
            if similarity > limit:
                return self.names[at], similarity
        for key in keys:
            self.by_key[key].append(len(self.sketches))
        self.names.append(name)
        self.sketches.append(features)
        return None


@dataclass(kw_only=True)
class StepContext:
    """State that the steps of a run share."""

    pack: DomainPack
    options: SimulationOptions
    benchmarks: GramIndex
    seen: SeenConversations = field(default_factory=SeenConversations)
