"""Tags of mined changes, of rejected ones too, and of the texts in a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mergemill.cli import run_command_line
from miner.mine import MinedChange
from miner.tags.tag import classify_size, find_areas
from taskdb.records import Candidate, Rejection
from taskdb.records.tags import ChangeKind, Size
from tests.helpers import TinyRepo
from tests.miner.conftest import FIX, START, MinerHarness


def newest(harness: MinerHarness, tiny: TinyRepo) -> MinedChange:
    return harness.mine(f"git:{tiny.path}")[0]


def test_a_candidate_has_its_kind_and_its_tags_have_lines(harness: MinerHarness, tiny: TinyRepo) -> None:
    tiny.commit("Start", START)
    tiny.commit("Fix one: it returned two (#1)\n\nThe result was wrong for everybody.", FIX)
    mined = newest(harness, tiny)
    assert isinstance(mined.result, Candidate)
    assert mined.result.change_kind is mined.tags.primary is ChangeKind.BUGFIX
    assert (mined.tags.size, mined.tags.changed_files, mined.tags.changed_lines) == (Size.XS, 2, 6)
    assert mined.tags.languages[0].language == "python"
    assert mined.tags.areas == ("pkg", "tests")
    assert mined.tags.route[0] == "bugfix"
    assert mined.tags.parent == mined.pull_request.id


def test_a_rejected_change_is_tagged_without_making_its_patches(harness: MinerHarness, tiny: TinyRepo) -> None:
    tiny.commit("Start", START)
    tiny.commit("Explain the licence in the readme", {"README.md": "MIT\n"})
    mined = newest(harness, tiny)
    assert isinstance(mined.result, Rejection)
    assert mined.tags.primary is ChangeKind.DOCUMENTATION
    assert mined.tags.changed_lines is None
    assert mined.tags.route == ()
    assert mined.tags.stop_reason


def test_a_change_of_annotations_only_is_rejected_even_with_tests(harness: MinerHarness, tiny: TinyRepo) -> None:
    tiny.commit("Start", START)
    tests = {"tests/test_core.py": FIX["tests/test_core.py"]}
    tiny.commit("Say what one returns (#2)", {"pkg/core.py": "def one() -> int:\n    return 2\n"} | tests)
    mined = newest(harness, tiny)
    assert isinstance(mined.result, Rejection)
    assert mined.result.reason == "not-routed"
    assert mined.tags.primary is ChangeKind.TYPING


def test_a_chore_with_source_and_tests_stays_a_candidate(harness: MinerHarness, tiny: TinyRepo) -> None:
    tiny.commit("Start", START)
    tiny.commit("chore: housekeeping of the core module", FIX)
    assert isinstance(newest(harness, tiny).result, Candidate)


def test_mining_twice_gives_the_same_tags(harness: MinerHarness, tiny: TinyRepo) -> None:
    tiny.commit("Start", START)
    tiny.commit("Fix one, which returned two", FIX)
    first, again = (harness.mine(f"git:{tiny.path}") for _ in range(2))
    assert [mined.tags.id for mined in first] == [mined.tags.id for mined in again]


@pytest.mark.parametrize(("lines", "size"), [(0, Size.XS), (9, Size.XS), (10, Size.S), (199, Size.M), (1000, Size.XL)])
def test_sizes_follow_changed_lines(lines: int, size: Size) -> None:
    assert classify_size(lines, 1) is size


def test_areas_are_two_folders_deep_and_leave_out_src() -> None:
    assert find_areas(["src/pkg/io/deep/a.py", "src/pkg/io/b.py", "setup.py"]) == ("pkg/io", ".")


def test_a_file_of_texts_is_tagged_row_by_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        {"message": "Fix crash on start\n\nIt failed.", "commit": "abc"},
        {"title": "How do I do this?", "body": "A question.", "labels": ["question"]},
    ]
    file = tmp_path / "texts.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows) + "{broken\n")
    assert run_command_line(["tags", "--json", str(file)]) == 3
    output = capsys.readouterr()
    tagged = [json.loads(line) for line in output.out.splitlines()]
    assert [row["name"] for row in tagged] == ["abc", None]
    assert tagged[0]["change_kinds"][0]["change_kind"] == "bugfix"
    assert tagged[0]["activities"] == ["corrective"]
    assert tagged[1]["issue"]["kind"] == "question"
    assert "row 3" in output.err


def test_a_table_of_messages_is_tagged_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "commits.csv"
    file.write_text('commit,message\nabc,"Add an option\n\nFor colour."\n')
    assert run_command_line(["tags", str(file)]) == 0
    assert "feature" in capsys.readouterr().out
    assert run_command_line(["tags", str(tmp_path / "none.csv")]) == 3
