"""What the simulator answers for, what it is shown, what of it reaches the agent, and what is paid."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from core.errors import InputError, Transient
from samplers.rollouts.container import RolloutContainer
from samplers.subjects.subject import Subject
from simulators.swe.exchange import ProgramAnswer
from simulators.swe.execution import ATTEMPTS, MAX_OUTPUT_CHARS
from simulators.swe.workspace import WORKDIR, open_workspace
from tests.namespaces import require_bubblewrap
from tests.samplers.scripted_model import ModelRequest, ScriptedModel, Turn
from tests.simulators.swe.making import (
    GOLD_LINE,
    HIDDEN_NAME,
    TEST_LINE,
    Calc,
    make_host,
    open_episode,
    open_simulator,
    print_text,
    read_prompt,
)

UNAVAILABLE = "pytest: the output is not available\n\n[exit code 1]"
EDIT = {"path": "calc/add.py", "old": "left - right", "new": "left + right"}
Reply = Callable[[ModelRequest], Turn]


@pytest.fixture(scope="module")
def calc(tmp_path_factory: pytest.TempPathFactory) -> Calc:
    require_bubblewrap()
    return Calc(tmp_path_factory.mktemp("calc") / "repo")


@pytest.fixture
def run(calc: Calc, tmp_path: Path) -> Iterator[Callable[..., list[str]]]:
    """Return what each of several commands prints in a new episode."""

    def run(model: ScriptedModel, *commands: str, ledger: str = "ledger") -> list[str]:
        with open_simulator(tmp_path / ledger, model) as simulator, open_episode(calc, simulator) as episode:
            return [episode.step("shell", {"command": command}).text for command in commands]

    return run


def reply_in_turn(*turns: Turn) -> Reply:
    """Return an answer for each further attempt at one call; the last repeats."""
    return lambda request: turns[min(request.place, len(turns) - 1)]


def test_the_output_of_a_program_goes_on_as_that_of_a_real_one_would(run: Callable[..., list[str]]) -> None:
    answer = print_text("one\ntwo\n2 passed\n", stderr="a warning\n", code=3)
    with ScriptedModel(lambda _: answer) as model:
        texts = run(
            model,
            "cd tests && python -m pytest -q 2>/dev/null | tail -n 1",
            "pytest > out.txt 2>&1; echo $?; wc -l < out.txt",
            "pytest tests || echo failed; pytest tests && echo never",
            "for n in 1 2; do node $n.js 2>&1 >/dev/null; done",
            "find . -name '*.rb' | xargs -r ruby; which cargo; grep -c two out.txt",
        )
    assert texts[0] == "2 passed\n\n[exit code 0]"
    assert texts[1] == "3\n4\n\n[exit code 0]"
    assert "failed\n" in texts[2]
    assert "never" not in texts[2]
    assert texts[3] == "a warning\na warning\n\n[exit code 3]"
    assert texts[4] == "/usr/local/bin/cargo\n1\n\n[exit code 0]"


def test_the_simulator_is_shown_the_files_as_they_are_after_the_edits(calc: Calc, tmp_path: Path) -> None:
    with (
        ScriptedModel(lambda _: print_text("1 passed\n")) as model,
        open_simulator(tmp_path / "ledger", model) as simulator,
        open_episode(calc, simulator) as episode,
    ):
        episode.step("edit", EDIT)
        episode.step("shell", {"command": "cd tests && python -m pytest test_add.py::test_zero | tail"})
        episode.step("shell", {"command": "python - <<'E'\nprint('from stdin')\nE"})
        episode.step("shell", {"command": "echo '{}' > new.json; python -m calc.text new.json"})
    first, second, third = (read_prompt(request) for request in model.requests)
    assert "return left + right" in first
    assert "python -m pytest test_add.py::test_zero" in first
    assert "Working directory: /testbed/tests" in first
    assert "def test_zero" in first
    assert "docs/a page.md" in first
    assert GOLD_LINE in first
    assert TEST_LINE in first
    assert "print('from stdin')" in second
    assert "1 passed" in second  # of the command before
    assert "def join" in third
    assert "File new.json" in third


def test_files_that_a_program_writes_are_there(run: Callable[..., list[str]]) -> None:
    written = {
        "out/report.txt": "made\n",
        "/testbed/calc/add.py": "def add(a, b):\n    return a + b\n",
        "setup.cfg": None,
        "/tmp/log": "kept\n",
        "/etc/passwd": "root::0:0::/:/bin/bash\n",
        "../../etc/shadow": "x",
        ".git/config": "[core]\n",
    }
    with ScriptedModel(lambda _: print_text("", files=written)) as model:
        texts = run(model, "make", "cat out/report.txt calc/add.py /tmp/log; ls setup.cfg; git status --short")
        assert "root::" not in run(model, "make", "cat /etc/passwd; git log --oneline")[1]
    assert texts[1].startswith("made\ndef add(a, b):\n    return a + b\nkept\n")
    assert " D setup.cfg\n?? out/\n" in texts[1]


LEAKS = {
    "line": GOLD_LINE,
    "no indentation": GOLD_LINE.strip(),
    "more indentation": f"E       {GOLD_LINE}",
    "in a sentence": f"it says `{GOLD_LINE.strip()}` there",
    "split over lines": "return sum(\n    (left, right),\n    start=0)",
    "split within a word": "return su\nm((left, ri\nght), start=0)",
    "as a diff": f"--- a/calc/add.py\n+++ b/calc/add.py\n-    return left - right\n+{GOLD_LINE}",
    "marks on each line": "+ return sum(\n+     (left, right),\n+ start=0)",
    "numbered": "  1 | def add(left, right):\n  2 | return sum(\n  3 | (left, right), start=0)",
    "pytest's excerpt": f">   {TEST_LINE.strip()}\nE   assert -1 == 2345",
    "commented out": f"# {TEST_LINE.strip()}",
    "a hidden test": f"tests/test_add.py::{HIDDEN_NAME} FAILED",
}


@pytest.mark.parametrize(
    ("place", "leak"),
    [
        *(pytest.param("stdout", leak, id=name) for name, leak in LEAKS.items()),
        *(pytest.param(place, GOLD_LINE, id=place) for place in ("stderr", "file", "path")),
    ],
)
def test_no_line_of_the_solution_reaches_the_agent(run: Callable[..., list[str]], place: str, leak: str) -> None:
    answers = {
        "stdout": print_text(f"===\n{leak}\n==="),
        "stderr": print_text("", stderr=leak),
        "file": print_text("", files={"a.txt": f"x\n{leak}\n"}),
        "path": print_text("", files={leak.strip().replace("/", "_"): ""}),
    }
    with ScriptedModel(lambda _: answers[place]) as model:
        texts = run(model, "pytest", "cat a.txt 2>&1; ls; git status --short")
    assert texts[0] == UNAVAILABLE
    assert "sum(" not in texts[1]
    assert "2345" not in texts[1]
    assert HIDDEN_NAME not in texts[1]
    assert len(model.requests) == ATTEMPTS
    assert "nobody in this repository has yet" in model.requests[-1].body["messages"][-1]["content"]


def test_a_refused_answer_is_requested_again(run: Callable[..., list[str]]) -> None:
    with ScriptedModel(reply_in_turn(print_text(GOLD_LINE), print_text("1 failed\n", code=1))) as model:
        assert run(model, "pytest") == ["1 failed\n\n[exit code 1]"]
    assert len(model.requests) == 2


def test_what_the_tree_or_the_agent_has_is_no_leak(run: Callable[..., list[str]]) -> None:
    known = 'def add(left, right):\n    """Add two numbers."""\n    assert add(0, 0) == 0\n'
    with ScriptedModel(lambda _: print_text(known)) as model:
        assert run(model, "pytest") == [f"{known}\n[exit code 0]"]
    command = f"sed -i 's/return left - right/{GOLD_LINE.strip()}/' calc/add.py; pytest"
    with ScriptedModel(lambda _: print_text(f"Traceback\n{GOLD_LINE}\n")) as model:
        assert run(model, command, ledger="other") == [f"Traceback\n{GOLD_LINE}\n\n[exit code 0]"]


@pytest.mark.parametrize(
    "turn",
    [
        Turn(text=""),
        Turn(text="I cannot run this."),
        Turn(text='{"stdout": 3'),
        Turn(text='{"stdout": "x"}'),
        Turn(text=json.dumps({"stdout": "x", "exit_code": 999})),
        Turn(text=json.dumps({"stdout": "x", "exit_code": 0}), finish="length"),
    ],
    ids=["empty", "prose", "broken", "no code", "wrong code", "cut off"],
)
def test_an_unusable_answer_is_requested_again_and_then_an_error(run: Callable[..., list[str]], turn: Turn) -> None:
    with ScriptedModel(reply_in_turn(turn, print_text("ok\n"))) as model:
        assert run(model, "pytest") == ["ok\n\n[exit code 0]"]
    with ScriptedModel(lambda _: turn) as model:
        assert run(model, "pytest", "echo on", ledger="other") == [UNAVAILABLE, "on\n\n[exit code 0]"]
        assert len(model.requests) == ATTEMPTS


def test_endless_output_of_the_simulator_is_cut(run: Callable[..., list[str]]) -> None:
    with ScriptedModel(lambda _: print_text("all work\n" * 15_000)) as model:
        text = run(model, "pytest")[0]
    assert "characters left out]" in text
    assert len(text) < MAX_OUTPUT_CHARS + 200


def test_the_same_command_on_the_same_tree_has_one_answer_that_is_paid_once(calc: Calc, tmp_path: Path) -> None:
    numbers = iter(range(100))
    with ScriptedModel(lambda _: print_text(f"{next(numbers)}\n")) as model:
        for _ in range(2):  # the second time with the ledger of the first
            with open_simulator(tmp_path / "ledger", model) as simulator:
                for _ in range(2):
                    with open_episode(calc, simulator) as episode:
                        seen = [episode.step("shell", {"command": "pytest -q"}).text[0] for _ in range(2)]
                        episode.step("edit", EDIT)
                        seen.append(episode.step("shell", {"command": "pytest -q"}).text[0])
                        episode.step("edit", {"path": EDIT["path"], "old": EDIT["new"], "new": EDIT["old"]})
                        seen.append(episode.step("shell", {"command": "pytest -q"}).text[0])
                        seen.append(episode.step("shell", {"command": "cd tests; pytest -q"}).text[0])
                        assert seen == ["0", "0", "1", "0", "2"]
        assert len(model.requests) == 3
        assert (simulator.counts.fresh, simulator.counts.known) == (0, 10)


def test_agents_that_ask_at_once_pay_once_and_keep_apart(calc: Calc, tmp_path: Path) -> None:
    def answer(request: ModelRequest) -> Turn:
        return print_text("same\n" if "pytest -q" in read_prompt(request) else "")

    with ScriptedModel(answer) as model, open_simulator(tmp_path / "ledger", model) as simulator:

        def work(number: int) -> tuple[str, str]:
            with open_episode(calc, simulator) as episode:
                first = episode.step("shell", {"command": "pytest -q"}).text
                return first, episode.step("shell", {"command": f"echo {number} > n; cat n"}).text

        with ThreadPoolExecutor(8) as threads:
            results = list(threads.map(work, range(8)))
    assert results == [("same\n\n[exit code 0]", f"{number}\n\n[exit code 0]") for number in range(8)]
    assert len(model.requests) == 1


def test_the_tree_can_be_read_while_a_rollout_observes_it(calc: Calc) -> None:
    subject = Subject(id="1", name="calc", environment="simulated", statement="", workdir=WORKDIR)
    with open_workspace(make_host(), calc.open_tree, lambda *_: ProgramAnswer()) as workspace:
        container = RolloutContainer(shell=workspace.shell, subject=subject, start_seconds=0.0)
        workspace.write_file("calc/add.py", b"add = sum\n")
        with ThreadPoolExecutor() as threads:
            observed = threads.submit(lambda: [container.hash_tree() for _ in range(20)])
            states = [workspace.read_state() for _ in range(20)]
    assert {state.changed for state in states} == {frozenset({"calc/add.py"})}
    assert {*observed.result()} == {state.tree for state in states}


def test_a_failing_endpoint_is_no_output(run: Callable[..., list[str]]) -> None:
    with ScriptedModel(lambda _: Turn(fault="401")) as model, pytest.raises(InputError):
        run(model, "pytest")
    with ScriptedModel(lambda _: print_text("x")) as model:
        url = model
    with pytest.raises(Transient):
        run(url, "pytest", ledger="other")


def test_foreign_lines_in_the_pipe_are_no_requests(run: Callable[..., list[str]]) -> None:
    junk = textwrap.dedent("""\
        printf 'no request\\n1-1 a b c d\\n%0300000d' 7 > /run/exchange/requests
        echo '1-1 0 eA== - -' > /run/exchange/answers
        (sleep 0.1; pytest first) & kill %1 2>/dev/null
        timeout -s KILL 0.05 pytest second
        pytest third""")
    with ScriptedModel(
        lambda request: print_text("third\n" if "pytest third" in read_prompt(request) else "?" * 150_000)
    ) as model:
        assert run(model, junk)[0].endswith("third\n\n[exit code 0]")
