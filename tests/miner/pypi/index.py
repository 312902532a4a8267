"""A package index on a local port: PEP 691 JSON and the files."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Content = str | bytes | tarfile.TarInfo


def build_archive(top: str, files: Mapping[str, Content], *, plain: bool = False) -> bytes:
    """Build a .tar.gz with one top folder; `plain` uses the names unchanged."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz") as tar:
        for name, content in files.items():
            if isinstance(content, tarfile.TarInfo):
                info, data = content, b""
            else:
                data = content.encode() if isinstance(content, str) else content
                info = tarfile.TarInfo()
                info.size = len(data)
                info.mode = 0o755 if name.endswith(".sh") else 0o644
            info.name = name if plain else f"{top}/{name}"
            tar.addfile(info, io.BytesIO(data))
    return raw.getvalue()


@dataclass
class LocalIndex:
    """Contents of the index, and the requests it received."""

    url: str = ""
    pages: dict[str, list[dict[str, object]]] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    requested_paths: list[str] = field(default_factory=list)
    failures: int = 0
    """How many requests to answer with 503 first."""

    def add_release(self, name: str, version: str, day: str, files: Mapping[str, Content], **more: object) -> None:
        filename = f"{name}-{version}.tar.gz"
        self.add(name, filename, day, build_archive(f"{name}-{version}", files), **more)

    def add(self, name: str, filename: str, day: str, content: bytes, **more: object) -> None:
        self.files[filename] = content
        self.pages.setdefault(name, []).append(
            {
                "filename": filename,
                "url": f"/files/{filename}",
                "size": len(content),
                "upload-time": f"{day}T12:00:00Z",
                "hashes": {"sha256": hashlib.sha256(content).hexdigest()},
                "yanked": False,
                **more,
            }
        )

    def answer(self, path: str) -> tuple[int, str, bytes]:
        self.requested_paths.append(path)
        if self.failures:
            self.failures -= 1
            return 503, "text/plain", b"later"
        last = path.rstrip("/").rpartition("/")[2]
        if path.startswith("/files/") and last in self.files:
            return 200, "application/octet-stream", self.files[last]
        if path.startswith("/simple/") and last in self.pages:
            page = {"meta": {"api-version": "1.1"}, "name": last, "versions": [], "files": self.pages[last]}
            return 200, "application/vnd.pypi.simple.v1+json", json.dumps(page).encode()
        return 404, "text/plain", b"no such thing"

    def downloads(self) -> list[str]:
        return [path.rpartition("/")[2] for path in self.requested_paths if path.startswith("/files/")]


@contextmanager
def run_index() -> Iterator[LocalIndex]:
    """Run an index on a free port."""
    index = LocalIndex()

    class IndexHandler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, kind, body = index.answer(self.path)
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), IndexHandler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    index.url = f"http://127.0.0.1:{server.server_port}/simple/"
    try:
        yield index
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
