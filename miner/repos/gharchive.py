"""Dumps of GH Archive: who was busy in an hour. Good for finding repositories, never for their content.

A dump holds one event a line, gzipped. Pull requests came with their whole payload until September 2025, since then
with id, number and branches alone, so language and stars are known from older dumps alone.
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

from mergemill.errors import InputError
from miner.repos.facts import Facts

_BOT = re.compile(r"\[bot\]$|-bot$|^dependabot|^renovate", re.IGNORECASE)


@dataclass(slots=True)
class _Seen:
    name: str = ""
    at: str = ""
    merged: set[int] = field(default_factory=set)
    people: set[str] = field(default_factory=set)
    base: dict[str, Any] = field(default_factory=dict)


def facts_of_dumps(paths: Iterable[Path]) -> Iterator[Facts | InputError]:
    """What dumps tell of each repository with pull-request events, busiest first; and what in them cannot be read.

    A repository is known by its number: one that was renamed between two dumps has its newest name.

    Args:
        paths: files `*.json.gz` or `*.json`.

    Yields:
        The unreadable lines (one error a file, with the first line's number) and files, then the facts.
    """
    seen: dict[int, _Seen] = {}
    for path in paths:
        if fault := _read(path, seen):
            yield fault
    for found in sorted(seen.values(), key=lambda it: (-len(it.merged), -len(it.people), it.name)):
        yield _facts(found)


def _read(path: Path, seen: dict[int, _Seen]) -> InputError | None:
    wrong: list[int] = []
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                # Most events are none of ours, and json is the dear part.
                if b'"PullRequest' not in line:
                    continue
                try:
                    _count(json.loads(line), seen)
                except (ValueError, KeyError, TypeError, AttributeError):
                    wrong.append(number)
    except (OSError, EOFError, zlib.error) as error:
        return InputError(f"cannot read the dump {path} to its end: {error}", advice="download it again")
    if wrong:
        return InputError(f"{path}:{wrong[0]}: not an event; {len(wrong)} such lines were left out")
    return None


def _count(event: dict[str, Any], seen: dict[int, _Seen]) -> None:
    if not event["type"].startswith("PullRequest"):
        return
    repo, at, actor = event["repo"], event["created_at"], event["actor"]["login"]
    found = seen.setdefault(int(repo["id"]), _Seen())
    if at >= found.at:
        found.name, found.at = repo["name"], at
    if not _BOT.search(actor):
        found.people.add(actor)
    if event["type"] != "PullRequestEvent":
        return
    payload = event["payload"]
    request = payload["pull_request"]
    # Since October 2025 the action itself says so; before, a closed one may be merged.
    if payload["action"] == "merged" or (payload["action"] == "closed" and request.get("merged")):
        found.merged.add(int(request["number"]))
    if base := (request.get("base") or {}).get("repo"):
        found.base = base


def _facts(found: _Seen) -> Facts:
    base = found.base
    spdx = (base.get("license") or {}).get("spdx_id") if base else None
    return Facts(
        repo=found.name, source=f"github:{found.name}", merged=len(found.merged), people=len(found.people),
        pushed_at=found.at or None, language=base["language"].lower() if base.get("language") else None,
        kilobytes=base.get("size"), stars=base.get("stargazers_count"), archived=base.get("archived"), license=spdx,
    )  # fmt: skip
