"""Folder of a server's episodes: `episodes/ID.json` each, and `index.jsonl` with a line for each reset."""

from __future__ import annotations

import json
import os
import re
import threading
from collections import Counter
from pathlib import Path
from typing import Any

from core.errors import InputError, make_write_error
from simulators.environment.episode import KIND, SimulatedEpisode

INDEX_NAME = "index.jsonl"
EPISODES_NAME = "episodes"
_ID = re.compile(r"[0-9a-f]{32}")


class EpisodeFolder:
    """Episodes on the disk. Threads may share it; a ledger's lock keeps other processes away."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._resets = Counter[str]()
        self.n_episodes = 0
        for line in self._read_index():
            self._resets[line["env_id"]] = max(self._resets[line["env_id"]], line["episode"] + 1)
            self.n_episodes += 1

    def count_resets(self, env_id: str) -> int:
        """Return the number of the next episode of an environment, from 0."""
        with self._lock:
            return self._resets[env_id]

    def add(self, episode: SimulatedEpisode) -> None:
        """Keep a new episode; it is on the disk when this returns.

        Raises:
            InputError, Transient: it cannot be written.
        """
        self.save(episode)
        names = ("id", "env_id", "group", "episode", "sample_index", "sample", "created_at")
        line = json.dumps({name: getattr(episode, name) for name in names}).encode() + b"\n"
        with self._lock:
            self._resets[episode.env_id] = max(self._resets[episode.env_id], episode.episode + 1)
            self.n_episodes += 1
            try:
                with (self._folder / INDEX_NAME).open("ab") as index:
                    index.write(line)
                    index.flush()
                    os.fsync(index.fileno())
            except OSError as error:
                raise make_write_error(f"cannot write to {self._folder}", error, advice="free some space") from error

    def save(self, episode: SimulatedEpisode) -> None:
        """Replace the record of an episode.

        Raises:
            InputError, Transient: it cannot be written.
        """
        path = self._find(episode.id)
        content = json.dumps(episode.to_json(), ensure_ascii=False).encode(errors="replace")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary = path.with_suffix(".part")
            with temporary.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except OSError as error:
            raise make_write_error(f"cannot write to {self._folder}", error, advice="free some space") from error

    def load(self, episode_id: str) -> SimulatedEpisode | None:
        """Return an episode, None where there is none of this id."""
        if not _ID.fullmatch(episode_id):
            return None
        try:
            content = json.loads(self._find(episode_id).read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise InputError(f"cannot read the episode {episode_id}: {error}") from error
        return SimulatedEpisode.from_json(content) if content.get("kind") == KIND else None

    def _find(self, episode_id: str) -> Path:
        return self._folder / EPISODES_NAME / f"{episode_id}.json"

    def _read_index(self) -> list[dict[str, Any]]:
        """Return the lines of the index; a line that a kill cut is cut off."""
        path = self._folder / INDEX_NAME
        if not path.exists():
            return []
        content = path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        if whole != content:
            path.write_bytes(whole)
        return [json.loads(line) for line in whole.splitlines()]
