"""Artifacts in a store that several machines share: a real S3 server, and a file system of fsspec's without one."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import fsspec
import pytest
import zstandard

from core.config import Settings
from core.errors import InputError, MachineError, MergemillError, Transient
from mergemill.cli.options import build_settings
from taskdb.artifacts import Artifacts, make_name, open_artifacts
from taskdb.artifacts import shared as shared_artifacts
from taskdb.artifacts.shared import SharedArtifacts
from tests.s3_server import BUCKET, READER, S3Proxy, S3Server

URL = f"s3://{BUCKET}/team/artifacts"
TEXT = "".join(f"line {number} of a log\n" for number in range(2000)).encode()


@pytest.fixture
def server(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    """The server, with its variables set."""
    for name, value in s3_server.make_environment().items():
        monkeypatch.setenv(name, value)
    yield s3_server
    fsspec.get_filesystem_class("s3").clear_instance_cache()  # the next test has other variables


def run_python(code: str, *arguments: object, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run code in a process whose fsspec reads these variables."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code, *map(str, arguments)],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )


# ------------------------------------------------------------------------------------------------------ equal contents


@pytest.mark.s3
def test_what_is_put_on_one_machine_is_read_on_another(server: S3Server, tmp_path: Path) -> None:
    here, there = SharedArtifacts(URL, tmp_path / "here"), SharedArtifacts(URL, tmp_path / "there")
    digest = here.put(TEXT)
    assert digest == Artifacts(tmp_path / "folder").put(TEXT)
    assert there.get(digest) == TEXT
    assert there.get_text(there.put_text("grün \udcff")) == "grün \udcff"
    stored = server.objects / "team" / "artifacts" / make_name(digest)
    assert stored.read_bytes() == (tmp_path / "folder" / make_name(digest)).read_bytes()
    assert {digest} <= set(there.list_digests())
    assert pickle.loads(pickle.dumps(here)).get(digest) == TEXT  # noqa: S301 - its own


@pytest.mark.s3
def test_putting_again_writes_nothing(server: S3Server, tmp_path: Path) -> None:
    digest = SharedArtifacts(URL, tmp_path / "first").put(b"the same twice")
    stored = server.objects / "team" / "artifacts" / make_name(digest)
    before = stored.stat()
    assert SharedArtifacts(URL, tmp_path / "second").put(b"the same twice") == digest
    assert (stored.stat().st_ino, stored.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


@pytest.mark.s3
def test_threads_share_one_object(server: S3Server, tmp_path: Path) -> None:
    artifacts = SharedArtifacts(f"{URL}/threads", tmp_path)
    contents = [b"of threads %d" % number for number in range(60)]
    with ThreadPoolExecutor(12) as threads:
        digests = list(threads.map(artifacts.put, contents * 3))
        assert list(threads.map(SharedArtifacts(f"{URL}/threads", tmp_path / "other").get, digests)) == contents * 3
    assert set(artifacts.list_digests()) == set(digests)
    assert len(set(digests)) == 60


FORKS = """
import os, sys
from pathlib import Path
from taskdb.artifacts.shared import SharedArtifacts
artifacts = SharedArtifacts(sys.argv[1], Path(sys.argv[2]))
artifacts.put(b"before the fork")
children = []
for number in range(4):
    child = os.fork()
    if child == 0:
        mine = [artifacts.put(b"common %d" % one) for one in range(20)] + [artifacts.put(b"own %d" % number)]
        other = SharedArtifacts(sys.argv[1], Path(sys.argv[2]) / f"other-{number}")
        os._exit(0 if [other.get(one) for one in mine][-1] == b"own %d" % number else 1)
    children.append(child)
codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
assert codes == [0] * 4, codes
assert len(set(artifacts.list_digests())) == 25
assert artifacts.get(artifacts.put(b"after the fork")) == b"after the fork"
"""


@pytest.mark.s3
def test_forked_processes_write_at_once(server: S3Server, tmp_path: Path) -> None:
    done = run_python(FORKS, f"{URL}/forks", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


# ------------------------------------------------------------------------------------------------------ what is read


@pytest.mark.s3
def test_damaged_and_missing_objects_are_no_content(server: S3Server, tmp_path: Path) -> None:
    writer = SharedArtifacts(URL, tmp_path / "writer")
    half, other = writer.put(TEXT + b"half"), writer.put(TEXT + b"other")
    folder = server.objects / "team" / "artifacts"
    (folder / make_name(half)).write_bytes((folder / make_name(half)).read_bytes()[:40])
    (folder / make_name(other)).unlink()  # with it the checksum that the server keeps in its attributes
    (folder / make_name(other)).write_bytes(zstandard.compress(b"another text"))
    reader = SharedArtifacts(URL, tmp_path / "reader")
    for digest in (half, other, hashlib.sha256(b"never put").hexdigest()):
        with pytest.raises(InputError, match=f"artifact {digest[:12]} is .*damaged in s3://{BUCKET}"):
            reader.get(digest)


@pytest.mark.s3
def test_copies_on_this_machine_spare_the_store(server: S3Server, tmp_path: Path) -> None:
    artifacts = SharedArtifacts(URL, tmp_path)
    put, read = artifacts.put(b"put here"), SharedArtifacts(URL, tmp_path / "elsewhere").put(b"read here")
    artifacts.get(read)
    server.stop()
    assert [artifacts.get(put), artifacts.get(read)] == [b"put here", b"read here"]
    copy = artifacts.cache.folder / make_name(put)
    copy.write_bytes(b"damaged")
    server.start()
    assert artifacts.get(put) == b"put here"
    assert copy.read_bytes() != b"damaged"


@pytest.mark.s3
def test_a_copy_does_not_stand_for_the_object(server: S3Server, tmp_path: Path) -> None:
    artifacts = SharedArtifacts(URL, tmp_path)
    digest = artifacts.put(b"removed from the bucket")
    (server.objects / "team" / "artifacts" / make_name(digest)).unlink()
    artifacts.put(b"removed from the bucket")
    assert SharedArtifacts(URL, tmp_path / "elsewhere").get(digest) == b"removed from the bucket"
    assert SharedArtifacts(f"{URL}/2", tmp_path).cache.folder != artifacts.cache.folder


def test_the_oldest_copies_are_removed_once_they_are_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = shared_artifacts.ArtifactCache(tmp_path)
    for number in range(6):
        cache.keep(f"{number:064x}", bytes(1000))
        os.utime(tmp_path / make_name(f"{number:064x}"), (number, number))
    monkeypatch.setattr(shared_artifacts, "CACHE_BYTES", 2500)
    cache.remove_oldest()
    assert sorted(cache.list_digests()) == [f"{number:064x}" for number in (4, 5)]
    cache.keep(f"{9:064x}", bytes(1000))  # more than a share of the limit was written: it is measured again
    assert sorted(cache.list_digests()) == [f"{number:064x}" for number in (5, 9)]


# ------------------------------------------------------------------------------------------------------ failures


@pytest.mark.s3
@pytest.mark.parametrize(
    ("url", "variables", "problem"),
    [
        (URL, {"AWS_SECRET_ACCESS_KEY": "wrong-and-secret"}, "signature"),
        (URL, {"AWS_ACCESS_KEY_ID": "nobody"}, "does not exist in our records"),
        (URL, {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}, "credentials"),
        (URL, {"AWS_PROFILE": "nobodys"}, "profile"),
        ("s3://no-such-bucket/x", {}, "bucket does not exist"),
        ("s3://Not_A_Bucket/x", {}, "bucket"),
        (URL, dict(zip(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), READER, strict=True)), "Access Denied"),
    ],
)
def test_what_the_user_must_correct_is_no_reason_to_try_again(
    server: S3Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    url: str,
    variables: dict[str, str],
    problem: str,
) -> None:
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    artifacts = SharedArtifacts(url, tmp_path)
    with pytest.raises(InputError, match=problem) as caught:
        artifacts.check(writes=True)
    line = caught.value.format_line()
    assert url in line
    assert "AWS_ENDPOINT_URL_S3" in line
    assert "\n" not in line
    assert "secret-" not in line
    with pytest.raises(InputError, match=problem):
        artifacts.put(b"text")


@pytest.mark.s3
def test_who_may_read_alone_reads(server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    digest = SharedArtifacts(URL, tmp_path / "writer").put(b"for readers")
    for name, value in server.make_environment(READER).items():
        monkeypatch.setenv(name, value)
    fsspec.get_filesystem_class("s3").clear_instance_cache()
    reader = SharedArtifacts(URL, tmp_path / "reader")
    reader.check(writes=False)
    assert reader.get(digest) == b"for readers"
    assert digest in set(reader.list_digests())


@pytest.mark.s3
def test_a_server_that_is_down_may_come_back(server: S3Server, tmp_path: Path) -> None:
    artifacts, kept = SharedArtifacts(URL, tmp_path), b"kept"
    digest = SharedArtifacts(URL, tmp_path / "elsewhere").put(kept)
    server.stop()
    for call in (
        lambda: artifacts.put(b"new"),
        lambda: artifacts.get(digest),
        lambda: list(artifacts.list_digests()),
        lambda: artifacts.check(writes=False),
    ):
        with pytest.raises(Transient, match=URL) as caught:
            call()
        assert "again" in caught.value.advice
    server.start()
    assert artifacts.get(digest) == kept
    assert artifacts.get(artifacts.put(b"new")) == b"new"


@pytest.mark.s3
@pytest.mark.parametrize(
    ("status", "code", "n_requests"),
    [(503, "ServiceUnavailable", 2), (500, "InternalError", 2), (400, "ExpiredToken", 1), (403, "ExpiredToken", 1)],
)
def test_what_may_pass_is_a_transient_failure(
    server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int, code: str, n_requests: int
) -> None:
    with S3Proxy(server.port, error=(status, code)) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", f"http://127.0.0.1:{proxy.port}")
        with pytest.raises(Transient, match=f"it is {code}"):
            SharedArtifacts(URL, tmp_path).put(b"text")
    assert len(proxy.requests) == n_requests  # 2, as AWS_MAX_ATTEMPTS says, where it is worth another try at once


SILENT = """
import sys
from pathlib import Path
from core.errors import Transient
from taskdb.artifacts.shared import SharedArtifacts
try:
    SharedArtifacts(sys.argv[1], Path(sys.argv[2])).put(b"text")
except Transient as error:
    sys.exit(0 if "timeout" in str(error).lower() else str(error))
sys.exit("it was put")
"""


@pytest.mark.s3
def test_a_silent_server_is_given_up(server: S3Server, tmp_path: Path) -> None:
    impatient = json.dumps({"config_kwargs": {"read_timeout": 0.5}})
    with S3Proxy(server.port, stalls=True) as proxy:
        variables = server.make_environment(port=proxy.port)
        done = run_python(SILENT, URL, tmp_path, **variables, FSSPEC_S3=impatient)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(proxy.requests) == 2


@pytest.mark.s3
def test_a_slow_server_is_waited_for(server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with S3Proxy(server.port, delay=0.3) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", f"http://127.0.0.1:{proxy.port}")
        digest = SharedArtifacts(URL, tmp_path / "here").put(b"slowly")
        assert SharedArtifacts(URL, tmp_path / "there").get(digest) == b"slowly"
        assert proxy.requests == ["PUT", "GET"]  # one round trip each


@pytest.mark.s3
def test_a_store_without_conditional_writes_is_written_without_them(
    server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with S3Proxy(server.port, refuses_conditions=True) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", f"http://127.0.0.1:{proxy.port}")
        digests = [SharedArtifacts(URL, tmp_path).put(b"no conditions") for _ in range(2)]
        assert SharedArtifacts(URL, tmp_path / "other").get(digests[1]) == b"no conditions"


def test_a_missing_package_is_named() -> None:
    code = """
import sys
sys.modules["s3fs"] = None
from pathlib import Path
from core.errors import MachineError
from taskdb.artifacts.shared import SharedArtifacts
try:
    SharedArtifacts("s3://bucket", Path("cache"))
except MachineError as error:
    print(error.format_line())
"""
    done = run_python(code)
    assert "mergemill[s3]" in done.stdout, done.stderr


# ------------------------------------------------------------------------------------------------------ other systems


def test_other_file_systems_get_a_temporary_file_that_is_moved(tmp_path: Path) -> None:
    url = f"memory://{tmp_path.name}"
    artifacts = SharedArtifacts(url, tmp_path / "here")
    artifacts.check(writes=True)
    digest = artifacts.put(TEXT)
    assert SharedArtifacts(url, tmp_path / "there").put(TEXT) == digest
    assert SharedArtifacts(url, tmp_path / "nowhere").get(digest) == TEXT
    names = [name.rpartition("/")[2] for name in fsspec.filesystem("memory").find(f"/{tmp_path.name}/{digest[:2]}")]
    assert names == [f"{digest[2:]}.zst"]
    with pytest.raises(InputError, match="missing"):
        artifacts.get(hashlib.sha256(b"never").hexdigest())


@pytest.mark.parametrize(
    ("setting", "place"),
    [
        (None, Path("store/artifacts")),
        ("/mnt/shared", Path("/mnt/shared")),
        ("file:///mnt/shared", Path("/mnt/shared")),
        ("s3://bucket/prefix/", "s3://bucket/prefix"),
    ],
)
def test_a_folder_needs_no_fsspec(setting: str | None, place: Path | str) -> None:
    settings = Settings(store=Path("store"), artifacts=setting)
    assert settings.storage.artifact_place == place
    assert type(open_artifacts(settings.storage)) is (Artifacts if isinstance(place, Path) else SharedArtifacts)


def test_fsspec_is_loaded_for_urls_alone() -> None:
    code = "import sys, mergemill.execution.services; sys.exit('fsspec' in sys.modules)"
    assert run_python(code).returncode == 0


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("s3://key:very-private@bucket/x", "contains a password"),
        ("s3://", "names no bucket"),
        ("nosuch://bucket", "Protocol not known"),
    ],
)
def test_a_url_that_cannot_be_is_refused_without_its_password(url: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(MergemillError, match=problem) as caught:
        open_artifacts(build_settings({"artifacts": url}).storage)
    assert "very-private" not in caught.value.format_line()
    assert not isinstance(caught.value, MachineError | Transient)
