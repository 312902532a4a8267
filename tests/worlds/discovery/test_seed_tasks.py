"""Files of seed tasks in every form, the rules, and what is no file of seed tasks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.errors import InputError
from worlds.discovery.repositories import RepositoryText
from worlds.discovery.rules import RULES, apply_rules
from worlds.discovery.seed_tasks import SeedTask, read_seed_tasks
from worlds.language import find_language_problem
from worlds.reasons import Reason

API_BANK = {
    "instruction": "Generate an API request in the format of [ApiName(key1='value1')] based on the user's utterance.",
    "input": "User: Can you cancel my appointment\n  on Friday?\nAPI-Request: [ToolSearcher(keywords='day')]->..",
    "output": "API-Request: [CancelAppointment(day='Friday')]",
}
TOOL_ACE = {
    "system": "You are an expert in composing functions.",
    "conversations": [
        {"from": "user", "value": "Add two towels to room 12."},
        {"from": "assistant", "value": "[add(room=12)]"},
    ],
}
MESSAGES = {"messages": [{"role": "system", "content": "Help."}, {"role": "user", "content": "Reserve a table."}]}


def write(path: Path, *values: Any) -> Path:
    text = json.dumps(list(values)) if path.suffix == ".json" else "".join(f"{json.dumps(value)}\n" for value in values)
    path.write_text(text)
    return path


@pytest.mark.parametrize("name", ["tasks.json", "tasks.jsonl"])
def test_rows_of_each_form_are_read(tmp_path: Path, name: str) -> None:
    rows = [API_BANK, TOOL_ACE, MESSAGES, {"task": "Ship  it.", "license": "MIT"}, "Close the file.", {"text": "Open."}]
    seed_tasks = read_seed_tasks(write(tmp_path / name, *rows))
    assert [task.text for task in seed_tasks.tasks] == [
        "Can you cancel my appointment",
        "Add two towels to room 12.",
        "Reserve a table.",
        "Ship it.",
        "Close the file.",
        "Open.",
    ]
    assert [task.source for task in seed_tasks.tasks][:2] == [f"{name}:1", f"{name}:2"]
    assert [task.license for task in seed_tasks.tasks][2:4] == ["", "MIT"]
    assert not seed_tasks.problems


def test_a_text_file_has_one_task_a_line(tmp_path: Path) -> None:
    (tmp_path / "tasks.txt").write_text("\ufeffFirst task.\n\n  Second  task.  \n")
    assert [(task.text, task.source) for task in read_seed_tasks(tmp_path / "tasks.txt").tasks] == [
        ("First task.", "tasks.txt:1"),
        ("Second task.", "tasks.txt:3"),
    ]


def test_an_entry_without_a_task_is_a_line_and_the_others_are_read(tmp_path: Path) -> None:
    lines = [
        '{"task": "Good."}',
        "{broken",
        '{"answer": "x"}',
        "17",
        '{"role": "API", "text": "no task"}',
        '{"task": ""}',
    ]
    (tmp_path / "tasks.jsonl").write_text("\n".join([*lines, json.dumps({"task": "y" * 30_000})]))
    seed_tasks = read_seed_tasks(tmp_path / "tasks.jsonl")
    assert [task.text for task in seed_tasks.tasks] == ["Good."]
    assert len(seed_tasks.problems) == 6
    assert all("\n" not in problem.format_line() for problem in seed_tasks.problems)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("tasks.json", b"{"),
        ("tasks.json", b"[" * 100_000),
        ("tasks.json", b"[]"),
        ("tasks.jsonl", b'{"x": 1}\n'),
        ("tasks.txt", b"\n\n"),
        ("tasks.txt", b"\xff\xfe\x00x"),
    ],
)
def test_what_is_no_file_of_seed_tasks_is_one_error(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError) as raised:
        read_seed_tasks(tmp_path / name)
    assert "\n" not in raised.value.format_line()


def test_a_missing_file_and_a_folder_are_errors(tmp_path: Path) -> None:
    for path in (tmp_path / "none.txt", tmp_path):
        with pytest.raises(InputError, match="cannot read"):
            read_seed_tasks(path)


RULED: dict[str, Reason | None] = {
    "Book a room for Mr O\u2019Neil \u2014 two nights.": None,
    "Move the parcel to shelf 7 and tell me what else is there.": None,
    "R\u00e9serve une table.": Reason.NOT_ENGLISH,
    "Bitte reserviere einen Tisch im Restaurant neben dem Bahnhof Berlin Mitte morgen abend": Reason.NOT_ENGLISH,
    "\u8bf7\u9884\u8ba2\u4e00\u5f20\u684c\u5b50": Reason.NOT_ENGLISH,
    "Crop the photos of the house.": Reason.MEDIA,
    "Play the sound.": Reason.MEDIA,
    "The imagery of the poem is soundly described in it.": None,
    "Role definition: you are a bank.": Reason.ROLE_TEXT,
    "Send 3 ETH to my wallet.": Reason.CURRENCY,
    "The method is worth its price.": None,
    "Write to bob@example.": Reason.ADDRESS,
    "Open shop.com for me.": Reason.ADDRESS,
}


@pytest.mark.parametrize("text", RULED)
def test_each_rule_rejects_its_own_texts(text: str) -> None:
    ((_, reason, detail),) = apply_rules([SeedTask(text=text, source="x")])
    assert reason is RULED[text], detail


def test_every_rule_is_covered_and_duplicates_are_found_by_their_words() -> None:
    assert {reason for reason, _ in RULES} == {reason for reason in RULED.values() if reason}
    texts = ["Renew the loan L-2, please.", "renew the loan L 2 please", "Renew the loan L-3, please."]
    rules = apply_rules([SeedTask(text=text, source="x") for text in texts])
    assert [reason for _, reason, _ in rules] == [None, Reason.DUPLICATE, None]


def test_short_texts_and_names_are_no_other_language() -> None:
    assert find_language_problem("Ana") == ""
    assert find_language_problem("\u00d8") == ""
    assert find_language_problem("The name of the guest is Bj\u00f6rk Gu\u00f0mundsd\u00f3ttir and she stays.") == ""


def test_code_markup_and_addresses_are_no_part_of_what_a_repository_is_about() -> None:
    text = "# Ward\n![logo](x.png) <b>Plans</b> shifts.\n```sh\npip ward\n```\nSee https://x.org/a.\n<!-- -->"
    assert RepositoryText(repo="a/ward", text=text, license="MIT").excerpt == "# Ward\nPlans shifts.\nSee"
