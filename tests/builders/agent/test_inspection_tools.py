"""Results of the tools `run`, `read` and `search`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from backends.llm.base import ToolCall
from builders.agent.inspection_tools import RESULT_CHARS, InspectionTools, shorten_output
from builders.agent.tools import Toolbox
from tests.containers import make_environment_image, make_services

pytestmark = pytest.mark.docker
FILES = {"setup.py": "import os\nname = 'greet'\n", "src/a.py": "\n".join(f"line_{n} = {n}" for n in range(500))}


@pytest.fixture
def toolbox(tmp_path: Path) -> Iterator[Toolbox]:
    services = make_services(tmp_path)
    with services.sandbox.open_session(
        make_environment_image(services, FILES), limits=services.test_limits(), workdir="/testbed"
    ) as shell:
        yield Toolbox(InspectionTools(lambda: shell, lambda: 60.0).create_tools())


def call(toolbox: Toolbox, name: str, **arguments: object) -> str:
    return toolbox.run_call(ToolCall(id="1", name=name, arguments=arguments)).text


def test_run_returns_output_and_exit_code(toolbox: Toolbox) -> None:
    assert call(toolbox, "run", command="cat setup.py; exit 3") == "import os\nname = 'greet'\n[exit code 3]"
    assert call(toolbox, "run", command="true") == "[exit code 0]"
    assert "timeout" in call(toolbox, "run", command="sleep 30", seconds=1)
    assert call(toolbox, "run", command="sleep 1", seconds="many").startswith("Not done: seconds:")


def test_read_returns_lines_with_their_numbers(toolbox: Toolbox) -> None:
    assert call(toolbox, "read", path="setup.py") == "1: import os\n2: name = 'greet'\n[lines 1 to 200 of 2]\n"
    assert call(toolbox, "read", path="src/a.py", first_line=40, last_line=41).startswith("40: line_39 = 39\n41: ")
    assert "No such file" in call(toolbox, "read", path="none.py")
    assert "setup.py" in call(toolbox, "read", path=".")
    assert "No such file" in call(toolbox, "read", path="x; touch /tmp/hacked")
    assert "No such file" in call(toolbox, "run", command="ls /tmp/hacked")


def test_search_returns_files_and_lines(toolbox: Toolbox) -> None:
    assert call(toolbox, "search", pattern="gr(e+)t") == "./setup.py:2:name = 'greet'"
    assert call(toolbox, "search", pattern="nowhere") == "no line matches"
    lines = call(toolbox, "search", pattern="line_", path="src")
    assert lines.endswith("narrow the pattern]")
    assert len(lines.splitlines()) == 81


def test_long_output_keeps_its_head_and_more_of_its_tail(toolbox: Toolbox) -> None:
    output = call(toolbox, "run", command="echo first; seq 100000; echo last")
    assert output.startswith("first\n")
    assert output.endswith("last\n[exit code 0]")
    assert len(output) < RESULT_CHARS + 200
    assert shorten_output("x" * 10) == "x" * 10
