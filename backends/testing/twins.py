"""Twins: the F2P tests once more, under the same names, sabotaged so that an honest solution must fail them.

Two ways to sabotage a test, tried in this order, because the first also unmasks objects that are equal to everything
and solutions that read the expected value out of the test:

- flipped: what the test expects is changed (the constant an assert compares with, the expected argument);
- raised: a failing statement at the end of the body, where the first alone leaves the test passing.

A twin counts only once the gold patch was seen to fail it.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from backends.git import Repository
from backends.index import ScratchIndex

TestFunction = ast.FunctionDef | ast.AsyncFunctionDef

_EQUALITIES = (
    "assertEqual", "assertEquals", "assertListEqual", "assertDictEqual", "assertTupleEqual", "assertSetEqual",
    "assertMultiLineEqual", "assertSequenceEqual", "assertIs", "assertCountEqual",
)  # fmt: skip
_SENTINEL = "object()"
_RAISED = "assert 0 == 1"
_FLIPPED_ARGUMENT = (
    "{0} = not {0} if isinstance({0}, bool) else {0} + 1 if isinstance({0}, (int, float, complex)) "
    "else {0} + 'q7' if isinstance({0}, str) else {0} + b'q7' if isinstance({0}, bytes) "
    "else {0} + [7] if isinstance({0}, list) else {0} + (7,) if isinstance({0}, tuple) else object()"
)


@dataclass(frozen=True, order=True)
class _Edit:
    """Replace bytes `start:end` of a file."""

    start: int
    end: int
    text: str


def sabotage(source: bytes, tests: Collection[str], raise_in: Collection[str] = ()) -> bytes | None:
    """The test file with the named tests sabotaged, or None when nothing in it could be.

    Args:
        source: a Python file.
        tests: those to sabotage, without their file and parameters, such as `TestX::test_y`.
        raise_in: those of them that a changed expectation was seen not to fail.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return None
    place = _Place(source)
    edits: list[_Edit] = []
    for name, function in _functions(tree):
        if name in tests:
            flipped = [] if name in raise_in else _flipped(function, place)
            edits += flipped or [_raised(function, place)]
    if not edits:
        return None
    for edit in _disjoint(edits):
        source = source[: edit.start] + edit.text.encode() + source[edit.end :]
    try:
        ast.parse(source)
    except (SyntaxError, ValueError):
        return None
    return source


def bare(test: str) -> str:
    """`TestX::test_y` of `tests/test_a.py::TestX::test_y[3-a::b]`."""
    return test.partition("::")[2].partition("[")[0]


def patched_files(repository: Repository, base: str, patch: bytes, files: Iterable[str]) -> dict[str, bytes]:
    """Contents of `files` in the tree of `base` with `patch` applied."""
    with ScratchIndex(repository, base) as index:
        index.apply(patch)
        found = {path: index.read(path) for path in files}
    return {path: content for path, content in found.items() if content is not None}


def twin_patch(repository: Repository, base: str, patch: bytes, changed: Mapping[str, bytes]) -> bytes:
    """`patch` with other contents of some files, against the same base.

    Raises:
        GitError: the patch does not apply.
    """
    with ScratchIndex(repository, base) as index:
        index.apply(patch)
        for path, content in changed.items():
            index.write(path, content)
        return index.diff()


# ------------------------------------------------------------------------------------------------ how to sabotage


def _functions(tree: ast.Module) -> Iterable[tuple[str, TestFunction]]:
    """All functions of a file at top level or in classes, as `Class::name`."""
    todo: list[tuple[str, ast.stmt]] = [("", node) for node in tree.body]
    while todo:
        prefix, node = todo.pop(0)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield prefix + node.name, node
        elif isinstance(node, ast.ClassDef):
            todo += [(f"{prefix}{node.name}::", child) for child in node.body]
        else:  # tests may be defined under `if` and `try`
            todo += [(prefix, child) for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)]


def _flipped(function: TestFunction, place: _Place) -> list[_Edit]:
    """Edits that change what the test expects: in the comparison, and where it was given a name before."""
    edits: list[_Edit] = []
    expectations = [expected for node in ast.walk(function) if (expected := _expected(node)) is not None]
    names = {expected.id for expected in expectations if isinstance(expected, ast.Name)}
    arguments = names & {argument.arg for argument in function.args.args + function.args.kwonlyargs}
    edits += [_flipped_argument(name, function, place) for name in sorted(arguments)]
    named: set[str] = set(arguments)
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id in names:
            constants = _constants(node.value)
            edits += [place.edit(constant, _other(constant.value)) for constant in constants]
            named |= {node.targets[0].id} if constants else set()
    for expected in expectations:
        if not (isinstance(expected, ast.Name) and expected.id in named):
            constants = _constants(expected)
            edits += [place.edit(constant, _other(constant.value)) for constant in constants]
            edits += [] if constants else [place.edit(expected, _SENTINEL)]
    return edits


def _flipped_argument(name: str, function: TestFunction, place: _Place) -> _Edit:
    """The argument changed at the start of the body: ids made of parameters stay as they are."""
    first = function.body[0]
    start = place.at(first.lineno, first.col_offset)
    alone = first.lineno != function.lineno
    between = "\n" + place.indent(first) if alone else "; "
    return _Edit(start, start, _FLIPPED_ARGUMENT.format(name) + between)


def _expected(node: ast.AST) -> ast.expr | None:
    """The side of an equality that says what is expected."""
    if isinstance(node, ast.Assert) and isinstance(node.test, ast.Compare):
        compared = node.test
        alone = len(compared.ops) == 1 and isinstance(compared.ops[0], ast.Eq | ast.Is)
        return _more_literal(compared.left, compared.comparators[0]) if alone else None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and len(node.args) >= 2:
        return _more_literal(node.args[0], node.args[1]) if node.func.attr in _EQUALITIES else None
    return None


def _more_literal(left: ast.expr, right: ast.expr) -> ast.expr:
    def literal(side: ast.expr) -> bool:
        return bool(_constants(side)) and not _calls(side)

    return left if literal(left) and not literal(right) else right


def _calls(node: ast.expr) -> bool:
    return any(isinstance(part, ast.Call) for part in ast.walk(node))


def _constants(node: ast.expr) -> list[ast.Constant]:
    """Constants of an expected value that can be exchanged: not those inside f-strings, calls and subscripts."""
    if isinstance(node, ast.Constant):
        return [] if node.value is Ellipsis else [node]
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return [constant for element in node.elts for constant in _constants(element)]
    if isinstance(node, ast.Dict):
        return [constant for value in node.values for constant in _constants(value)]
    if isinstance(node, ast.UnaryOp):
        return _constants(node.operand)
    return []


def _other(value: object) -> str:
    """Python text of another value of the same type."""
    if isinstance(value, bool):
        return str(not value)
    if isinstance(value, int | float | complex):
        return repr(value + 1) if value + 1 != value else "1"
    if isinstance(value, str):
        return ascii(value + "q7")
    if isinstance(value, bytes):
        return ascii(value + b"q7")
    return "0"


def _raised(function: TestFunction, place: _Place) -> _Edit:
    """A failing statement behind the last one of the body."""
    last, first = function.body[-1], function.body[0]
    end = place.end(last)
    if first.lineno == function.lineno:  # `def test_x(): pass`, all on one line
        return _Edit(end, end, f"; {_RAISED}")
    line_end = place.line_end(end)
    return _Edit(line_end, line_end, "\n" + place.indent(first) + _RAISED)


class _Place:
    """Turns the parser's lines and columns (UTF-8 bytes) into offsets in the file."""

    def __init__(self, source: bytes) -> None:
        self.source = source
        self.bom = 3 if source.startswith(b"\xef\xbb\xbf") else 0
        self.starts = [0]
        for line in source.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))

    def at(self, line: int, column: int) -> int:
        return self.starts[line - 1] + column + (self.bom if line == 1 else 0)

    def end(self, node: ast.stmt | ast.expr) -> int:
        return self.at(node.end_lineno or node.lineno, node.end_col_offset or 0)

    def edit(self, node: ast.expr, text: str) -> _Edit:
        return _Edit(self.at(node.lineno, node.col_offset), self.end(node), text)

    def line_end(self, offset: int) -> int:
        """Offset of the line's end, before its line break."""
        found = self.source.find(b"\n", offset)
        found = len(self.source) if found < 0 else found
        return found - 1 if self.source[found - 1 : found] == b"\r" else found

    def indent(self, node: ast.stmt) -> str:
        start = self.starts[node.lineno - 1]
        return self.source[start : start + node.col_offset].decode(errors="replace")


def _disjoint(edits: Iterable[_Edit]) -> list[_Edit]:
    """From the end of the file to its start, without those that lie in or over another."""
    kept: list[_Edit] = []
    for edit in sorted(set(edits), reverse=True):
        if not kept or edit.end <= kept[-1].start:
            kept.append(edit)
    return kept
