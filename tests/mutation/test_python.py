"""Mutants and variants of Python."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from mutation import generate_mutants, generate_variants, has_same_code, select_diverse

LOOP = "def f(xs):\n    for x in xs:\n        g(x)\n    return x\n"


def list_mutants(source: str, operator: str) -> list[str]:
    return [
        change.after.decode() for change in generate_mutants("a.py", source.encode()) if change.operator == operator
    ]


def list_variants(source: str, operator: str) -> list[str]:
    return [
        change.after.decode() for change in generate_variants("a.py", source.encode()) if change.operator == operator
    ]


@pytest.mark.parametrize(
    ("operator", "before", "after"),
    [
        ("comparison-boundary", "x = a < b\n", ["x = a <= b\n"]),
        ("comparison-flipped", "x = a is  not b in c\n", ["x = a is b in c\n", "x = a is  not b not in c\n"]),
        ("boolean-operator", "x = a and b or c\n", ["x = a or b or c\n", "x = a and b and c\n"]),
        ("condition-negated", "while a or b: f()\n", ["while not (a or b): f()\n"]),
        ("condition-negated", "x = [a for a in b if not a]\n", ["x = [a for a in b if a]\n"]),
        ("operand-dropped", "x = a and b\n", ["x = b\n", "x = a\n"]),
        ("arithmetic", "x += a * 2 + 'b'\n", ["x -= a * 2 + 'b'\n", "x += a / 2 + 'b'\n"]),
        ("sign-dropped", "x = -(a + b)\n", ["x = (a + b)\n"]),
        ("constant", "f(1, True, 0x1f)\n", ["f(2, True, 0x1f)\n", "f(1, False, 0x1f)\n"]),
        ("string", "x = d['key'] + f('')\n", ["x = d['ke'] + f('')\n", "x = d['key'] + f(' ')\n"]),
        ("string", "print('hello')\nraise E('hello')\n", []),
        ("index", "x = a[-1] + b[:n]\n", ["x = a[-2] + b[:n]\n", "x = a[-1] + b[:n - 1]\n"]),
        ("index", "for i in range(1, n): pass\n", ["for i in range(1, n - 1): pass\n"]),
        ("call-swapped", "x = min(a.lower())\n", ["x = max(a.lower())\n", "x = min(a.upper())\n"]),
        ("call-swapped", "x = a.split(), b.split(c)\n", []),
        ("call-swapped", "x = a.split(b, 1)\n", ["x = a.rsplit(b, 1)\n"]),
        ("argument-dropped", "f(a, k=1, j=2)\n", ["f(a, j=2)\n", "f(a, k=1)\n"]),
        ("branch-of-choice", "x = a if c else b\n", ["x = a\n"]),
        ("return-value", "def f():\n    return (a, b)\n", ["def f():\n    return None\n"]),
        ("statement-removed", "def f():\n    g()\n    h = 1\n", ["def f():\n    h = 1\n"]),
        ("statement-removed", "def f():\n    g(); h = 1\n", ["def f():\n    pass; h = 1\n"]),
        ("guard-removed", "def f(a):\n    if a:\n        return\n    g()\n", ["def f(a):\n    g()\n"]),
        (
            "branch-removed",
            "if a:\n    b\nelif c:\n    d\nelse:\n    e\n",
            ["if a:\n    b\nelse:\n    e\n", "if a:\n    b\nelif c:\n    d\n"],
        ),
        ("default-argument", "def f(a=1, b=-1): g\n", ["def f(a=2, b=-1): g\n", "def f(a=1, b=-2): g\n"]),
        ("handler-emptied", "try:\n    a()\nexcept E:\n    b()\n    c()\n", ["try:\n    a()\nexcept E:\n    pass\n"]),
        ("loop-control", "for a in b:\n    if a: continue\n", ["for a in b:\n    if a: break\n"]),
        ("loop-ended", LOOP, [LOOP.replace("g(x)\n", "g(x)\n        break\n")]),
        ("wrong-variable", "def f(self, a, b):\n    g(a.b, self)\n", ["def f(self, a, b):\n    g(b.b, self)\n"]),
        ("arguments-swapped", "f(a, b.c, 1)\n", ["f(b.c, a, 1)\n"]),
    ],
)
def test_each_operator_gives_the_expected_mutants(operator: str, before: str, after: list[str]) -> None:
    assert list_mutants(before, operator) == after


@pytest.mark.parametrize(
    ("operator", "before", "after"),
    [
        (
            "local-renamed",
            "def f(a):\n    n = a\n    n += 1\n    return n\n",
            ["def f(a):\n    n_2 = a\n    n_2 += 1\n    return n_2\n"],
        ),
        ("local-renamed", "def f(a):\n    n = a\n    return g(n=n)\n", []),
        ("local-renamed", "def f(a):\n    n = a\n    return locals()\n", []),
        ("local-renamed", "def f(a):\n    n = a\n    return f'{n=}'\n", []),
        ("local-renamed", "def f(a):\n    global n\n    n = a\n", []),
        ("local-renamed", "def f(n):\n    n = n + 1\n    return n\n", []),
        ("comparison-commuted", "x = a.b == 1\n", ["x = 1 == a.b\n"]),
        ("comparison-commuted", "x = a == b\n", []),
        (
            "branches-swapped",
            "if a:\n    b()\nelse:\n    c()\n    d()\n",
            ["if not a:\n    c()\n    d()\nelse:\n    b()\n"],
        ),
        ("branches-swapped", "x = a if b else c\n", ["x = c if not b else a\n"]),
        ("doubly-negated", "if a: b()\n", ["if not (not a): b()\n"]),
        (
            "result-named",
            "def f(a):\n    return a + 1  # b\n",
            ["def f(a):\n    outcome = a + 1\n    return outcome  # b\n"],
        ),
        ("sum-written-out", "n += 1\nm += x\n", ["n = n + 1\nm += x\n"]),
        ("step-added", 'def f():\n    "doc"\n    return 1\n', ['def f():\n    "doc"\n    pass\n    return 1\n']),
        ("blank-line-added", "def f():\n    return 1\n", ["def f():\n\n    return 1\n"]),
    ],
)
def test_each_rewrite_gives_the_expected_variants(operator: str, before: str, after: list[str]) -> None:
    assert list_variants(before, operator) == after


def test_docstrings_comments_annotations_imports_and_main_guards_have_no_mutants() -> None:
    source = '''"""1 < 2"""
from a import b  # 1 < 2
__all__ = ["a"]
x: Literal[1] | None
class A:
    """f(1)"""
if __name__ == "__main__":
    main(1)
if TYPE_CHECKING:
    y = 1
'''
    assert list(generate_mutants("a.py", source.encode())) == []


def test_mutants_are_ordered_by_position_and_can_be_limited_to_lines() -> None:
    source = b"x = 1\ny = 2\nz = f(\n    3,\n    4,\n)\n"
    assert [change.line for change in generate_mutants("a.py", source)] == [1, 2, 4, 5]
    assert [change.detail for change in generate_mutants("a.py", source, lines={2})] == ["y = 2 became y = 3"]


def test_other_files_and_python_2_statements_have_no_mutants() -> None:
    assert not list(generate_mutants("a.py", b"print 'hello'\n"))
    assert not list(generate_mutants("a.txt", b"x = 1\n"))
    assert not list(generate_mutants("a.pyx", b"x = 1\n"))


def test_line_ends_and_non_ascii_text_are_preserved() -> None:
    source = 'def f(a):\r\n    s = "ä"\r\n    return (a <\r\n            1)\r\n'.encode()
    afters = [change.after for change in generate_mutants("a.py", source)]
    assert source.replace(b"<", b"<=") in afters
    assert all(after.count(b"\r\n") == after.count(b"\n") for after in afters)


def test_mutations_of_real_files_compile_and_all_differ() -> None:
    for file in sorted(Path("backends/sandbox").glob("*.py"))[1:3]:
        source = file.read_bytes()
        tree = ast.dump(ast.parse(source))
        for make in (generate_mutants, generate_variants):
            mutations = list(make(str(file), source))
            assert [mutation.after for mutation in mutations] == [
                mutation.after for mutation in make(str(file), source)
            ]
            assert len({mutation.after for mutation in mutations} | {source}) == len(mutations) + 1
            for change in mutations:
                compile(change.after, str(file), "exec")
                assert make is generate_variants or ast.dump(ast.parse(change.after)) != tree, change.detail


def test_variants_of_a_function_compute_the_same_value() -> None:
    source = "def f(xs):\n    total = 0\n    for x in xs:\n        total += x if x > 0 else -x\n    return total\n"
    for change in generate_variants("a.py", source.encode()):
        names: dict[str, object] = {}
        exec(compile(change.after, "a.py", "exec"), names)  # noqa: S102
        assert names["f"]([1, -2, 3]) == 6, change.operator  # type: ignore[operator]


def test_a_selection_covers_many_operators_and_lines() -> None:
    source = b"".join(b"x%d = a < %d\n" % (n, n) for n in range(9)) + b"f()\n"
    chosen = select_diverse(generate_mutants("a.py", source), 5)
    assert len({change.line for change in chosen}) == 5
    assert {"comparison-boundary", "comparison-flipped", "constant", "statement-removed"} <= {
        c.operator for c in chosen
    }


@pytest.mark.parametrize(
    ("path", "after", "same"),
    [
        ("a.py", b'def f(a):\n    """Other words."""\n    # why\n    if a:\n        a += 1\n    return a\n', True),
        ("a.py", b"def f(a):\n    if a:\n        a += 1\n        return a\n", False),
        ("a.py", b"def f(a):\n    if a:\n        a += 2\n    return a\n", False),
        ("a.unknown", b"anything else", False),
    ],
    ids=["comments and docstring", "indented", "literal", "no grammar"],
)
def test_code_differs_where_more_than_comments_do(path: str, after: bytes, same: bool) -> None:
    before = b'def f(a):\n    """Words."""\n    if a:\n        a += 1\n    return a\n'
    assert has_same_code(path, before, after) is same
