"""Crawl the emulator through real HTTP and real git."""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, cast

from backends.clones import CloneStore
from backends.services import Services
from core.config import Settings
from miner.changes import Change
from miner.github.api import GitHubApi
from miner.github.pool import SystemClock
from miner.github.reader import GitHubReader
from taskdb.artifacts import Artifacts
from taskdb.records import PullRequest
from taskdb.records.discussion import Discussion
from tests.github import GitHub

if TYPE_CHECKING:
    from backends.sandbox.base import Sandbox


class EmulatorClock(SystemClock):
    """The emulator's clock, which waiting advances: limits cost no test time."""

    def __init__(self, hub: GitHub) -> None:
        self.hub = hub

    def now(self) -> float:
        return self.hub.clock.now()

    def wait(self, changed: threading.Condition, seconds: float) -> None:
        self.hub.clock.advance(seconds)


class EmulatorMiner:
    """Miner of one emulator into one store."""

    def __init__(self, hub: GitHub, folder: Path) -> None:
        self.hub = hub
        self.folder = folder
        self.messages: list[str] = []

    def open_services(self, **options: object) -> Services:
        settings = Settings.model_validate(
            {"store": self.folder / "store", "github_api": self.hub.url, "github_tokens": "ghp_reader"} | options
        )
        return Services(
            settings=settings,
            sandbox=cast("Sandbox", None),
            clones=CloneStore(
                settings.storage.store_dir / "clones", settings.source.clones, attempts=6, first_wait=0.01
            ),
            artifacts=Artifacts(settings.storage.store_dir / "artifacts"),
        )

    def read_changes(self, source: str = "github:ada/lib", most: int | None = None, **options: object) -> list[Change]:
        """Return the changes of a source, the first `most` of them."""
        services, changes = self.open_services(**options), list[Change]()
        self.messages.clear()
        api = GitHubApi(
            services.settings.github, services.settings.host, clock=EmulatorClock(self.hub), first_pause=0.01
        )
        with api, closing(GitHubReader(source, services, api)) as reading:
            for change in reading.read_changes():
                if not isinstance(change, Change):
                    self.messages.append(str(change))
                    continue
                changes.append(change)
                if len(changes) == most:
                    break
        return changes

    def read_pulls(
        self, source: str = "github:ada/lib", most: int | None = None, **options: object
    ) -> list[PullRequest]:
        return [change.pull_request for change in self.read_changes(source, most, **options)]

    def read_discussion(self, pull: PullRequest) -> Discussion:
        assert pull.discussion
        text = self.open_services().artifacts.get_text(pull.discussion)
        return Discussion.model_validate_json(text)

    def count_requests(self) -> Counter[str]:
        """Count the requests of each kind since the last call, and the `points` they cost."""
        counted = Counter(line.kind for line in self.hub.requests)
        counted["points"] = sum(line.points for line in self.hub.list_requests("graphql"))
        self.hub.requests.clear()
        return counted


def dump_changes(changes: list[Change]) -> list[str]:
    """Return all fields of the changes, for comparison byte for byte."""
    return [
        f"{change.pull_request.model_dump_json()} {change.source_rejection} {[tuple(file) for file in change.files]}"
        for change in changes
    ]
