"""Serves the crates' index as it was on a day, from the one that cargo read last. Runs in a box, on its own.

    python3 - DAY CARGO_HOME < dated_index.py      writes the port to CARGO_HOME/port and serves until it is killed

Versions whose `pubtime` is DAY or later are left out; where the index tells no times nothing is. When a version was
withdrawn ("yanked") nobody tells: where that is true of all that were there of a major version, the newest of them is
given as if it were not, for a project that asked for it on that day got it. cargo's folder of the index says which host
it is from, and its cache holds what it has read already.
"""

import json
import pathlib
import sys
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

day, home = sys.argv[1], pathlib.Path(sys.argv[2])
index = next(path for path in (home / "registry" / "index").iterdir() if (path / "config.json").is_file())
host = index.name.rpartition("-")[0]


def lines(name: str) -> "list[bytes]":
    """The JSON lines of a crate, cached or fetched."""
    cached = index / ".cache" / name
    if cached.is_file():
        return [part for part in cached.read_bytes().split(b"\0") if part.startswith(b"{")]
    with urllib.request.urlopen(f"https://{host}/{name}", timeout=60) as answer:
        return list(answer.read().splitlines())


def of_the_day(all_lines: "list[bytes]") -> "list[bytes]":
    """Those that were there, in their order."""
    found = [line for line in all_lines if json.loads(line).get("pubtime", "")[:10] < day]
    kept: dict[str, int] = {}  # what is compatible -> place of its newest that counts
    withdrawn: dict[str, int] = {}
    for place, line in enumerate(found):
        version = json.loads(line)
        kind = major(version["vers"])
        (withdrawn if version.get("yanked") else kept)[kind] = place
    for kind in set(withdrawn) - set(kept):
        version = json.loads(found[withdrawn[kind]])
        found[withdrawn[kind]] = json.dumps({**version, "yanked": False}, separators=(",", ":")).encode()
    return found


def major(version: str) -> str:
    """What cargo takes for compatible: 1 of 1.2.3, 0.2 of 0.2.3, 0.0.3; what is before a release stands by itself."""
    release, _, before = version.partition("+")[0].partition("-")
    parts = release.split(".")
    zeros = next((n for n, part in enumerate(parts) if part != "0"), len(parts) - 1)
    return ".".join(parts[: zeros + 1]) if not before else version


class Handler(BaseHTTPRequestHandler):
    """Answers with the lines of the day."""

    def do_GET(self) -> None:
        """One file of the index."""
        try:
            name = self.path.lstrip("/")
            if name == "config.json":
                body = (index / "config.json").read_bytes()
            else:
                body = b"\n".join(of_the_day(lines(name)))
            self.send_response(200 if body else 404)
        except OSError as error:
            body = b""
            self.send_response(int(getattr(error, "code", 502)))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing."""


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
(home / "port").write_text(str(server.server_port))
server.serve_forever()
