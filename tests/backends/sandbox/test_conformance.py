"""Conformance suite: what every sandbox backend of `SANDBOXES` guarantees, run against each of them.

Commands use paths relative to `/`, their working directory, because a backend may map `/` to a folder of this machine.
"""

from __future__ import annotations

import io
import tarfile
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO

import pytest

from backends.sandbox.base import Sandbox
from backends.sandbox.execution import ExecResult, ResourceLimits
from backends.sandbox.registry import SANDBOXES, open_sandbox
from core.config import Settings
from core.errors import CancelledRunError, InputError, Transient, UsageError
from tests.namespaces import require_bubblewrap

LIMITS = ResourceLimits(seconds=30, memory_mb=256, disk_mb=100, pids=64, cpus=1, output_bytes=100_000)
SHORT = replace(LIMITS, seconds=1.5)


@dataclass(frozen=True, kw_only=True)
class Backend:
    """A sandbox backend under test. `image` is one that it can run."""

    name: str
    image: str
    has_images: bool
    """Whether the backend has an image store."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Settings beyond the name."""

    def open(self) -> Sandbox:
        """Open a sandbox of this backend."""
        return open_sandbox(Settings(sandbox=self.name, allow_untrusted_local=True, **self.options).sandbox)  # type: ignore[arg-type]


@pytest.fixture(
    params=[
        pytest.param("docker", marks=pytest.mark.docker),
        pytest.param("kubernetes", marks=pytest.mark.kubernetes),
        "bubblewrap",
        "local",
    ]
)
def backend(request: pytest.FixtureRequest) -> Backend:
    if request.param == "docker":
        return Backend(name="docker", image=request.getfixturevalue("base"), has_images=True)
    if request.param == "kubernetes":
        options = request.getfixturevalue("pod_options")
        return Backend(name="kubernetes", image=request.getfixturevalue("base"), has_images=True, options=options)
    if request.param == "bubblewrap":
        require_bubblewrap()
        return Backend(name="bubblewrap", image="host", has_images=False)
    return Backend(name="local", image="local", has_images=False)


@pytest.fixture
def sandbox(backend: Backend) -> Sandbox:
    return backend.open()


def run_bash(backend: Backend, script: str, limits: ResourceLimits = LIMITS, **options: object) -> ExecResult:
    return backend.open().run(backend.image, ["bash", "-c", script], limits=limits, **options)  # type: ignore[arg-type]


@contextmanager
def open_tree() -> Iterator[IO[bytes]]:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as tar:
        member = tarfile.TarInfo("testbed/setup.py")
        member.size = 3
        tar.addfile(member, io.BytesIO(b"x=1"))
    content.seek(0)
    yield content


def test_the_suite_covers_every_registered_backend() -> None:
    assert set(SANDBOXES) == {"docker", "kubernetes", "bubblewrap", "local"}


def test_an_unknown_backend_is_a_usage_error_that_lists_the_known_ones() -> None:
    with pytest.raises(UsageError, match="podman is unknown") as raised:
        open_sandbox(Settings(sandbox="podman").sandbox)
    assert raised.value.advice == "one of docker, kubernetes, bubblewrap, local"


def test_the_local_backend_is_rejected_unless_it_is_permitted() -> None:
    with pytest.raises(UsageError, match="without isolation") as raised:
        open_sandbox(Settings(sandbox="local").sandbox)
    assert raised.value.exit_code == 2
    assert "--allow-untrusted-local" in raised.value.advice


# ----------------------------------------------------------------------------------------------------- single commands


def test_a_command_returns_its_exit_code_and_both_streams(backend: Backend) -> None:
    result = run_bash(backend, "echo out; echo err >&2; exit 3")
    assert (result.exit_code, sorted(result.output.split()), result.killed_by) == (3, ["err", "out"], None)


def test_files_are_written_before_and_collected_after_the_command(backend: Backend) -> None:
    result = run_bash(
        backend,
        "cat run/mergemill/deep/in > tmp/out; printf '\\0' >> tmp/out",
        files={"/run/mergemill/deep/in": b"\xff\n"},
        collect=["/tmp/out", "/tmp/none", "/tmp", "/tmp/out/x"],
    )
    assert result.exit_code == 0, result.output
    assert result.files == {"/tmp/out": b"\xff\n\0"}


def test_a_link_is_not_collected(backend: Backend) -> None:
    assert run_bash(backend, "ln -s /etc/passwd tmp/out", collect=["/tmp/out"]).files == {}


def test_a_command_has_the_given_environment_and_no_variable_of_mergemill(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "secret")
    result = run_bash(backend, 'echo "$GREETING$GITHUB_TOKEN"', env={"GREETING": "a 'b' $c"})
    assert result.output == "a 'b' $c\n"


def test_a_command_that_cannot_be_started_is_a_result(backend: Backend, sandbox: Sandbox) -> None:
    assert sandbox.run(backend.image, ["no-such-command"], limits=LIMITS).exit_code == 127
    assert sandbox.run(backend.image, ["/etc/passwd"], limits=LIMITS).exit_code == 126


def test_a_missing_image_is_an_input_error(sandbox: Sandbox) -> None:
    with pytest.raises(InputError, match="no such image"):
        sandbox.run("mergemill-test/absent:1", ["true"], limits=LIMITS)


def test_a_command_that_exceeds_its_time_is_killed(backend: Backend) -> None:
    result = run_bash(backend, "echo begun; sleep 1000", SHORT)
    assert (result.killed_by, result.exit_code, result.output) == ("time", 137, "begun\n")
    assert result.seconds < 10


@pytest.mark.parametrize("script", ["exec >&- 2>&-; sleep 1000", "yes", "trap '' TERM; sleep 1000 & sleep 1000"])
def test_no_output_behaviour_defeats_the_time_limit(backend: Backend, script: str) -> None:
    result = run_bash(backend, script, SHORT)
    assert result.killed_by == "time"
    assert result.seconds < 10


def test_a_background_process_does_not_outlive_its_command(backend: Backend, tmp_path: Path) -> None:
    mark = f"100{uuid.uuid4().int % 10**8}"
    started = time.monotonic()
    assert run_bash(backend, f"sleep {mark} & echo done").output == "done\n"
    assert time.monotonic() - started < 10
    time.sleep(0.5)
    assert not [command for command in _list_commands() if mark.encode() in command]


def _list_commands() -> list[bytes]:
    """Return the command lines of the running processes; other tests' processes may end meanwhile."""
    commands = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(FileNotFoundError, ProcessLookupError):
            commands.append(path.read_bytes())
    return commands


def test_long_output_is_reduced_to_head_and_tail(backend: Backend) -> None:
    result = run_bash(backend, "echo first; head -c 100000000 /dev/zero; echo last")
    assert result.exit_code == 0
    assert result.output.startswith("first\n\0")
    assert result.output.endswith("\0last\n")
    assert 99_000 < len(result.output) < 101_000


def test_a_command_finds_no_files_of_an_earlier_one(backend: Backend) -> None:
    run_bash(backend, "echo x > tmp/left")
    assert run_bash(backend, "ls tmp").output == ""


def test_threads_share_a_sandbox(backend: Backend, sandbox: Sandbox) -> None:
    outputs = {}

    def work(number: int) -> None:
        command = ["bash", "-c", f"echo {number}"]
        outputs[number] = [sandbox.run(backend.image, command, limits=LIMITS).output for _ in range(3)]

    workers = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert outputs == {0: ["0\n"] * 3, 1: ["1\n"] * 3}


def test_stop_ends_a_running_command_and_prevents_the_next(backend: Backend, sandbox: Sandbox) -> None:
    threading.Timer(1.0, sandbox.stop).start()
    started = time.monotonic()
    for _ in range(2):
        with pytest.raises(CancelledRunError):
            sandbox.run(backend.image, ["sleep", "60"], limits=LIMITS)
    assert time.monotonic() - started < 8


# -------------------------------------------------------------------------------------------------- pools and sessions


def test_each_command_of_a_pool_has_a_fresh_container_with_its_files_and_environment(
    backend: Backend, sandbox: Sandbox
) -> None:
    script = 'ls -A tmp; cat deep/in > tmp/out; echo "$GREETING"; echo err >&2'
    with sandbox.open_pool(backend.image, limits=LIMITS) as pool:
        for number in range(3):
            result = pool.run(
                ["bash", "-c", f"{script}; exit {number}"],
                files={"/deep/in": b"\xff\0%d" % number},
                collect=["/tmp/out", "/none", "/tmp"],
                env={"GREETING": f"a 'b'\n {number}"},
            )
            assert result.output == f"a 'b'\n {number}\nerr\n"
            assert (result.exit_code, result.killed_by) == (number, None)
            assert result.files == {"/tmp/out": b"\xff\0%d" % number}


def test_a_pool_counts_time_from_the_start_of_the_command(backend: Backend, sandbox: Sandbox) -> None:
    with sandbox.open_pool(backend.image, limits=SHORT) as pool:
        time.sleep(2)
        assert pool.run(["sleep", "0.5"]).killed_by is None
        assert pool.run(["sleep", "20"], last=True).killed_by == "time"


def test_a_command_of_a_pool_may_have_less_time_than_the_pool(backend: Backend, sandbox: Sandbox) -> None:
    with sandbox.open_pool(backend.image, limits=LIMITS) as pool:
        result = pool.run(["sleep", "20"], seconds=0.5)
        assert (result.killed_by, result.seconds < 10) == ("time", True)
        assert pool.run(["sleep", "1"], seconds=1000.0, last=True).killed_by is None


def test_a_pool_of_a_missing_image_is_an_input_error(sandbox: Sandbox) -> None:
    with sandbox.open_pool("mergemill-test/absent:1", limits=LIMITS) as pool, pytest.raises(InputError):
        pool.run(["true"])


def test_commands_of_a_session_share_files_and_environment(backend: Backend, sandbox: Sandbox) -> None:
    with sandbox.open_session(
        backend.image,
        limits=LIMITS,
        tree=open_tree,
        files={"/run/mergemill/ca.pem": b"pem"},
        env={"COLOUR": "blue"},
        workdir="/testbed",
    ) as session:
        script = "cat setup.py ../run/mergemill/ca.pem; echo $COLOUR; echo 1 > a; exit 3"
        first = session.run(script, seconds=10)
        assert (first.exit_code, first.output) == (3, "x=1pemblue\n")
        assert session.run("cat a", seconds=10).output == "1\n"


def test_a_session_survives_a_command_that_exceeds_its_time(backend: Backend, sandbox: Sandbox) -> None:
    with sandbox.open_session(backend.image, limits=LIMITS) as session:
        session.run("echo here > tmp/a", seconds=10)
        started = time.monotonic()
        slow = session.run("echo begin; sleep 60", seconds=1)
        assert time.monotonic() - started < 8
        assert (slow.killed_by, slow.output) == ("time", "begin\n")
        assert session.run("cat tmp/a", seconds=10).output == "here\n"


def test_stop_ends_a_command_of_a_session(backend: Backend, sandbox: Sandbox) -> None:
    with sandbox.open_session(backend.image, limits=LIMITS) as session:
        threading.Timer(1, sandbox.stop).start()
        with pytest.raises(CancelledRunError):
            session.run("sleep 50", seconds=50)


# ------------------------------------------------------------------------------------------------------------- process


def test_a_process_reads_lines_and_writes_lines(backend: Backend, sandbox: Sandbox) -> None:
    script = 'cat etc/greeting; echo $COLOUR; while read -r line; do echo "got $line"; done; echo bad >&2'
    with sandbox.open_process(
        backend.image,
        ["bash", "-c", script],
        limits=LIMITS,
        files={"/etc/greeting": b"hello\n"},
        env={"COLOUR": "blue"},
    ) as process:
        assert [process.read_line(), process.read_line()] == [b"hello\n", b"blue\n"]
        process.write(b"one\ntw")
        assert process.read_line() == b"got one\n"
        process.write(b"o\n" + b"x" * 100_000 + b"\n")
        assert [process.read_line(), process.read_line()] == [b"got two\n", b"got " + b"x" * 100_000 + b"\n"]


def test_a_process_that_ended_gives_an_empty_line_and_its_errors(backend: Backend, sandbox: Sandbox) -> None:
    with sandbox.open_process(backend.image, ["bash", "-c", "echo bad >&2; exit 3"], limits=LIMITS) as process:
        assert process.read_line() == b""
        assert process.get_errors() == "bad\n"
        with pytest.raises(Transient):
            process.write(b"x\n")


def test_a_process_that_exceeds_its_time_ends(backend: Backend, sandbox: Sandbox) -> None:
    started = time.monotonic()
    with sandbox.open_process(backend.image, ["sleep", "50"], limits=SHORT) as process:
        assert process.read_line() == b""
    assert time.monotonic() - started < 8


def test_stop_ends_the_reading_of_a_process(backend: Backend, sandbox: Sandbox) -> None:
    with sandbox.open_process(backend.image, ["sleep", "50"], limits=LIMITS) as process:
        threading.Timer(0.5, sandbox.stop).start()
        with pytest.raises(CancelledRunError):
            process.read_line()


# --------------------------------------------------------------------------------------------------------- image store


def test_a_built_image_is_found_run_and_removed(backend: Backend, sandbox: Sandbox) -> None:
    if not backend.has_images:
        pytest.skip("no image store")
    name = f"mergemill-sandbox-test/{uuid.uuid4().hex[:12]}:one"
    result, image = sandbox.images.build(
        backend.image, ["bash", "-c", "echo built > /made"], name, limits=LIMITS, network=False, labels={"a.b": "c"}
    )
    try:
        assert result.exit_code == 0, result.output
        assert image is not None
        assert image == sandbox.images.inspect(name)
        assert image.labels["a.b"] == "c"
        assert [stored.digest for stored in sandbox.images.list_images(name)] == [image.digest]
        assert sandbox.run(name, ["cat", "/made"], limits=LIMITS).output == "built\n"
    finally:
        for _ in range(100):  # the container of the last command is removed in the background
            sandbox.images.remove(name)
            if sandbox.images.inspect(name) is None:
                break
            time.sleep(0.1)
    assert sandbox.images.inspect(name) is None


def test_a_backend_without_an_image_store_raises_a_usage_error(backend: Backend, sandbox: Sandbox) -> None:
    if backend.has_images:
        pytest.skip("has an image store")
    for name in ("build", "inspect", "hold", "remove"):
        with pytest.raises(UsageError, match=f"no image store .images.{name}") as raised:
            getattr(sandbox.images, name)
        assert raised.value.advice == "--sandbox docker"
