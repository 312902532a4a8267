"""What a gold patch changes: functions by syntax, size, and calls between failing tests and changed functions."""

from __future__ import annotations

from pathlib import Path

import pytest

from backends.git import GitRepository
from backends.scratch import open_scratch
from derivers.changed_code import DefinitionWords, compute_call_depth, list_changed_functions, measure_changed_code
from miner.patches import split_commit
from mutation.definitions import find_enclosing_definition
from taskdb.records import ChangedCode, FailureKind, Task
from tests import records
from tests.derivers.review_helpers import create_services
from tests.helpers import TinyRepo

CART = """import sums


class Cart:
    def __init__(self, items):
        self.items = items

    def total(self):
        return sums.add(self.items)


def label():
    return "cart"
"""
SUMS = "def add(items):\n    return sum(items[1:])\n\n\ndef count(items):\n    return len(items)\n"
TEST = """import cart


def make():
    return cart.Cart([5])


def test_total():
    assert make().total() == 5


def test_label():
    assert cart.label() == "cart"
"""


@pytest.mark.parametrize(
    ("path", "before", "after", "names"),
    [
        ("cart.py", CART, CART.replace("sums.add(self", "sum(self"), ["Cart.total"]),
        ("cart.py", CART, CART.replace("import sums\n", "import sums as s\n"), [""]),
        ("cart.py", CART, CART.replace("import sums\n", "import os\n").replace('"cart"', '"c"'), ["label"]),
        ("cart.py", CART, CART + "\n\ndef new():\n    return 1\n", ["new"]),
        (
            "cart.py",
            CART,
            CART.replace("    def total(self):\n        return sums.add(self.items)\n", ""),
            ["Cart.total"],
        ),
        ("cart.py", None, SUMS, ["add", "count"]),
        ("cart.py", SUMS, None, ["add", "count"]),
        ("A.java", "class A {\n int f(int a) { return 1; }\n int f() { return 2; }\n}\n", None, ["A", "A.f"]),
        (
            "A.java",
            "class A {\n int f(int a) {\n  return 1;\n }\n int f() {\n  return 2;\n }\n}\n",
            "class A {\n int f(int a) {\n  return 3;\n }\n int f() {\n  return 2;\n }\n}\n",
            ["A.f"],
        ),
        ("notes.txt", "a\n", "b\n", [""]),
        ("a.py", "x = 1\n", "\0", [""]),
    ],
    ids=["body", "module", "both", "added", "removed", "new-file", "gone", "class", "overload", "text", "binary"],
)
def test_changed_functions_are_the_innermost_definitions_before_and_after(
    path: str, before: str | None, after: str | None, names: list[str]
) -> None:
    texts = [None if text is None else text.encode() for text in (before, after)]
    assert list_changed_functions(path, *texts) == names


def test_the_call_depth_is_the_shortest_way_by_names() -> None:
    definitions = [
        DefinitionWords(frozenset({"total"}), frozenset({"total", "add"})),
        DefinitionWords(frozenset({"pay"}), frozenset({"pay", "total"})),
        DefinitionWords(frozenset({"loop"}), frozenset({"loop"})),
    ]

    def measure(*words: str) -> int | None:
        return compute_call_depth({"add"}, [frozenset(words)], definitions)

    assert [measure("add", "pay"), measure("total"), measure("pay"), measure("loop")] == [1, 2, 3, None]


def test_the_name_of_an_overload_is_that_of_all() -> None:
    source = b"class A {\n int f(int a) {\n  return 1;\n }\n int f() {\n  return 2;\n }\n}\n"
    assert [find_enclosing_definition("A.java", source, line) for line in (1, 3, 6)] == ["A", "A.f", "A.f"]


def test_a_constructor_is_called_by_the_name_of_its_class(tmp_path: Path) -> None:
    repo, services = TinyRepo(tmp_path / "repo"), create_services(tmp_path)
    base = repo.commit("Start", {"cart.py": CART, "test_cart.py": "def test_cart():\n    assert cart.Cart([])\n"})
    merge = repo.commit("Copy", {"cart.py": CART.replace("= items", "= list(items)")})
    candidate = records.make_candidate(records.make_pull_request(), source=f"git:{repo.path}", base_commit=base)
    task = records.make_task(
        records.make_verification(records.make_environment(candidate)),
        candidate,
        gold_patch=services.artifacts.put_text(repo.git("diff", base, merge) + "\n"),
        test_patch=services.artifacts.put_text(""),
        FAIL_TO_PASS=(("test_cart.py::test_cart", FailureKind.ERROR),),
    )
    code = measure_changed_code(task, services)
    assert (code.functions, code.call_depth) == (("cart.py::Cart.__init__",), 1)


def make_task(folder: Path, tests: list[str], *, setup: bool = False) -> tuple[ChangedCode, Task]:
    """Return what a change of `sums.add` and a file without functions is, and its task."""
    repo = TinyRepo(folder / "repo")
    files = {"cart.py": CART, "sums.py": SUMS, "tests/test_cart.py": TEST.replace("== 5", "== 0"), "notes.md": "a\n"}
    base = repo.commit("Start", files)
    right = SUMS.replace("items[1:]", "items")
    merge = repo.commit("Count all", {"sums.py": right, "tests/test_cart.py": TEST, "notes.md": "b\n"})
    services = create_services(folder)
    with open_scratch(GitRepository(repo.path)) as scratch:
        split = split_commit(scratch, base, merge)
    setup_patch = repo.git("diff", base, merge, "--", "notes.md") + "\n"
    gold = repo.git("diff", base, merge, "--", "sums.py") + "\n" if setup else split.gold.text
    candidate = records.make_candidate(records.make_pull_request(), source=f"git:{repo.path}", base_commit=base)
    task = records.make_task(
        records.make_verification(records.make_environment(candidate)),
        candidate,
        gold_patch=services.artifacts.put_text(gold),
        test_patch=services.artifacts.put_text(split.test.text),
        setup_patch=services.artifacts.put_text(setup_patch) if setup else None,
        FAIL_TO_PASS=tuple((f"tests/test_cart.py::{test}", FailureKind.ASSERTION) for test in tests),
    )
    return measure_changed_code(task, services), task


def test_a_gold_patch_is_measured_in_the_agents_tree(tmp_path: Path) -> None:
    code, task = make_task(tmp_path / "a", ["test_total[1]", "test_label"])
    assert code == ChangedCode(functions=("sums.py::add",), files=2, lines=4, hunks=2, call_depth=2)
    assert task.model_copy(update={"changed_code": code}).id == task.id
    code, _ = make_task(tmp_path / "b", ["test_label"], setup=True)
    assert code == ChangedCode(functions=("sums.py::add",), files=1, lines=2, hunks=1, call_depth=None)
    code, _ = make_task(tmp_path / "c", [])
    assert code.call_depth is None


def test_a_renamed_file_is_compared_with_the_old_one(tmp_path: Path) -> None:
    repo, services = TinyRepo(tmp_path / "repo"), create_services(tmp_path)
    base = repo.commit("Start", {"sums.py": SUMS})
    merge = repo.commit("Move", {"sums.py": None, "größe.py": SUMS.replace("len(items)", "len(items) + 1")})
    candidate = records.make_candidate(records.make_pull_request(), source=f"git:{repo.path}", base_commit=base)
    task = records.make_task(
        records.make_verification(records.make_environment(candidate)),
        candidate,
        gold_patch=services.artifacts.put_text(repo.git("diff", "-M", base, merge) + "\n"),
        test_patch=services.artifacts.put_text(""),
    )
    assert measure_changed_code(task, services).functions == ("größe.py::count",)
