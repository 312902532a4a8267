"""Facts from dumps of GH Archive: activity by the hour. Used to find repositories, never for their content.

A dump holds an event a line, gzipped. Pull requests had their whole payload until September 2025, and since then only
id, number and branches; language and stars are therefore known from older dumps only.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from core.errors import InputError
from core.files import open_input
from miner.repos.facts import RepositoryFacts

_BOT = re.compile(r"\[bot\]$|-bot$|^dependabot|^renovate", re.IGNORECASE)


@dataclass(slots=True)
class _EventCounts:
    name: str = ""
    last_event_at: str = ""
    merged: set[int] = field(default_factory=set)
    people: set[str] = field(default_factory=set)
    base: dict[str, Any] = field(default_factory=dict)


def read_dump_facts(paths: Iterable[Path]) -> Iterator[RepositoryFacts | InputError]:
    """Yield facts about each repository with pull-request events, busiest first, and an error per unreadable part.

    A repository is identified by its id: a repository that was renamed between two dumps has its newest name.

    Args:
        paths: files `*.json.gz` or `*.json`.

    Yields:
        The unreadable lines (an error a file, with the first line's number) and files, then the facts.
    """
    seen: dict[int, _EventCounts] = {}
    for path in paths:
        if error := _read_dump(path, seen):
            yield error
    for counts in sorted(seen.values(), key=lambda it: (-len(it.merged), -len(it.people), it.name)):
        yield _build_facts(counts)


def _read_dump(path: Path, seen: dict[int, _EventCounts]) -> InputError | None:
    wrong: list[int] = []
    try:
        with open_input(path) as raw, gzip.open(raw) if path.suffix == ".gz" else raw as lines:
            for number, line in enumerate(lines, 1):
                # Most events are of other types, and parsing JSON is the expensive part.
                if b'"PullRequest' not in line:
                    continue
                try:
                    _count_event(json.loads(line), seen)
                except (ValueError, KeyError, TypeError, AttributeError):
                    wrong.append(number)
    except InputError as error:
        return error
    except (OSError, EOFError, zlib.error) as error:
        return InputError(f"cannot read the dump {path} to its end: {error}", advice="download it again")
    if wrong:
        return InputError(f"{path}:{wrong[0]}: not an event; {len(wrong)} such lines were left out")
    return None


def _count_event(event: dict[str, Any], seen: dict[int, _EventCounts]) -> None:
    if not event["type"].startswith("PullRequest"):
        return
    repo, at, actor = event["repo"], event["created_at"], event["actor"]["login"]
    counts = seen.setdefault(int(repo["id"]), _EventCounts())
    if at >= counts.last_event_at:
        counts.name, counts.last_event_at = repo["name"], at
    if not _BOT.search(actor):
        counts.people.add(actor)
    if event["type"] != "PullRequestEvent":
        return
    payload = event["payload"]
    request = payload["pull_request"]
    # Since October 2025 the action itself is `merged`; before, a closed pull request may be merged.
    if payload["action"] == "merged" or (payload["action"] == "closed" and request.get("merged")):
        counts.merged.add(int(request["number"]))
    if base := (request.get("base") or {}).get("repo"):
        counts.base = base


def _build_facts(counts: _EventCounts) -> RepositoryFacts:
    base = counts.base
    spdx = (base.get("license") or {}).get("spdx_id") if base else None
    return RepositoryFacts(
        repo=counts.name,
        source=f"github:{counts.name}",
        merged=len(counts.merged),
        contributors=len(counts.people),
        pushed_at=counts.last_event_at or None,
        language=base["language"].lower() if base.get("language") else None,
        kilobytes=base.get("size"),
        stars=base.get("stargazers_count"),
        archived=base.get("archived"),
        license=spdx,
    )
