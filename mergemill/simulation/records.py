"""Records of a simulation run in the task database, made of the files that its folder holds.

A run that goes on writes its folder again, and adds the records that are new: records are identified by the contents
    that they are.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from simulators.trajectory import SimulatedTrajectory
from taskdb.artifacts import Artifacts
from taskdb.records.simulations import PREFILTER, SimulatedConversation, SimulationRejection
from taskdb.store import Store

BATCH = 200
"""Records of a transaction."""


@dataclass(frozen=True, kw_only=True)
class SimulationRecorder:
    """Adds the conversations and rejections of a run to the task database.

    `domain`, `profile` and `simulator` are those of the run; `pack` is JSON of the domain pack, as rows need it.
    """

    store: Store
    artifacts: Artifacts
    domain: str
    profile: str
    simulator: str
    pack: bytes

    def add_conversations(self, trajectories: Iterable[SimulatedTrajectory]) -> int:
        """Add conversations; return how many are new.

        Raises:
            Transient: the database is locked, or the disk is full. A record that was added before stays.
        """
        pack = self.artifacts.put(self.pack)
        pairs = (self._build_conversation(trajectory, pack) for trajectory in trajectories)
        n_new = 0
        while batch := list(islice(pairs, BATCH)):
            known = self.store.get_many(SimulatedConversation, [record.id for record, _ in batch])
            missing = [(record, content) for record, content in batch if record.id not in known]
            for _, content in missing:
                self.artifacts.put(content)
            n_new += len(self.store.add(*(record for record, _ in missing)))
        return n_new

    def add_rejections(self, seeds: Iterable[Mapping[str, Any]], dropped: Iterable[Mapping[str, Any]]) -> int:
        """Add rejections; return how many are new.

        Args:
            seeds: lines of `seeds.jsonl`.
            dropped: lines of `dropped.jsonl`.

        Raises:
            Transient: as above.
        """
        n_new, records = 0, self._iterate_rejections(seeds, dropped)
        while batch := list(islice(records, BATCH)):
            n_new += len(self.store.add(*batch))
        return n_new

    def _build_conversation(self, trajectory: SimulatedTrajectory, pack: str) -> tuple[SimulatedConversation, bytes]:
        content = json.dumps(trajectory.to_json(), sort_keys=True).encode(errors="replace")
        turns = json.dumps([turn.to_json() for turn in trajectory.turns], sort_keys=True).encode(errors="replace")
        record = SimulatedConversation(
            parent=trajectory.parent,
            name=f"{trajectory.parent}-{trajectory.sample}",
            domain=trajectory.domain,
            pack_version=trajectory.pack_version,
            profile=trajectory.profile,
            simulator=trajectory.simulator,
            prompt=trajectory.prompt,
            sample=trajectory.sample,
            scenario=trajectory.scenario,
            failure=trajectory.failure or None,
            license=trajectory.license,
            answer=trajectory.answer,
            turns_sha256=hashlib.sha256(turns).hexdigest(),
            n_turns=len(trajectory.turns),
            n_calls=sum(len(turn.calls) for turn in trajectory.turns),
            trajectory=trajectory.id,
            content=hashlib.sha256(content).hexdigest(),
            pack=pack,
        )
        return record, content

    def _iterate_rejections(
        self, seeds: Iterable[Mapping[str, Any]], dropped: Iterable[Mapping[str, Any]]
    ) -> Iterator[SimulationRejection]:
        for line in seeds:
            if not line["used"]:
                yield self._build_rejection(line, name=line["id"], seed=line["id"], step=PREFILTER, answer=None)
        for line in dropped:
            yield self._build_rejection(
                line, name=line["name"], seed=line["seed"], step=line["step"], answer=line["answer"]
            )

    def _build_rejection(
        self, line: Mapping[str, Any], *, name: str, seed: str, step: str, answer: str | None
    ) -> SimulationRejection:
        return SimulationRejection(
            parent=seed,
            name=name,
            domain=self.domain,
            profile=self.profile,
            simulator=self.simulator,
            answer=answer or "",
            step=step,
            reason=line["reason"],
            detail=line["detail"],
        )


def load_trajectories(artifacts: Artifacts, records: Sequence[SimulatedConversation]) -> Iterator[SimulatedTrajectory]:
    """Yield the conversations of some records as the simulator's stage has them.

    Raises:
        InputError: an artifact is missing.
    """
    for record in records:
        yield SimulatedTrajectory.from_json(json.loads(artifacts.get(record.content)))
