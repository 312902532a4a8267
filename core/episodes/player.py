"""Protocols of episodes: their environment, their player for a table, and a store where they outlive the process."""

from __future__ import annotations

from typing import Protocol, TypeVar


class TableEpisode(Protocol):
    """State of an episode that a table reads. It is changed by one request at a time."""

    @property
    def id(self) -> str:
        """Its name in requests."""
        ...

    @property
    def is_open(self) -> bool:
        """Whether it holds resources, and counts against the limit of open episodes."""
        ...

    @property
    def has_ended(self) -> bool:
        """Whether no further action is possible."""
        ...

    @property
    def next_number(self) -> int:
        """Number of the action that comes next."""
        ...


AnyEpisodeT = TypeVar("AnyEpisodeT")
EpisodeT = TypeVar("EpisodeT", bound=TableEpisode)
RequestT_contra = TypeVar("RequestT_contra", contravariant=True)
ActionT_contra = TypeVar("ActionT_contra", contravariant=True)
AnswerT_co = TypeVar("AnswerT_co", covariant=True)
ScoreT_co = TypeVar("ScoreT_co", covariant=True)


class EpisodeEnvironment(Protocol[AnyEpisodeT, RequestT_contra, ScoreT_co]):
    """Environment of episodes of a kind, whose agents act in it by themselves.

    Threads may share it; it remembers nothing of an episode outside of the episode.
    """

    def open(self, request: RequestT_contra, name: str) -> AnyEpisodeT:
        """Return a new episode.

        Args:
            request: request that begins the episode.
            name: `id` of the episode.
        """
        ...

    def evaluate(self, episode: AnyEpisodeT) -> ScoreT_co:
        """Return the score of an episode as it stands."""
        ...

    def close(self, episode: AnyEpisodeT) -> None:
        """Release the resources of an episode."""
        ...


class EpisodePlayer(
    EpisodeEnvironment[EpisodeT, RequestT_contra, ScoreT_co],
    Protocol[EpisodeT, RequestT_contra, ActionT_contra, AnswerT_co, ScoreT_co],
):
    """Environment of episodes whose actions are sent by requests, as a table of episodes needs it."""

    def step(self, episode: EpisodeT, action: ActionT_contra) -> AnswerT_co:
        """Take the next action of an episode that has not ended, and return the answer to it.

        An action that raises an error was not taken: it can be sent again.
        """
        ...

    def repeat(self, episode: EpisodeT, action: ActionT_contra, number: int) -> AnswerT_co:
        """Return the answer to an action that was sent before, for a client that did not receive it.

        Args:
            episode: an episode.
            action: the action as it was sent now.
            number: another one than `next_number`.

        Raises:
            ConflictError: no such action was taken, or the answer to it is no longer known.
        """
        ...

    def answer_ended(self, episode: EpisodeT) -> AnswerT_co:
        """Return the answer to an action after the end.

        Raises:
            ConflictError: nothing can be answered.
        """
        ...

    def check(self, episode: EpisodeT) -> None:
        """Raise Transient where the container or process of the episode is gone."""
        ...


class EpisodeStore(Protocol[EpisodeT]):
    """Where episodes are kept after each request that changed them, so that a restarted service continues them."""

    def add(self, episode: EpisodeT) -> None:
        """Keep a new episode."""
        ...

    def save(self, episode: EpisodeT) -> None:
        """Replace the record of an episode."""
        ...

    def load(self, episode_id: str) -> EpisodeT | None:
        """Return an episode; None where there is none of this id."""
        ...
