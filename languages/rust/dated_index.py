"""Serve the crate index as of a given day, from the index that cargo read last. Runs in a container, stand-alone.

    python3 - DAY CARGO_HOME < dated_index.py      writes the port to CARGO_HOME/port and serves until it is killed

Versions with a `pubtime` on or after DAY are hidden; versions without `pubtime` are kept. The index does not record
when a version was withdrawn ("yanked"): if all versions of a compatibility range that existed on DAY are yanked, the
newest of them is served as available, because a project could resolve to it on that day. The name of cargo's index
folder contains the index host; the cache in it contains the files already read.
"""

import json
import pathlib
import sys
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

day, home = sys.argv[1], pathlib.Path(sys.argv[2])
index = next(path for path in (home / "registry" / "index").iterdir() if (path / "config.json").is_file())
host = index.name.rpartition("-")[0]


def read_lines(name: str) -> "list[bytes]":
    """Return the JSON lines of a crate, from the cache or the network."""
    cached = index / ".cache" / name
    if cached.is_file():
        return [part for part in cached.read_bytes().split(b"\0") if part.startswith(b"{")]
    with urllib.request.urlopen(f"https://{host}/{name}", timeout=60) as answer:
        return list(answer.read().splitlines())


def filter_by_date(all_lines: "list[bytes]") -> "list[bytes]":
    """Return the lines of versions published before the day, in order."""
    found = [line for line in all_lines if json.loads(line).get("pubtime", "")[:10] < day]
    kept: dict[str, int] = {}  # compatibility range -> position of its newest available version
    withdrawn: dict[str, int] = {}
    for place, line in enumerate(found):
        version = json.loads(line)
        kind = compatibility_key(version["vers"])
        (withdrawn if version.get("yanked") else kept)[kind] = place
    for kind in set(withdrawn) - set(kept):
        version = json.loads(found[withdrawn[kind]])
        found[withdrawn[kind]] = json.dumps({**version, "yanked": False}, separators=(",", ":")).encode()
    return found


def compatibility_key(version: str) -> str:
    """Return cargo's compatibility range: 1 of 1.2.3, 0.2 of 0.2.3, 0.0.3; a pre-release is its own range."""
    release, _, before = version.partition("+")[0].partition("-")
    parts = release.split(".")
    zeros = next((n for n, part in enumerate(parts) if part != "0"), len(parts) - 1)
    return ".".join(parts[: zeros + 1]) if not before else version


class CrateIndexHandler(BaseHTTPRequestHandler):
    """Serves the filtered lines."""

    def do_GET(self) -> None:
        """Serve one file of the index."""
        try:
            name = self.path.lstrip("/")
            if name == "config.json":
                body = (index / "config.json").read_bytes()
            else:
                body = b"\n".join(filter_by_date(read_lines(name)))
            self.send_response(200 if body else 404)
        except OSError as error:
            body = b""
            self.send_response(int(getattr(error, "code", 502)))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


server = ThreadingHTTPServer(("127.0.0.1", 0), CrateIndexHandler)
(home / "port").write_text(str(server.server_port))
server.serve_forever()
