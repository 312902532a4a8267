"""Lists of benchmark tasks: their formats, and the changes that they reject."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from core.config import Settings
from core.errors import InputError
from miner.benchmarks import DATA_FOLDER, load_benchmarks, read_rows
from tests.helpers import TinyRepo
from tests.miner.conftest import FIX, MinerHarness

FindReason = Callable[..., str]
STATEMENT_TEXT = "Make one() return one"
LONG = {
    "pkg/core.py": "def one():\n" + "".join(f"    total_{n} = measure({n})\n" for n in range(8)),
    "tests/test_core.py": FIX["tests/test_core.py"],
}
STATEMENT = (
    "The parser forgets to close its file when a line is longer than what the buffer holds, and then it waits for "
    "a reader that never comes; what helps is to kill it."
)


def write_list(folder: Path, name: str, content: str | list[dict[str, object]]) -> str:
    text = content if isinstance(content, str) else "".join(f"{json.dumps(row)}\n" for row in content)
    (folder / name).write_text(text)
    return str(folder / name)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl", [{"instance_id": "acme__widget-7", "repo": "Acme/Widget", "base_commit": "0" * 40}]),
        ("b.jsonl", [{"instance_id": "acme__widget-7"}]),
        ("c.jsonl", [{"org": "acme", "repo": "widget", "number": 7}]),
        ("d.json", '[{"repo": "acme/widget", "pull_number": "7"}]'),
        ("e.csv", "repo,number\nacme/widget,7\n"),
        ("f.txt", "# people's own list\n\nacme/widget#7  # why\n"),
        ("g.txt", "https://github.com/acme/widget/pull/7\n"),
        ("h.txt", "acme__widget-7\n"),
        ("i.json", '{"canary": "c", "subjects": [{"name": "acme__widget-7.review-2", "kind": "review"}]}'),
        ("j.json", '{"canary": "c", "subjects": [{"name": "acme__widget-7.bugfix.traceback", "kind": "traceback"}]}'),
        ("k.txt", "acme__widget-7.review-8\n"),
        ("l.jsonl", [{"instance_id": "acme__widget-7.injected-8", "repo": "acme/widget", "base_commit": "0" * 40}]),
        ("m.jsonl", [{"instance_id": "acme__widget-7.test-writing"}]),
        ("n.csv", "instance_id\nacme__widget-7.bugfix.user-story\n"),
    ],
)
def test_a_pull_request_is_named_in_many_ways(
    name: str, content: str | list[dict[str, object]], tiny: TinyRepo, reason: FindReason, tmp_path: Path
) -> None:
    lists = write_list(tmp_path, name, content)
    tiny.commit(f"{STATEMENT_TEXT} (#8)", FIX)
    assert reason(benchmarks=lists) == "candidate"
    tiny.commit("Make one() return three (#7)", {"pkg/core.py": "x = 3\n", "tests/test_core.py": "x = 3\n"})
    assert reason(benchmarks=lists) == "in-benchmark"


def test_a_frozen_set_names_changes_without_a_number_by_name(tmp_path: Path) -> None:
    names = (("acme__widget-1a2b3c4d.bugfix", "bugfix"), ("library.busy_morning", "scenario"))
    document = {"canary": "c", "subjects": [{"name": name, "kind": kind} for name, kind in names]}
    index = load_benchmarks([write_list(tmp_path, "set.json", json.dumps(document))])
    assert str(index.find_by_name("acme/widget", None, "", "acme__widget-1a2b3c4d")).endswith("(set.json:1)")
    assert index.find_by_name("acme/widget", None, "", "acme__widget-ffffffff") is None
    assert index.find_by_name("acme/widget", 1, "") is None
    assert (len(index.changes), index.repos) == (1, {"acme/widget"})


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.txt", "{task}\n"),
        ("b.jsonl", '{{"instance_id": "{task}"}}\n'),
        ("c.jsonl", '{{"instance_id": "{task}", "repo": "Acme/Widget", "base_commit": "1111"}}\n'),
        ("d.json", '{{"canary": "c", "subjects": [{{"name": "{task}", "kind": "review"}}]}}'),
    ],
)
@pytest.mark.parametrize("change", ["acme__widget-1a2b3c4d5e", "acme__widget-4.9.0rc1"])
@pytest.mark.parametrize("kind", ["review-3", "bugfix.traceback", "feature"])
def test_a_task_of_a_change_without_a_number_names_that_change_alone(
    change: str, kind: str, name: str, content: str, tmp_path: Path
) -> None:
    index = load_benchmarks([write_list(tmp_path, name, content.format(task=f"{change}.{kind}"))])
    assert index.find_by_name("acme/widget", None, "", change) is not None
    assert index.find_by_name("acme/widget", None, "", f"{change}f") is None
    assert [index.find_by_name("acme/widget", number, "") for number in (3, 1, 4)] == [None] * 3
    assert index.repos == {"acme/widget"}


@pytest.mark.parametrize("repo", ["acme/widget.review", "acme/my-widget.review", "acme/widget.js"])
def test_a_repository_may_end_like_a_task(repo: str, tmp_path: Path) -> None:
    index = load_benchmarks([write_list(tmp_path, "a.txt", f"{repo.replace('/', '__')}-1\n")])
    assert index.find_by_name(repo, 1, "") is not None
    assert (index.repos, index.find_by_name(repo, 2, "")) == ({repo}, None)


def test_the_rejection_names_list_line_and_instance(tiny: TinyRepo, harness: MinerHarness, tmp_path: Path) -> None:
    lists = write_list(tmp_path, "bench.jsonl", [{"instance_id": "a__b-1"}, {"instance_id": "acme__widget-7"}])
    tiny.commit(f"{STATEMENT_TEXT} (#7)", FIX)
    result = harness.mine(f"git:{tiny.path}", benchmarks=lists)[0].result
    assert getattr(result, "detail", "") == "a benchmark's list names acme__widget-7 (bench.jsonl:2)"


def test_a_base_commit_names_a_change_only_where_no_number_does(
    tiny: TinyRepo, reason: FindReason, tmp_path: Path
) -> None:
    base = tiny.git("rev-parse", "HEAD")
    tiny.commit(STATEMENT_TEXT, FIX)
    by_commit = write_list(tmp_path, "a.jsonl", [{"repo": "acme/widget", "base_commit": base}])
    by_number = write_list(tmp_path, "b.jsonl", [{"instance_id": "acme__widget-7", "base_commit": base}])
    assert reason(benchmarks=by_commit) == "in-benchmark"
    assert reason(benchmarks=by_number) == "candidate"  # another pull request may have begun there


@pytest.mark.parametrize(
    "line", ["acme/widget", "https://github.com/Acme/Widget.git", "https://github.com/acme/widget/"]
)
def test_a_repository_is_named_whole(line: str, tiny: TinyRepo, reason: FindReason, tmp_path: Path) -> None:
    tiny.commit(STATEMENT_TEXT, FIX)
    assert reason(benchmarks=write_list(tmp_path, "list.txt", f"{line}\n")) == "in-benchmark"
    assert reason(benchmarks=write_list(tmp_path, "other.txt", "acme/widgets\nother/widget\n")) == "candidate"


def test_a_folder_stands_for_its_lists(tiny: TinyRepo, reason: FindReason, tmp_path: Path) -> None:
    folder = tmp_path / "lists"
    folder.mkdir()
    write_list(folder, "a.txt", "some/thing\n")
    write_list(folder, "b.csv", "repo\nacme/widget\n")
    write_list(folder, "README.md", "not a list\n")
    tiny.commit(STATEMENT_TEXT, FIX)
    assert reason(benchmarks=str(folder)) == "in-benchmark"


def test_a_copy_of_a_patch_is_rejected_in_any_repository(tiny: TinyRepo, harness: MinerHarness, tmp_path: Path) -> None:
    tiny.commit(STATEMENT_TEXT, LONG)
    source = f"git:{tiny.path}"
    gold, test = harness.read_patches(harness.mine(source)[0])
    row = {"instance_id": "other__fork-3", "patch": gold.replace("pkg/core.py", "lib/it.py"), "test_patch": test}
    lists = write_list(tmp_path, "bench.jsonl", [{"instance_id": "a__b-1", "patch": "", "problem_statement": ""}, row])
    result = harness.mine(source, benchmarks=lists)[0].result
    assert getattr(result, "reason", "") == "near-duplicate"
    assert (
        getattr(result, "detail", "") == "its patch has a similarity of 1.00 to that of other__fork-3 (bench.jsonl:2)"
    )
    assert not hasattr(harness.mine(source, benchmarks=lists, max_patch_similarity=1)[0].result, "reason")


def test_a_copy_of_a_statement_is_rejected(tiny: TinyRepo, reason: FindReason, tmp_path: Path) -> None:
    tiny.commit(f"The parser hangs\n\n{STATEMENT}", FIX)
    issues = [{"number": 1, "title": "Hangs", "body": STATEMENT}]
    multi = [{"org": "x", "repo": "y", "number": 1, "fix_patch": "", "resolved_issues": issues}]
    assert reason(benchmarks=write_list(tmp_path, "multi.jsonl", multi)) == "near-duplicate"
    other = [{"instance_id": "x__y-1", "problem_statement": STATEMENT.replace("e", "")}]
    assert reason(benchmarks=write_list(tmp_path, "other.jsonl", other)) == "candidate"


def test_published_tasks_are_not_compared_with_benchmarks(
    tiny: TinyRepo, harness: MinerHarness, tmp_path: Path
) -> None:
    base = tiny.git("rev-parse", "HEAD")
    tiny.commit(STATEMENT_TEXT, LONG)
    gold, test = harness.read_patches(harness.mine(f"git:{tiny.path}")[0])
    file = write_list(
        tmp_path,
        "bench.jsonl",
        [
            {
                "instance_id": "acme__widget-7",
                "repo": "acme/widget",
                "base_commit": base,
                "patch": gold,
                "test_patch": test,
                "problem_statement": STATEMENT,
                "FAIL_TO_PASS": ["t"],
                "PASS_TO_PASS": [],
            }
        ],
    )
    result = harness.mine(f"instances:{file}", benchmarks=file, clones=tmp_path)[0].result
    assert not hasattr(result, "reason"), result


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", '{"instance_id": "a__b-1"}\n{"repo"\n', "a.jsonl:2: not JSON"),
        ("b.jsonl", '{"number": 3}\n', "b.jsonl:1: neither a repository nor a pull request"),
        ("c.jsonl", "[]\n", "c.jsonl:1: not a JSON object"),
        ("d.json", "{}\n", "not a list of rows"),
        ("g.json", "{\n", "g.json: not JSON"),
        ("h.json", '{"canary": "c", "subjects": [{"kind": "review"}]}', "h.json:1: a subject has no name"),
        ("e.txt", "acme/widget\nwidget\n", "e.txt:2: neither"),
        ("f.csv", "name\nx\n", "f.csv:2: neither"),
    ],
)
def test_an_error_in_a_list_is_reported_with_its_line(name: str, content: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        list(read_rows(Path(write_list(tmp_path, name, content))))


def test_a_missing_list_is_reported_with_the_existing_ones(tmp_path: Path) -> None:
    for word in ("nowhere", str(tmp_path), str(tmp_path / "nothing.txt")):
        with pytest.raises(InputError):
            load_benchmarks(Settings(benchmarks=(word,)).mining.benchmarks)
    with pytest.raises(InputError) as error:
        load_benchmarks(Settings(benchmarks=("nowhere",)).mining.benchmarks)
    assert "swe-bench" in str(error.value.advice)


def test_lists_of_names_are_part_of_the_program() -> None:
    for file in DATA_FOLDER.glob("*.csv"):
        rows = list(read_rows(file))
        assert len({entry.repo for entry in rows}) == len(rows) > 0
        assert all(entry.number is None and entry.sketch is None and not entry.commit for entry in rows)
    named = load_benchmarks(Settings(benchmarks=("swe-bench",)).mining.benchmarks)
    assert named.find_by_name("Django/django", 1, "")
    assert not named.find_by_name("acme/widget", 1, "")
