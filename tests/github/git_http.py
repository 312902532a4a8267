"""Clones over git's smart HTTP: `git http-backend` as a CGI program, with streamed output."""

from __future__ import annotations

import base64
import os
import re
import subprocess
from collections.abc import Iterator

from tests.github.answers import ApiRequest, ApiResponse, make_error_response
from tests.github.rate_limits import AccessToken
from tests.github.world import World

PATH = re.compile(r"/([\w.-]+/[\w.-]+?)(?:\.git)?/(info/refs|git-upload-pack)")
CHUNK = 64 * 1024


def is_git(path: str) -> bool:
    return PATH.fullmatch(path) is not None


def parse_password(header: str) -> str:
    """Return the token of a Basic authorization, which git sends as the password."""
    kind, _, text = header.partition(" ")
    if kind.lower() != "basic":
        return text.strip()
    user, _, secret = base64.b64decode(text).decode(errors="replace").partition(":")
    return secret if secret not in ("", "x-oauth-basic") else user


def handle_request(world: World, ask: ApiRequest) -> ApiResponse:
    """Answer one request of a clone or fetch. A private repository requires a token and is hidden from a wrong one."""
    match = PATH.fullmatch(ask.path)
    assert match
    repository = world.find(match[1])
    if not repository or not ask.can_read(repository) or not repository.git_dir:
        if ask.token:
            return make_error_response(404, "Not Found")
        return ApiResponse(401, b"Repository not found.", {"WWW-Authenticate": 'Basic realm="GitHub"'})
    if repository.full_name.lower() != match[1].lower():
        query = f"?service={ask.query['service']}" if "service" in ask.query else ""
        return ApiResponse(301, headers={"Location": f"{ask.root}/{repository.full_name}.git/{match[2]}{query}"})
    if repository.blocked:
        return make_error_response(451, "Repository unavailable due to DMCA takedown.")
    environment = os.environ | {
        "GIT_PROJECT_ROOT": str(repository.git_dir),
        "PATH_INFO": f"/{match[2]}",
        "GIT_HTTP_EXPORT_ALL": "1",
        "REQUEST_METHOD": ask.method,
        "QUERY_STRING": f"service={ask.query.get('service', '')}",
        "CONTENT_TYPE": ask.headers.get("content-type", ""),
        "CONTENT_LENGTH": str(len(ask.body)),
        "HTTP_CONTENT_ENCODING": ask.headers.get("content-encoding", ""),
        "REMOTE_ADDR": "127.0.0.1",
        "GIT_PROTOCOL": ask.headers.get("git-protocol", ""),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_COUNT": "4",
        "GIT_CONFIG_KEY_0": "safe.directory",
        "GIT_CONFIG_VALUE_0": "*",
        "GIT_CONFIG_KEY_1": "uploadpack.allowFilter",
        "GIT_CONFIG_VALUE_1": "true",
        "GIT_CONFIG_KEY_2": "uploadpack.allowAnySHA1InWant",
        "GIT_CONFIG_VALUE_2": "true",
        "GIT_CONFIG_KEY_3": "http.receivepack",
        "GIT_CONFIG_VALUE_3": "false",
    }
    return _start_git(environment, ask.body)


def _start_git(environment: dict[str, str], body: bytes) -> ApiResponse:
    process = subprocess.Popen(
        ["git", "http-backend"],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdin
    assert process.stdout
    try:
        process.stdin.write(body)
        process.stdin.close()
    except BrokenPipeError:
        pass
    headers, status = {}, 200
    while line := process.stdout.readline().strip().decode():
        name, _, value = line.partition(": ")
        if name.lower() == "status":
            status = int(value.split()[0])
        else:
            headers[name] = value
    return ApiResponse(status, headers=headers, stream=_GitOutput(process))


class _GitOutput:
    """Output of a running git. `close` ends git, even if nothing was read."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process

    def __iter__(self) -> Iterator[bytes]:
        assert self.process.stdout
        while chunk := self.process.stdout.read1(CHUNK):  # type: ignore[attr-defined]
            yield chunk

    def close(self) -> None:
        self.process.kill()
        assert self.process.stdout
        self.process.stdout.close()
        self.process.wait()


def find_token(header: str, tokens: dict[str, AccessToken]) -> AccessToken | None:
    return tokens.get(parse_password(header)) if header else None
