"""A real S3 server (versitygw, which keeps objects as files) on a free port of localhost, and a proxy in front of it.

`python -m tests.s3_server` installs it into the user's cache, as `scripts/test` does: Go builds it, 60 MB.
"""

from __future__ import annotations

import fcntl
import http.client
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import fsspec
import pytest

MODULE = "github.com/versity/versitygw/cmd/versitygw@v1.8.0"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mergemill-tests"
FOLDER = CACHE / "versitygw-1.8.0"
ADVICE = "versitygw is not installed for the tests: python -m tests.s3_server (needs Go 1.21 or newer)"
ROOT = ("root", "not-so-secret-root")
READER = ("reader", "not-so-secret-reader")
"""Access key and secret key: of all rights, and of reading alone."""
BUCKET = "shared"
REGION = "eu-central-1"


def install() -> None:
    """Build the server unless it is there."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "versitygw.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (FOLDER / "versitygw").exists():
            build = {**os.environ, "GOBIN": str(FOLDER), "CGO_ENABLED": "0"}
            subprocess.run(["nice", "-n", "19", "go", "install", MODULE], env=build, check=True)


def find_server() -> str:
    """Return the path of the program; skip the test where it is missing, which fails in CI."""
    program = FOLDER / "versitygw"
    if not program.exists():
        (pytest.fail if os.environ.get("CI") else pytest.skip)(ADVICE)
    return str(program)


@dataclass
class S3Server:
    """A server process with the bucket BUCKET, whose objects are files below `objects`."""

    folder: Path
    port: int = 0
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def objects(self) -> Path:
        return self.folder / "buckets" / BUCKET

    def make_environment(self, keys: tuple[str, str] = ROOT, port: int | None = None) -> dict[str, str]:
        """Return the variables by which AWS's tools find the server; `port`: that of a proxy."""
        return {
            "AWS_ACCESS_KEY_ID": keys[0],
            "AWS_SECRET_ACCESS_KEY": keys[1],
            "AWS_ENDPOINT_URL_S3": f"http://127.0.0.1:{port or self.port}",
            "AWS_REGION": REGION,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_MAX_ATTEMPTS": "2",
        }

    def start(self) -> None:
        """Start it, on the same port as before."""
        program = find_server()
        for name in ("buckets", "accounts"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        self.port = self.port or _find_free_port()
        rights = dict(zip(("ROOT_ACCESS_KEY", "ROOT_SECRET_KEY"), ROOT, strict=True))
        command = [program, "--port", f"127.0.0.1:{self.port}", "--iam-dir", str(self.folder / "accounts")]
        command += ["--region", REGION]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [*command, "--quiet", "--keep-alive", "posix", str(self.folder / "buckets")],
                env={**os.environ, **rights},
                stdout=log,
                stderr=log,
            )
        for _ in range(200):
            with socket.socket() as client:
                if client.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.05)
        raise AssertionError((self.folder / "log").read_text())

    def stop(self) -> None:
        """Kill it."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def make_bucket(self) -> None:
        """Make the bucket, and the user READER who may read it."""
        endpoint = f"http://127.0.0.1:{self.port}"
        admin = [find_server(), "admin", "--access", ROOT[0], "--secret", ROOT[1], "--region", REGION]
        user = ["create-user", "--access", READER[0], "--secret", READER[1], "--role", "user"]
        subprocess.run([*admin, "--endpoint-url", endpoint, *user], check=True, capture_output=True)
        bucket = f"arn:aws:s3:::{BUCKET}"
        may_read = {
            "Effect": "Allow",
            "Principal": {"AWS": [READER[0]]},
            "Action": ["s3:GetObject", "s3:ListBucket"],
            "Resource": [bucket, f"{bucket}/*"],
        }
        keys = {"key": ROOT[0], "secret": ROOT[1], "client_kwargs": {"region_name": REGION}}
        system = fsspec.filesystem("s3", **keys, endpoint_url=endpoint, skip_instance_cache=True)
        system.mkdir(BUCKET)
        system.call_s3("put_bucket_policy", Bucket=BUCKET, Policy=json.dumps({"Statement": [may_read]}))


class S3Proxy(ThreadingHTTPServer):
    """HTTP proxy in front of a server, in threads of this process.

    Args:
        port: that of the server.
        stalls: requests wait until the proxy is stopped.
        delay: seconds before each answer.
        refuses_conditions: answer writes with `If-None-Match` by 501, as stores do that do not have them.
        error: answer everything by this status and S3's error code.
    """

    daemon_threads = True

    def __init__(
        self,
        port: int,
        *,
        stalls: bool = False,
        delay: float = 0,
        refuses_conditions: bool = False,
        error: tuple[int, str] | None = None,
    ) -> None:
        super().__init__(("127.0.0.1", 0), _ProxyHandler)
        self.target, self.stalls, self.delay = port, stalls, delay
        self.refuses_conditions, self.error = refuses_conditions, error
        self.port = int(self.server_address[1])
        self.requests: list[str] = []
        self.stopped = threading.Event()
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05})

    def __enter__(self) -> S3Proxy:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopped.set()
        self.shutdown()
        self._thread.join()
        self.server_close()


class _ProxyHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: S3Proxy

    def log_message(self, *_: Any) -> None:
        """Write nothing."""

    def forward(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.requests.append(self.command)
        if self.server.stalls:
            self.server.stopped.wait()
            self.close_connection = True
            return
        time.sleep(self.server.delay)
        if self.server.error:
            status, code = self.server.error
            self.answer(status, {}, f"<Error><Code>{code}</Code><Message>it is {code}</Message></Error>".encode())
        elif self.server.refuses_conditions and "If-None-Match" in self.headers:
            self.answer(501, {}, b"<Error><Code>NotImplemented</Code><Message>no conditions</Message></Error>")
        else:
            connection = http.client.HTTPConnection("127.0.0.1", self.server.target)
            connection.request(self.command, self.path, body, dict(self.headers))
            response = connection.getresponse()
            content = response.read()
            connection.close()
            self.answer(response.status, dict(response.headers), content)

    def answer(self, status: int, headers: dict[str, str], content: bytes) -> None:
        self.send_response_only(status)
        for name, value in headers.items():
            if name.lower() not in ("content-length", "transfer-encoding", "connection"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_PUT = forward  # noqa: N815 - the names that http.server looks for


def _find_free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return int(server.getsockname()[1])


if __name__ == "__main__":
    if not shutil.which("go"):
        sys.exit(ADVICE)
    install()
