"""Bugs that undo what an earlier commit did in a function."""

from __future__ import annotations

from pathlib import Path

from backends.git import GitRepository
from derivers.injected.bug_sites import FunctionMap
from derivers.injected.history_bugs import list_history_bugs
from mutation import Mutation
from tests.helpers import TinyRepo

FIRST = """def total(prices):
    result = 0
    for price in prices:
        result += price
    return result


def label(text, width):
    return text.ljust(width)


def other():
    return 1
"""


def list_bugs(repo: TinyRepo, base: str, path: str = "cart.py") -> list[Mutation]:
    content = (repo.path / path).read_bytes()
    return list(list_history_bugs(GitRepository(repo.path), base, {path: content}, FunctionMap({path: content})))


def test_a_fix_is_undone_in_one_function_at_a_time(tmp_path: Path) -> None:
    repo = TinyRepo(tmp_path)
    repo.commit("Start", {"cart.py": FIRST})
    fixed = FIRST.replace("        result += price\n", "        if price > 0:\n            result += price\n")
    fixed = fixed.replace("text.ljust(width)", "text[:width].ljust(width)")
    fix = repo.commit("Fix", {"cart.py": fixed})
    base = repo.commit("A later change elsewhere", {"cart.py": fixed.replace("return 1", "return 2")})
    bugs = list_bugs(repo, base)
    later = fixed.replace("return 1", "return 2")
    assert [bug.after.decode() for bug in bugs] == [
        fixed,
        later.replace("        if price > 0:\n            result += price\n", "        result += price\n"),
        later.replace("text[:width].ljust", "text.ljust"),
    ]
    assert {bug.operator for bug in bugs} == {"history"}
    assert [bug.line for bug in bugs] == [14, 4, 10]
    assert bugs[1].detail == f"what {fix[:12]} changed there was undone"


def test_changes_that_do_not_stand_any_more_or_are_no_code_are_left(tmp_path: Path) -> None:
    repo = TinyRepo(tmp_path)
    repo.commit("Start", {"cart.py": FIRST})
    repo.commit("Fix", {"cart.py": FIRST.replace("result = 0", "result = 1")})
    repo.commit("Change it again", {"cart.py": FIRST.replace("result = 0", "result = 2")})
    commented = FIRST.replace("result = 0", "result = 2").replace("    return 1", "    # always\n    return 1")
    base = repo.commit("Comment", {"cart.py": commented})
    assert [bug.after.decode() for bug in list_bugs(repo, base)] == [commented.replace("result = 2", "result = 1")], (
        "of the fix no line stands, and a comment is no code"
    )


def test_large_changes_and_new_functions_are_left(tmp_path: Path) -> None:
    repo = TinyRepo(tmp_path)
    repo.commit("Start", {"cart.py": FIRST})
    many = "".join(f"    a{number} = {number}\n" for number in range(50))
    added = FIRST.replace("    return 1\n", f"{many}    return 1\n") + "\n\ndef new():\n    return 3\n"
    base = repo.commit("Rewrite", {"cart.py": added})
    assert list_bugs(repo, base) == []


def test_text_at_the_end_of_a_file_without_a_line_break_is_put_back(tmp_path: Path) -> None:
    repo = TinyRepo(tmp_path)
    repo.commit("Start", {"cart.py": FIRST.rstrip()})
    base = repo.commit("Fix", {"cart.py": FIRST.rstrip().replace("return 1", "return 12")})
    assert [bug.after.decode() for bug in list_bugs(repo, base)] == [FIRST.rstrip()]


def test_the_latest_commit_of_the_base_is_the_last_that_counts(tmp_path: Path) -> None:
    repo = TinyRepo(tmp_path)
    base = repo.commit("Start", {"cart.py": FIRST})
    assert list_bugs(repo, base) == []
    repo.commit("Not yet", {"cart.py": FIRST.replace("return 1", "return 2")})
    repo.git("checkout", "-q", base)
    assert list_bugs(repo, base) == []
