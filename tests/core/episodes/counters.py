"""The smallest episodes: counters, whose actions are numbers that are added."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from core.episodes.errors import ConflictError
from core.episodes.player import EpisodePlayer
from core.errors import Transient

FAIL = 13
"""Action that fails after it changed the episode."""


@dataclass
class CounterEpisode:
    id: str
    total: int
    answers: list[int] = field(default_factory=list)
    is_closed: bool = False
    is_lost: bool = False

    @property
    def is_open(self) -> bool:
        return not self.is_closed and not self.has_ended

    @property
    def has_ended(self) -> bool:
        return self.total >= 100

    @property
    def next_number(self) -> int:
        return len(self.answers)


class CounterPlayer(EpisodePlayer[CounterEpisode, int, int, int, int]):
    """`entered` is set inside each step, which waits until `may_go_on` is set."""

    def __init__(self) -> None:
        self.opened: list[CounterEpisode] = []
        self.entered, self.may_go_on = threading.Event(), threading.Event()
        self.may_go_on.set()

    def open(self, request: int, name: str) -> CounterEpisode:
        episode = CounterEpisode(name, request)
        self.opened.append(episode)
        return episode

    def step(self, episode: CounterEpisode, action: int) -> int:
        self.entered.set()
        assert self.may_go_on.wait(10)
        episode.total += action
        if action == FAIL:
            raise Transient("the step failed")
        episode.answers.append(episode.total)
        return episode.total

    def repeat(self, episode: CounterEpisode, action: int, number: int) -> int:
        del action
        if not 0 <= number < len(episode.answers):
            raise ConflictError(f"there is no action {number}")
        return episode.answers[number]

    def answer_ended(self, episode: CounterEpisode) -> int:
        raise ConflictError(f"{episode.id} has ended")

    def evaluate(self, episode: CounterEpisode) -> int:
        return episode.total

    def check(self, episode: CounterEpisode) -> None:
        if episode.is_lost:
            raise Transient(f"{episode.id} is lost")

    def close(self, episode: CounterEpisode) -> None:
        episode.is_closed = True


class CounterStore:
    """Episodes as JSON would have them: a copy is kept and returned."""

    def __init__(self) -> None:
        self.records: dict[str, tuple[int, tuple[int, ...]]] = {}
        self.n_loads = 0

    def add(self, episode: CounterEpisode) -> None:
        self.save(episode)

    def save(self, episode: CounterEpisode) -> None:
        self.records[episode.id] = (episode.total, tuple(episode.answers))

    def load(self, episode_id: str) -> CounterEpisode | None:
        self.n_loads += 1
        if episode_id not in self.records:
            return None
        total, answers = self.records[episode_id]
        return CounterEpisode(episode_id, total, list(answers))
