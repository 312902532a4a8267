"""Discovery and building by the command line, with a scripted model: from twelve seed tasks to three worlds."""

from __future__ import annotations

import json
import random
import re
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from taskdb.artifacts import Artifacts
from taskdb.records.worlds import World
from taskdb.store import Store
from tests.cli import start_mergemill
from tests.samplers.scripted_model import ModelRequest, ScriptedModel, Turn
from tests.worlds.making.answers import (
    TASKS,
    WORLDS,
    answer,
    embed,
    find_kind,
    find_world,
    open_scripted_model,
    read_prompt,
    write_tasks,
)
from tests.worlds.making.golden import cut_world
from tests.worlds.making.running import count_reasons, list_records, make_worlds
from worlds.program.analysis import analyse_program

DISCOVER = ("--tasks", "tasks.txt", "--worlds-themes", "3")


def list_outcomes(folder: Path) -> list[tuple[str, str]]:
    """Return (id, name) of all records, which is what a resumed run must give again."""
    return [(key, str(record.get("name"))) for records in list_records(folder).values() for key, record in records]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with three worlds, made without a failure."""
    folder, before = tmp_path_factory.mktemp("built"), tmp_path_factory.mktemp("copy") / "before"
    write_tasks(folder / "tasks.txt")
    with open_scripted_model() as model:
        worlds = make_worlds("discover", folder, model, *DISCOVER)
        assert worlds.exit_code == 0, worlds.stderr
        summary = worlds.lines[-1]
        assert summary["environment"] == "synthetic"
        (step,) = summary["steps"]
        assert (step["found"], step["kept"], step["rejected"], step["left"]) == (12, 3, {"similar-theme": 9}, 0)
        assert sum(line["event"] == "record" for line in worlds.lines) == 12
        shutil.copytree(folder, before)
        shutil.copytree(before, folder / "before")
        done = make_worlds("build", folder, model)
        assert done.exit_code == 0, done.stderr
        (step,) = done.lines[-1]["steps"]
        assert (step["found"], step["kept"], step["rejected"], step["left"]) == (3, 3, {}, 0)
        assert set(model.paid_keys.values()) == {1}
        (folder / "paid.json").write_text(json.dumps(sorted(model.paid_keys)))
    return folder


def test_the_worlds_are_the_golden_ones_with_tools_and_usage(built: Path) -> None:
    artifacts = Artifacts(built / "mergemill-store" / "artifacts")
    with Store.open(f"sqlite:///{built}/mergemill.db", create=False) as store:
        worlds = {world.name: world for world in store.load_all(World)}
    assert sorted(worlds) == list(WORLDS)
    for name, world in worlds.items():
        made = analyse_program(artifacts.get_text(world.program))
        golden = analyse_program(cut_world(name).world.program)
        assert json.loads(artifacts.get(world.tools)) == [tool.to_json() for tool in golden.tools]
        assert made.usage.to_json()["methods"] == golden.usage.to_json()["methods"]
        assert (world.n_tools, world.environment, world.origin) == (16, "synthetic", "synthesised")
        assert list(json.loads(artifacts.get(world.states))) == ["test-1"]
        assert artifacts.get_text(world.documentation).startswith("# ")


def test_a_second_run_asks_nothing_and_adds_nothing(built: Path) -> None:
    before = list_records(built)
    with open_scripted_model() as model:
        for step, words in (("discover", DISCOVER), ("build", ())):
            again = make_worlds(step, built, model, *words)
            assert (again.exit_code, again.lines[-1]["requests"]) == (0, 0), again.stderr
        assert model.requests == []
    assert list_records(built) == before


def kill_at_random(folder: Path, model: ScriptedModel, moments: random.Random, kills: int) -> int:
    """Run discovery and building and kill them after some requests each time; return how often they were killed."""
    for killed in range(kills):
        step = "discover" if model.paid < 25 else "build"
        words = DISCOVER if step == "discover" else ()
        before, more = len(model.requests), moments.randrange(1, 9)
        command = ("worlds", step, "--llm", model.url, "--model", "scripted", *words)
        with start_mergemill(*command, cwd=folder) as driver:
            until = time.monotonic() + 60
            while len(model.requests) < before + more and driver.poll() is None and time.monotonic() < until:
                time.sleep(0.005)
            if driver.poll() is not None:
                return killed
    return kills


def test_ten_kills_change_no_record_and_cost_nothing(built: Path, tmp_path: Path) -> None:
    write_tasks(tmp_path / "tasks.txt")

    def answer_slowly(request: ModelRequest) -> Turn:
        return Turn(text=answer(request).text, delay=0.005)

    with open_scripted_model(answer_slowly) as model:
        killed = kill_at_random(tmp_path, model, random.Random(3), 10)
        paid_before = model.paid
        for step, words in (("discover", DISCOVER), ("build", ())):
            done = make_worlds(step, tmp_path, model, *words)
            assert done.exit_code == 0, done.stderr
        assert (killed, set(model.paid_keys.values())) == (10, {1})
        assert sorted(model.paid_keys) == json.loads((built / "paid.json").read_text())
        assert 0 < paid_before < model.paid
    assert list_records(tmp_path) == list_records(built)


# ------------------------------------------------------------------------------------------------------ bad answers


def spoil(kind: str, texts: dict[int, Turn]) -> Any:
    """Return answers in which the first ones to a kind of question about the clinic's rota are others, by place."""

    def reply(request: ModelRequest) -> Turn:
        text = read_prompt(request)
        if find_kind(request) == kind and "find_doctors" in text.partition("\n")[0] + _find_operation(text):
            return texts.get(request.place, answer(request))
        return answer(request)

    return reply


def _find_operation(text: str) -> str:
    match = re.search(r"^Operation (\w+) ", text, re.MULTILINE)
    return match[1] if match else ""


CHINESE = (
    cut_world("clinic_rota")
    .methods["find_doctors"]
    .replace('"""', '"""\u4e3a\u73ed\u6b21\u6dfb\u52a0\u5907\u6ce8\u5e76\u901a\u77e5\u533b\u751f\n\n    ', 1)
)
BAD: dict[str, tuple[Turn, str, str]] = {
    "empty": (Turn(text=" \n"), "empty-answer", "it is empty"),
    "truncated": (Turn(text="```python\ndef find_doctors(self", finish="length"), "truncated-answer", "write less"),
    "prose": (Turn(text="I am sorry, but I cannot."), "syntax-error", "invalid syntax"),
    "another-language": (Turn(text=f"```python\n{CHINESE}```"), "not-english", "not English"),
    "opens-a-file": (Turn(text="```python\ndef find_doctors(self):\n    open('x')\n```"), "opens-file", "names open"),
    "no-success": (
        Turn(text='```python\ndef find_doctors(self):\n    """Add."""\n    return None\n```'),
        "no-success",
        "no dict with `success`",
    ),
    "open-fence": (Turn(text="```python\ndef find_doctors(self):\n    pass"), "unusable-answer", "has no end"),
}


@pytest.mark.parametrize("name", BAD)
def test_an_unusable_answer_is_asked_again_with_the_message_and_then_rejected(
    built: Path, tmp_path: Path, name: str
) -> None:
    turn, reason, message = BAD[name]
    copy_themes(built, tmp_path)
    with open_scripted_model(spoil("world-method", {0: turn, 1: turn, 2: turn})) as model:
        done = make_worlds("build", tmp_path, model, "--only", "clinic_rota")
        (step,) = done.lines[-1]["steps"]
        assert (done.exit_code, step["found"], step["kept"]) == (0, 1, 0), done.stderr
        assert step["rejected"] == {reason: 1}
        asked = [request for request in model.requests if _find_operation(read_prompt(request)) == "find_doctors"]
        assert [request.place for request in asked] == [0, 1, 1]
        assert message in asked[1].body["messages"][-1]["content"]
        assert set(model.paid_keys.values()) == {1}
    assert count_reasons(tmp_path)[reason] == 1


def test_what_was_rejected_is_built_with_retry_and_other_draws(built: Path, tmp_path: Path) -> None:
    copy_themes(built, tmp_path)
    turn = BAD["empty"][0]
    with open_scripted_model(spoil("world-method", {0: turn, 1: turn})) as model:
        words = ("--only", "clinic_rota", "--worlds-attempts", "2")
        assert make_worlds("build", tmp_path, model, *words).lines[-1]["steps"][0]["rejected"] == {"empty-answer": 1}
        paid = model.paid
        assert make_worlds("build", tmp_path, model, *words).lines[-1]["steps"][0]["found"] == 0
        again = make_worlds("build", tmp_path, model, *words, "--retry", "empty-answer")
        assert again.lines[-1]["steps"][0]["rejected"] == {"empty-answer": 1}
        assert model.paid == paid
    with open_scripted_model() as model:
        again = make_worlds("build", tmp_path, model, *words, "--retry", "empty-answer", "--worlds-draw", "7")
        assert again.lines[-1]["steps"][0]["kept"] == 1, again.stderr


def copy_themes(built: Path, target: Path) -> None:
    """Copy the folder as it was before the worlds were built."""
    shutil.copytree(built / "before", target, dirs_exist_ok=True)


def test_late_and_broken_answers_are_asked_for_again_and_paid_once(built: Path, tmp_path: Path) -> None:
    write_tasks(tmp_path / "tasks.txt")
    seen: set[str] = set()
    faults = ("429", "500", "cut", "unfinished", "refuse", "html", "hang")

    class Storm(ScriptedModel):
        def find_turn(self, request: ModelRequest) -> Turn:
            key = request.headers["idempotency-key"]
            number, turn = int(key[:8], 16), answer(request)
            if number % 5 == 0 and key not in seen:
                seen.add(key)
                return Turn(text=turn.text, fault=faults[number % len(faults)])
            return turn

    with Storm(answer, embed=embed) as model:
        for step, words in (("discover", DISCOVER), ("build", ())):
            done = make_worlds(step, tmp_path, model, *words, "--llm-timeout", "2")
            assert done.exit_code == 0, done.stderr
        assert set(model.paid_keys.values()) == {1}
        assert len(model.requests) > len(model.paid_keys)
    assert list_records(tmp_path) == list_records(built)


def test_an_outage_leaves_what_is_there_and_the_same_command_goes_on(built: Path, tmp_path: Path) -> None:
    copy_themes(built, tmp_path)

    def fail(request: ModelRequest) -> Turn:
        is_parcel = find_world(read_prompt(request)).world.name == "parcel_depot"
        return Turn(fault="400") if is_parcel and find_kind(request) == "world-class" else answer(request)

    with open_scripted_model(fail) as model:
        done = make_worlds("build", tmp_path, model)
    (step,) = done.lines[-1]["steps"]
    assert (done.exit_code, step["found"], step["kept"], step["left"]) == (3, 3, 2, 1), done.stderr
    assert "1 failed" in done.stderr
    assert [line["event"] for line in done.lines].count("problem") == 1
    with open_scripted_model() as model:
        again = make_worlds("build", tmp_path, model)
        assert (again.exit_code, again.lines[-1]["steps"][0]["kept"]) == (0, 1), again.stderr
        assert {find_kind(request) for request in model.requests if "seed" in find_kind(request)} == set()
    assert list_records(tmp_path) == list_records(built)


def test_discovery_chooses_only_once_all_seed_tasks_are_answered(tmp_path: Path) -> None:
    write_tasks(tmp_path / "tasks.txt")

    def fail(request: ModelRequest) -> Turn:
        is_last = TASKS["parcel_depot"][3] in read_prompt(request)
        return Turn(fault="400") if is_last and find_kind(request) == "theme" else answer(request)

    with open_scripted_model(fail) as model:
        done = make_worlds("discover", tmp_path, model, *DISCOVER)
    assert done.exit_code == 3
    assert not (tmp_path / "mergemill.db").exists()  # nothing was chosen, so nothing was stored
    with open_scripted_model() as model:
        done = make_worlds("discover", tmp_path, model, *DISCOVER)
        assert (done.exit_code, done.lines[-1]["steps"][0]["kept"], model.paid) == (0, 3, 2), done.stderr


def test_seed_tasks_are_rejected_under_reasons_that_add_up(tmp_path: Path) -> None:
    lines = [
        TASKS["library_loans"][0],
        TASKS["library_loans"][0].upper(),
        "Describe this picture of a cat.",
        "Was kostet ein Ticket nach Berlin und wann kommt der Zug dort an?",
        "What is the capital of France?",
        "Tell me a joke about clouds.",
    ]
    (tmp_path / "tasks.txt").write_text("\n".join(lines))

    def reply(request: ModelRequest) -> Turn:
        text = read_prompt(request)
        if "capital" in text:
            return Turn(text='{"analysis": "General knowledge answers it.", "answer": false}')
        if "joke" in text:
            return Turn(text="\u6211\u4e0d\u77e5\u9053\u8fd9\u4e2a\u95ee\u9898\u7684\u7b54\u6848\u662f\u4ec0\u4e48")
        return answer(request)

    with open_scripted_model(reply) as model:
        done = make_worlds("discover", tmp_path, model, "--tasks", "tasks.txt")
    (step,) = done.lines[-1]["steps"]
    assert (done.exit_code, step["found"], step["kept"], step["left"]) == (0, 6, 1, 0), done.stderr
    assert step["rejected"] == {
        "duplicate": 1,
        "media": 1,
        "no-environment": 1,
        "not-english": 1,
        "unusable-answer": 1,
    }
    assert count_reasons(tmp_path) == step["rejected"]


def test_errors_of_the_user_are_one_line_each(tmp_path: Path) -> None:
    write_tasks(tmp_path / "tasks.txt")
    (tmp_path / "none.jsonl").write_text('{"x": 1}\n')
    with open_scripted_model(key="right") as model:
        for words, code, text in (
            (("--tasks", "none.jsonl"), 3, "holds no seed tasks"),
            (("--tasks", "missing.txt"), 3, "cannot read missing.txt"),
            (("--tasks", "swe"), 3, "no candidates"),
            ((*DISCOVER, "--worlds-min-usefulness", "11"), 2, "--worlds-min-usefulness"),
            ((*DISCOVER, "--worlds-embedding-url", "ftp://x"), 2, "not the http(s) URL"),
        ):
            done = make_worlds("discover", tmp_path, model, *words, MERGEMILL_LLM_KEY="right")
            assert (done.exit_code, text in done.stderr, len(done.stderr.splitlines())) == (code, True, 1), done.stderr
        assert model.requests == []
        refused = make_worlds("discover", tmp_path, model, *DISCOVER, MERGEMILL_LLM_KEY="wrong")
        assert (refused.exit_code, "MERGEMILL_LLM_KEY" in refused.stderr) == (3, True), refused.stderr
        off = make_worlds("discover", tmp_path, model, *DISCOVER, "--llm", "off")
        assert (off.exit_code, "a model is needed" in off.stderr) == (2, True)
        assert make_worlds("build", tmp_path / "..", model, "--db", "sqlite:///no/such.db").exit_code == 3


def test_an_endpoint_without_embeddings_is_named_and_another_one_can_be_given(tmp_path: Path) -> None:
    write_tasks(tmp_path / "tasks.txt")

    class NoEmbeddings(ScriptedModel):
        def admit(self, request: ModelRequest) -> int:
            earlier = super().admit(request)
            if request.path.endswith("/embeddings"):
                raise ConnectionError
            return earlier

    with NoEmbeddings(answer) as model, open_scripted_model() as other:
        words = ("--worlds-embedding-url", other.url, "--worlds-embedding-model", "small")
        done = make_worlds("discover", tmp_path, model, *DISCOVER, *words)
        assert done.exit_code == 0, done.stderr
        assert [request.body["model"] for request in other.requests] == ["small"]
