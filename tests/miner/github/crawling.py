"""A crawl of the emulator in one word, through real HTTP and real git."""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, cast

from backends.clones import Clones
from backends.services import Services
from mergemill.config import Settings
from miner.changes import Change
from miner.github.api import Api
from miner.github.pool import Clock
from miner.github.reading import Reading
from taskdb.artifacts import Artifacts
from taskdb.discussion import Discussion
from taskdb.records import PullRequest
from tests.github import GitHub

if TYPE_CHECKING:
    from backends.sandbox.base import Sandbox


class Jumping(Clock):
    """The emulator's own clock, which a wait puts forward: no limit costs a test time."""

    def __init__(self, hub: GitHub) -> None:
        self.hub = hub

    def now(self) -> float:
        return self.hub.clock.now()

    def wait(self, changed: threading.Condition, seconds: float) -> None:
        self.hub.clock.advance(seconds)


class Miner:
    """Mines one emulator into one store."""

    def __init__(self, hub: GitHub, folder: Path) -> None:
        self.hub = hub
        self.folder = folder
        self.said: list[str] = []

    def services(self, **options: object) -> Services:
        settings = Settings.model_validate(
            {"store": self.folder / "store", "github_api": self.hub.url, "github_tokens": "ghp_reader"} | options
        )
        return Services(
            settings=settings,
            sandbox=cast("Sandbox", None),
            clones=Clones(settings.store_dir / "clones", settings.clones, attempts=6, first_wait=0.01),
            artifacts=Artifacts(settings.store_dir / "artifacts"),
        )

    def changes(self, source: str = "github:ada/lib", most: int | None = None, **options: object) -> list[Change]:
        """The changes of a source, the first `most` of them."""
        services, found = self.services(**options), list[Change]()
        self.said.clear()
        api = Api(services.settings, clock=Jumping(self.hub), first_pause=0.01)
        with api, closing(Reading(source, services, api)) as reading:
            for change in reading.changes():
                if not isinstance(change, Change):
                    self.said.append(str(change))
                    continue
                found.append(change)
                if len(found) == most:
                    break
        return found

    def pulls(self, source: str = "github:ada/lib", most: int | None = None, **options: object) -> list[PullRequest]:
        return [change.pull_request for change in self.changes(source, most, **options)]

    def discussion(self, pull: PullRequest) -> Discussion:
        assert pull.discussion
        text = self.services().artifacts.text(pull.discussion)
        return Discussion.model_validate_json(text)

    def asked(self) -> Counter[str]:
        """How many requests of each kind the emulator got since this was asked last, and the `points` they cost."""
        counted = Counter(line.kind for line in self.hub.requests)
        counted["points"] = sum(line.points for line in self.hub.asked("graphql"))
        self.hub.requests.clear()
        return counted


def dumped(changes: list[Change]) -> list[str]:
    """Everything that was found, byte for byte."""
    return [
        f"{change.pull_request.model_dump_json()} {change.settled} {[tuple(file) for file in change.files]}"
        for change in changes
    ]
