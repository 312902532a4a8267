"""Program that runs in a container for each command, and the input that it is sent.

A Bash script serves all: it reads a request from its stdin, writes files, runs a program and returns files. Its
stdout carries a report and the files alone; the program's stdout and stderr both go to stderr. A request is a line of
numbers, then words that end in a zero byte, then a tar.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO

from backends.sandbox import archive
from backends.sandbox.execution import ResourceLimits
from backends.sandbox.pool import END_MARK

OPEN_FILES = 4096
_READ_REQUEST = """
unset "${!KUBERNETES_@}"
[ -z "$0" ] || printf %s "$0" > /etc/hosts
read -r words paths bytes blocks || exit 125
mapfile -d '' -n $((2 + words + paths)) -t request
mkdir -p -- "${request[1]}" && head -c "$bytes" | tar -x -C "${request[1]}" || exit 125
cd -- "${request[0]:-.}" || exit 125
limit() { ulimit -c 0; ulimit -n FILES; ulimit -f "$blocks"; } 2>/dev/null
""".replace("FILES", str(OPEN_FILES))
_RUN = """
count_kills() {
    kills=0
    for file in /sys/fs/cgroup/memory/memory.oom_control /sys/fs/cgroup/memory.events; do
        if [ -r "$file" ]; then while read -r key value; do [ "$key" != oom_kill ] || kills=$value; done < "$file"; fi
    done
}
count_kills
before=$kills
(limit; exec "${request[@]:2:words}") < /dev/null >&2
code=$?
END
count_kills
printf '%d %d\\n' "$code" $((kills - before))
found=()
for path in "${request[@]:2+words}"; do
    if [ -f "$path" ] && [ ! -L "$path" ] && [ "$(stat -c %s -- "$path")" -le MAX ]; then found+=("${path#/}"); fi
done
[ ${#found[@]} -eq 0 ] || tar -c -C / -- "${found[@]}"
printf MARK
""".replace("MAX", str(archive.MAX_FILE_BYTES)).replace("MARK", END_MARK.decode())
RUN_SCRIPT = _READ_REQUEST + _RUN.replace("END", "kill -KILL -- -1")
"""Runs the only command of a container: all of its processes end with it."""
STEP_SCRIPT = _READ_REQUEST + _RUN.replace("END\n", "")
"""Runs any of several commands; its background processes stay."""
PROCESS_SCRIPT = _READ_REQUEST + '\nlimit\nexec "${request[@]:2:words}"\n'
"""Becomes a program, whose stdin is the rest of this program's."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """A program to run.

    `words` are program and arguments, `collect` the paths to return. `tar` is unpacked in the folder `root` first: its
    bytes, or a file that is read from where it stands.
    """

    words: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)
    tar: bytes | IO[bytes] = b""
    collect: Sequence[str] = ()
    root: str = "/"
    workdir: str = ""

    def encode(self, limits: ResourceLimits) -> Iterator[bytes]:
        """Yield the request as the script reads it."""
        words = ["env", *(f"{name}={value}" for name, value in self.env.items()), *self.words]
        blocks = math.ceil(limits.disk_bytes / 1024)
        tar = io.BytesIO(self.tar or archive.build_tar({})) if isinstance(self.tar, bytes) else self.tar
        begin = tar.tell()
        size = tar.seek(0, io.SEEK_END) - begin
        tar.seek(begin)
        head = f"{len(words)} {len(self.collect)} {size} {blocks}\n"
        body = "".join(f"{word}\0" for word in [self.workdir, self.root, *words, *self.collect])
        yield head.encode() + body.encode(errors="surrogateescape")
        yield from archive.read_chunks(tar)


@dataclass(frozen=True, kw_only=True)
class Report:
    """End of a program: its exit code, processes that the kernel ended for lack of memory, and collected files."""

    exit_code: int
    memory_kills: int
    files: Mapping[str, bytes]


def parse_report(stdout: bytes, collect: Sequence[str]) -> Report | None:
    """Return the report in the script's stdout; None where it is not complete."""
    line, _, tar = stdout.partition(b"\n")
    words = line.split()
    if not tar.endswith(END_MARK) or len(words) != 2 or not all(word.isdigit() for word in words):
        return None
    files = archive.extract_files(tar[: -len(END_MARK)])
    chosen = {path: files[path] for path in collect if path in files}
    return Report(exit_code=int(words[0]), memory_kills=int(words[1]), files=chosen)
