"""Programs in volumes: installed once, portable, removed on request; a missing registry gives one line."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from backends.sandbox.mounts import Mount
from mergemill.agents.sampling.programs import make_program_store
from samplers.programs.program import PackageKind, Program
from samplers.programs.store import MARK_PREFIX, READY
from tests.cli import run_mergemill
from tests.containers import make_services

pytestmark = pytest.mark.docker


def test_a_registry_that_is_out_of_reach_gives_the_command_that_installs(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        "from samplers.programs.program import PackageKind, Program\n"
        "from samplers.scaffolds.noop import NoopScaffold\n"
        "class Own(NoopScaffold):\n"
        "    name = 'own'\n"
        "    program = Program(name='own', kind=PackageKind.PYTHON, packages=('no-such-package==1',), command='true')\n"
    )
    done = run_mergemill("images", "programs", "own:Own", cwd=tmp_path, UV_DEFAULT_INDEX="http://127.0.0.1:9/simple")
    assert done.exit_code == 4, done.stderr
    last = done.stderr.splitlines()[-1]
    assert "own could not be installed" in last
    assert "mergemill images programs own" in last
    assert "Traceback" not in done.stderr


def test_what_is_installed_is_listed_and_removed(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        "from samplers.programs.program import PackageKind, Program\n"
        "from samplers.scaffolds.noop import NoopScaffold\n"
        "class Own(NoopScaffold):\n"
        "    name = 'own-listed'\n"
        "    program = Program(name='own-listed', kind=PackageKind.PYTHON, packages=('iniconfig==2.0.0',),\n"
        "                      command='/opt/mergemill/toolbox/bin/python3 -c \"import iniconfig\"', check='')\n"
    )

    def list_own(*arguments: str) -> list[str]:
        done = run_mergemill("images", "programs", *arguments, "--json", cwd=tmp_path)
        assert done.exit_code == 0, done.stderr
        return [row["volume"] for row in done.lines if "own-listed" in row["volume"]]

    installed = list_own("own:Own")
    assert len(installed) == 1
    assert list_own() == installed
    assert list_own("own-listed", "--remove") == installed
    assert list_own() == []


def test_a_complete_volume_takes_no_container_until_it_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    services = make_services(tmp_path)
    program = Program(
        name=f"test-{uuid.uuid4().hex[:8]}", kind=PackageKind.PYTHON, packages=("iniconfig==2.0.0",), command="true"
    )
    opened = []
    open_session = services.sandbox.open_session

    def count_sessions(image, **options):
        opened.append(options["mounts"])
        return open_session(image, **options)

    monkeypatch.setattr(services.sandbox, "open_session", count_sessions)

    def ensure() -> str:
        """Return the volume, which another process looks for."""
        (_, mount) = make_program_store(services).ensure(program)
        return mount.source

    volume = ensure()
    try:
        assert "installing test-" in caplog.text
        opened.clear()
        assert ensure() == volume
        assert opened == []

        base = make_program_store(services)._open_base()
        mount = Mount(source=volume, target="/opt/own", read_only=False)
        with open_session(base.image, limits=services.build_limits(), mounts=[mount]) as shell:
            # The engine has the time in seconds.
            assert shell.run(f"sleep 1.1; rm /opt/own/{READY}", seconds=60).exit_code == 0
        services.sandbox.flush()
        caplog.clear()
        assert ensure() == volume
        assert len(opened) == 1
        assert "installing test-" in caplog.text
    finally:
        services.sandbox.flush()
        make_program_store(services).remove([program.name])
    volumes = services.sandbox.volumes
    assert [*volumes.list_volumes(volume), *volumes.list_volumes(MARK_PREFIX + volume)] == []


def test_an_unknown_scaffold_is_refused(tmp_path: Path) -> None:
    done = run_mergemill("images", "programs", "telepathy", cwd=tmp_path)
    assert (done.exit_code, "one of react" in done.stderr) == (2, True)
