"""The settings of the shell that OpenHands types commands into."""

from __future__ import annotations

import os
import pty
import subprocess
from contextlib import suppress
from pathlib import Path
from unittest.mock import Mock

from samplers.scaffolds.base import AgentLimits, AgentSession, GatewayEndpoint
from samplers.scaffolds.openhands import OpenHandsScaffold
from samplers.subjects.guidance import Guidance

COMMAND = b"cat > notes.txt <<'END'\n\tone\n\t\ttwo\nEND\n"


def type_into_shell(text: bytes, folder: Path, **variables: str) -> None:
    """Write a text to the terminal of an interactive Bash, and wait until it has ended."""
    terminal, end = pty.openpty()
    shell = subprocess.Popen(
        ["bash", "-i"],
        stdin=end,
        stdout=end,
        stderr=end,
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "PS1": "$ ", "TERM": "xterm-256color", **variables},
        start_new_session=True,
    )
    os.close(end)
    os.write(terminal, text + b"exit\n")
    with suppress(OSError):  # nobody has the other end any more
        while os.read(terminal, 4096):
            pass
    os.close(terminal)
    assert shell.wait() == 0


def test_tabs_in_a_command_are_kept_where_it_is_typed_into_a_terminal(tmp_path: Path) -> None:
    session = AgentSession(
        subject=Mock(),
        shell=Mock(),
        gateway=GatewayEndpoint(container_url="http://gateway", host_url="http://gateway", secret="none"),
        model="scripted",
        sampling={},
        limits=AgentLimits(seconds=120.0, turns=30),
        guidance=Guidance(),
        add_repository_text=Mock(),
        make_gold=Mock(),
        collect_submission=Mock(),
    )
    scaffold = OpenHandsScaffold()
    place = scaffold.build_env(session)["INPUTRC"]
    (tmp_path / "inputrc").write_bytes(scaffold.build_files(session)[place])
    type_into_shell(COMMAND, tmp_path, INPUTRC=str(tmp_path / "inputrc"))
    assert (tmp_path / "notes.txt").read_text() == "\tone\n\t\ttwo\n"
