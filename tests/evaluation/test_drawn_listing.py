"""What pytest prints of drawn test files, whose many failures would cost a reading of the whole file each."""

from __future__ import annotations

import os
import subprocess

import pytest

from evaluation.script.render import render_script
from taskdb.records import TestCommand


@pytest.mark.parametrize(
    ("variables", "printed", "missing"),
    [({}, "-rA", "--tb=line"), ({"MERGEMILL_TEST_FILES": "/drawn"}, "-rN --tb=line", "-rA")],
    ids=["the project's own", "drawn"],
)
def test_drawn_files_leave_a_line_for_each_failure(variables: dict[str, str], printed: str, missing: str) -> None:
    command = TestCommand(framework="pytest", argv=("pytest",))
    script = render_script(command, workdir="/testbed", test_patch=b"", files=(), canaries_beside=())
    start = script.index("packages=(")
    choice = script[start : script.index("versions=(", start)]
    done = subprocess.run(
        ["bash", "-c", f'{choice}\necho "${{command[*]}}"'],
        env={"PATH": os.environ["PATH"], "out": "/out", **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    assert f" {printed} " in done.stdout
    assert missing not in done.stdout
