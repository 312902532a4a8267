"""Table of the episodes of a service: their life, one request at a time for each, limits, expiry and repeated actions.

An action may carry its number. One that comes next is taken; another one was sent before and is answered as before,
or conflicts with the episode. So a client that did not receive an answer sends the same action again, and it is taken
once.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from core.closable import Closable
from core.episodes.errors import ConflictError, RefusedRequestError
from core.episodes.player import EpisodePlayer, EpisodeStore, EpisodeT
from core.errors import MergemillError

RequestT = TypeVar("RequestT")
ActionT = TypeVar("ActionT")
AnswerT = TypeVar("AnswerT")
ScoreT = TypeVar("ScoreT")


@dataclass(frozen=True, kw_only=True)
class EpisodeLimits:
    """Limits of a table."""

    most_open: int | None = None
    """Open episodes at a time; further ones are refused. Without a store, as many that have ended are remembered."""
    most_kept: int | None = None
    """Episodes kept in memory, where there is a store: others are read again when they go on."""
    idle_seconds: float | None = None
    """Seconds without a request after which `close_idle` closes an episode."""
    waits: bool = False
    """Whether a request waits for another one of its episode; else it is refused."""
    name_bytes: int = 16
    """Random bytes of an episode's name, which is all that an agent needs to act in it."""
    advice: str = "POST /reset begins one"
    """Advice to a client whose episode is unknown."""


@dataclass
class _Slot(Generic[EpisodeT]):
    """Place of an episode; with a store, it may be out of memory."""

    episode: EpisodeT | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)
    touched: float = field(default_factory=time.monotonic)
    n_requests: int = 0
    """Requests that hold it or wait for it."""


class EpisodeTable(Closable, Generic[EpisodeT, RequestT, ActionT, AnswerT, ScoreT]):
    """Episodes by name. Threads may share it.

    Args:
        player: player of the episodes.
        limits: limits of number, time and concurrency.
        store: store that keeps episodes beyond the process; None for episodes that end with it.
    """

    def __init__(
        self,
        player: EpisodePlayer[EpisodeT, RequestT, ActionT, AnswerT, ScoreT],
        limits: EpisodeLimits,
        store: EpisodeStore[EpisodeT] | None = None,
    ) -> None:
        self.limits = limits
        self._player = player
        self._store = store
        self._slots: dict[str, _Slot[EpisodeT]] = {}
        self._n_opening = 0
        self._lock = threading.Lock()

    def count_open(self) -> int:
        """Return the number of open episodes."""
        with self._lock:
            return self._count_open()

    def reset(self, request: RequestT, name: str | None = None) -> EpisodeT:
        """Open an episode.

        Args:
            request: request with which the player begins the episode.
            name: name of the episode, which another episode loses; None for a random one.

        Raises:
            RefusedRequestError: too many are open, or the player refuses the request.
        """
        name = name or secrets.token_hex(self.limits.name_bytes)
        # The episode of this name ends first, so that its place is free for its successor.
        self.close_episode(name, missing_ok=True)
        with self._reserve():
            episode = self._player.open(request, name)
            if self._store is not None:
                self._store.add(episode)
            with self._lock:
                replaced = self._slots.pop(name, None)
                self._slots[name] = _Slot(episode)
                self._drop_excess()
        # Two requests may open an episode of the same name at once; the later request replaces the episode of the
        # earlier.
        if replaced is not None:
            self._close(replaced)
        return episode

    def step(self, name: str, action: ActionT, number: int | None = None) -> AnswerT:
        """Take an action, and return the answer to it.

        Args:
            name: name of the episode.
            action: the action.
            number: number of the action in the episode; None for the next one.

        Raises:
            RefusedRequestError: there is no such episode, or it is busy.
            ConflictError: the number does not follow, or the episode has ended.
        """
        with self.hold(name) as episode:
            return self.take(episode, action, number)

    def take(self, episode: EpisodeT, action: ActionT, number: int | None = None) -> AnswerT:
        """Take an action in an episode that the caller holds; errors as in `step`."""
        if number is not None and number != episode.next_number:
            return self._player.repeat(episode, action, number)
        if episode.has_ended:
            return self._player.answer_ended(episode)
        answer = self._player.step(episode, action)
        self._save(episode)
        return answer

    def evaluate(self, name: str) -> ScoreT:
        """Return the score of an episode as it stands; errors as in `step`."""
        with self.hold(name) as episode:
            score = self._player.evaluate(episode)
            self._save(episode)
            return score

    @contextmanager
    def hold(self, name: str) -> Iterator[EpisodeT]:
        """Hold an episode for one request. With a store, an episode that a failed request changed is read again.

        Raises:
            RefusedRequestError: there is none of that name.
            ConflictError: another request holds it, and requests don't wait.
            Transient: its container or process is gone.
        """
        slot = self._enter(name)
        try:
            if not slot.lock.acquire(blocking=self.limits.waits):
                raise ConflictError(f"the episode {name} is busy with another request")
            try:
                episode = self._load(name, slot)
                with self._watch(slot, episode):
                    yield episode
            finally:
                slot.touched = time.monotonic()
                slot.lock.release()
        finally:
            self._leave(name, slot)

    def touch(self, name: str) -> EpisodeT:
        """Return an episode of a table without a store, which counts as a use of it.

        Raises:
            RefusedRequestError: there is none of that name.
            Transient: its container or process is gone.
        """
        with self._lock:
            slot = self._slots.get(name)
        if slot is None or slot.episode is None:
            raise self._make_unknown(name)
        self._player.check(slot.episode)
        slot.touched = time.monotonic()
        return slot.episode

    def close_episode(self, name: str, *, missing_ok: bool = False) -> None:
        """End an episode and forget it.

        Raises:
            RefusedRequestError: there is none of that name.
        """
        with self._lock:
            slot = self._slots.pop(name, None)
        if slot is not None:
            self._close(slot)
        elif not missing_ok:
            raise self._make_unknown(name)

    def close_idle(self) -> int:
        """Close the episodes that nobody has touched for long, forget ended ones above the limit; return how many."""
        if self.limits.idle_seconds is None:
            return 0
        latest = time.monotonic() - self.limits.idle_seconds
        with self._lock:
            ended = sorted((slot.touched, name) for name, slot in self._slots.items() if not _is_open(slot))
            n_dropped = 0 if self.limits.most_open is None else max(0, len(ended) - self.limits.most_open)
            dropped = {name for _, name in ended[:n_dropped]}
            idle = {
                name: slot
                for name, slot in self._slots.items()
                if not slot.lock.locked() and (slot.touched < latest or name in dropped)
            }
            for name in idle:
                del self._slots[name]
        # Closed without the lock, so that the other episodes can be used in the meantime.
        for slot in idle.values():
            self._close(slot)
        return len(idle)

    def close(self) -> None:
        """Forget all episodes. Open episodes are not closed singly, as the place where they run is closed."""
        with self._lock:
            self._slots.clear()

    # ------------------------------------------------------------------------------------------------ slots

    def _count_open(self) -> int:
        return sum(_is_open(slot) for slot in self._slots.values())

    @contextmanager
    def _reserve(self) -> Iterator[None]:
        """Keep a place for an episode while it is opened."""
        most = self.limits.most_open
        with self._lock:
            if most is not None and self._n_opening + self._count_open() >= most:
                raise RefusedRequestError(
                    f"{most} episodes are open", status=429, advice="close some, or start with more --episodes"
                )
            # Opening happens outside the lock and takes long, so the place is counted from here on.
            self._n_opening += 1
        try:
            yield
        finally:
            with self._lock:
                self._n_opening -= 1

    def _enter(self, name: str) -> _Slot[EpisodeT]:
        """Return the slot of an episode, which stays until `_leave`."""
        if self._store is None:
            self.touch(name)
        with self._lock:
            slot = self._slots.get(name)
            if slot is None:
                if self._store is None:
                    raise self._make_unknown(name)
                # Loaded by the request that holds the slot, so that a slow store delays only this episode.
                slot = self._slots[name] = _Slot()
            slot.n_requests += 1
            return slot

    def _leave(self, name: str, slot: _Slot[EpisodeT]) -> None:
        """Keep the slot as the newest one; with a store, drop those that need not stay in memory."""
        with self._lock:
            slot.n_requests -= 1
            # A slot that was closed or replaced in the meantime must not come back.
            if self._store is None or self._slots.get(name) is not slot:
                return
            # The slots are in the order of their last use, on which `_drop_excess` relies.
            del self._slots[name]
            if slot.n_requests or _is_open(slot):
                self._slots[name] = slot
                self._drop_excess()

    def _drop_excess(self) -> None:
        """Drop from memory the episodes that were used least recently, as far as no request holds it."""
        if self._store is None or self.limits.most_kept is None:
            return
        excess = len(self._slots) - self.limits.most_kept
        unused = [name for name, slot in self._slots.items() if not slot.n_requests] if excess > 0 else []
        for name in unused[: max(excess, 0)]:
            del self._slots[name]

    def _load(self, name: str, slot: _Slot[EpisodeT]) -> EpisodeT:
        """Return the episode of a slot that is locked."""
        if slot.episode is None and self._store is not None:
            slot.episode = self._store.load(name)
        if slot.episode is None:
            raise self._make_unknown(name)
        return slot.episode

    @contextmanager
    def _watch(self, slot: _Slot[EpisodeT], episode: EpisodeT) -> Iterator[None]:
        """Watch a request about an episode fail: with a store, what it changed is forgotten."""
        try:
            yield
        except BaseException as error:
            # A conflict is raised before anything is changed, so the episode in memory is still that of the store.
            if self._store is not None and not isinstance(error, ConflictError):
                slot.episode = None
            if isinstance(error, MergemillError):
                self._player.check(episode)
            raise

    def _save(self, episode: EpisodeT) -> None:
        if self._store is not None:
            self._store.save(episode)

    def _close(self, slot: _Slot[EpisodeT]) -> None:
        if slot.episode is not None:
            self._player.close(slot.episode)

    def _make_unknown(self, name: str) -> RefusedRequestError:
        return RefusedRequestError(f"there is no episode {name}", status=404, advice=self.limits.advice)


def _is_open(slot: _Slot[EpisodeT]) -> bool:
    return slot.episode is not None and slot.episode.is_open
