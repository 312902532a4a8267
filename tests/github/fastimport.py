"""Thousands of commits in seconds: a stream for `git fast-import` into a bare repository."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

ENVIRONMENT = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}
PERSON = "Ada <ada@example.org>"


class FastImportStream:
    """Commits to import. A commit is identified by its mark until `write` returns its id."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._marks = 0

    def commit(
        self,
        message: str,
        when: int,
        files: Mapping[str, bytes | None],
        parents: Sequence[int] = (),
        person: str = PERSON,
    ) -> int:
        """A commit at `when` (seconds since the epoch): the first parent's tree with these files; None deletes one."""
        self._marks += 1
        text = message.encode()
        lines = [
            f"commit refs/heads/fast-import\nmark :{self._marks}\nauthor {person} {when} +0000\n"
            f"committer {person} {when} +0000\ndata {len(text)}\n".encode()
            + text
            + b"\n"
        ]
        if parents:
            lines.append(f"from :{parents[0]}\n".encode())
            lines += [f"merge :{mark}\n".encode() for mark in parents[1:]]
        else:
            lines.append(b"deleteall\n")
        for path, content in files.items():
            if content is None:
                lines.append(f"D {path}\n".encode())
            else:
                lines.append(f"M 100644 inline {path}\ndata {len(content)}\n".encode() + content + b"\n")
        self._parts += lines
        return self._marks

    def write(self, git_dir: Path, refs: Mapping[str, int], head: str = "main") -> dict[int, str]:
        """Write the bare repository with these refs (full names); return the id of each mark."""
        env = os.environ | ENVIRONMENT
        subprocess.run(["git", "init", "-q", "--bare", "-b", head, str(git_dir)], check=True, env=env)
        marks = git_dir / "marks"
        subprocess.run(
            ["git", "fast-import", "--quiet", "--force", f"--export-marks={marks}"],
            cwd=git_dir,
            check=True,
            env=env,
            input=b"".join(self._parts),
            stdout=subprocess.DEVNULL,
        )
        rows = (line.split() for line in marks.read_text().splitlines())
        oids = {int(mark[1:]): oid for mark, oid in rows}
        marks.unlink()
        subprocess.run(["git", "update-ref", "-d", "refs/heads/fast-import"], cwd=git_dir, check=True, env=env)
        packed = "".join(f"{oids[mark]} {name}\n" for name, mark in sorted(refs.items()))
        (git_dir / "packed-refs").write_text(f"# pack-refs with: sorted \n{packed}")
        return oids
