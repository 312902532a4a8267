"""What `run`, `read` and `search` show of a container."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from backends.llm.base import ToolCall
from builders.agent.looking import RESULT_CHARS, Looking, shortened
from builders.agent.tools import Toolbox
from tests.boxes import make_box, make_services

pytestmark = pytest.mark.docker
FILES = {"setup.py": "import os\nname = 'greet'\n", "src/a.py": "\n".join(f"line_{n} = {n}" for n in range(500))}


@pytest.fixture
def toolbox(tmp_path: Path) -> Iterator[Toolbox]:
    services = make_services(tmp_path)
    with services.sandbox.shell(make_box(services, FILES), limits=services.test_limits(), workdir="/testbed") as shell:
        yield Toolbox(Looking(lambda: shell, lambda: 60.0).entries())


def use(toolbox: Toolbox, name: str, **arguments: object) -> str:
    return toolbox.use(ToolCall(id="1", name=name, arguments=arguments)).text


def test_a_command_gives_its_output_and_exit_code(toolbox: Toolbox) -> None:
    assert use(toolbox, "run", command="cat setup.py; exit 3") == "import os\nname = 'greet'\n[exit code 3]"
    assert use(toolbox, "run", command="true") == "[exit code 0]"
    assert "took too long" in use(toolbox, "run", command="sleep 30", seconds=1)
    assert use(toolbox, "run", command="sleep 1", seconds="many").startswith("Not done: seconds:")


def test_lines_of_a_file_come_with_their_numbers(toolbox: Toolbox) -> None:
    assert use(toolbox, "read", path="setup.py") == "1: import os\n2: name = 'greet'\n[lines 1 to 200 of 2]\n"
    assert use(toolbox, "read", path="src/a.py", first_line=40, last_line=41).startswith("40: line_39 = 39\n41: ")
    assert "No such file" in use(toolbox, "read", path="none.py")
    assert "setup.py" in use(toolbox, "read", path=".")
    assert "No such file" in use(toolbox, "read", path="x; touch /tmp/hacked")
    assert "No such file" in use(toolbox, "run", command="ls /tmp/hacked")


def test_a_search_gives_files_and_lines(toolbox: Toolbox) -> None:
    assert use(toolbox, "search", pattern="gr(e+)t") == "./setup.py:2:name = 'greet'"
    assert use(toolbox, "search", pattern="nowhere") == "no line matches"
    many = use(toolbox, "search", pattern="line_", path="src")
    assert many.endswith("ask more narrowly]")
    assert len(many.splitlines()) == 81


def test_what_is_long_keeps_its_head_and_more_of_its_tail(toolbox: Toolbox) -> None:
    said = use(toolbox, "run", command="echo first; seq 100000; echo last")
    assert said.startswith("first\n")
    assert said.endswith("last\n[exit code 0]")
    assert len(said) < RESULT_CHARS + 200
    assert shortened("x" * 10) == "x" * 10
