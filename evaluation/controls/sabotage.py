"""Sabotaged tests: FAIL_TO_PASS tests under the same names that an honest solution must fail.

There are two methods, tried in this order, because the first one also detects objects that compare equal to everything
and solutions that read the expected value from the test:

- a changed expectation: the constant that an assert compares with, or the argument that holds the expected value;
- a failing statement at the end of the body, where the test passes despite the first method.

A sabotaged test is used as a negative control only when the gold patch was seen to fail it.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from backends.git import GitRepository
from backends.index import ScratchIndex

TestFunction = ast.FunctionDef | ast.AsyncFunctionDef

_EQUALITY_METHODS = (
    "assertEqual",
    "assertEquals",
    "assertListEqual",
    "assertDictEqual",
    "assertTupleEqual",
    "assertSetEqual",
    "assertMultiLineEqual",
    "assertSequenceEqual",
    "assertIs",
    "assertCountEqual",
)
_SENTINEL = "object()"
_FAILING_STATEMENT = "assert 0 == 1"
_CHANGED_ARGUMENT = (
    "{0} = not {0} if isinstance({0}, bool) else {0} + 1 if isinstance({0}, (int, float, complex)) "
    "else {0} + 'q7' if isinstance({0}, str) else {0} + b'q7' if isinstance({0}, bytes) "
    "else {0} + [7] if isinstance({0}, list) else {0} + (7,) if isinstance({0}, tuple) else object()"
)


@dataclass(frozen=True, order=True)
class _SourceEdit:
    """Replacement of the bytes `start:end` of a file."""

    start: int
    end: int
    text: str


def sabotage_tests(source: bytes, tests: Collection[str], raise_in: Collection[str] = ()) -> bytes | None:
    """Return the test file with the named tests sabotaged; None when none of them can be.

    Args:
        source: a Python file.
        tests: the tests to sabotage, without file and parameters, such as `TestX::test_y`.
        raise_in: those of them that passed with a changed expectation; they get a failing statement.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return None
    offsets = _SourceOffsets(source)
    edits: list[_SourceEdit] = []
    for name, function in _find_functions(tree):
        if name in tests:
            changes = [] if name in raise_in else _change_expectations(function, offsets)
            edits += changes or [_append_failure(function, offsets)]
    if not edits:
        return None
    for edit in _select_disjoint(edits):
        source = source[: edit.start] + edit.text.encode() + source[edit.end :]
    try:
        ast.parse(source)
    except (SyntaxError, ValueError):
        return None
    return source


def strip_test_id(test: str) -> str:
    """Return `TestX::test_y` for `tests/test_a.py::TestX::test_y[3-a::b]`."""
    return test.partition("::")[2].partition("[")[0]


def read_patched_files(repository: GitRepository, base: str, patch: bytes, files: Iterable[str]) -> dict[str, bytes]:
    """Return path -> content of `files` in the tree of `base` with `patch` applied, without absent files."""
    with ScratchIndex(repository, base) as index:
        index.apply(patch)
        contents = {path: index.read_file(path) for path in files}
    return {path: content for path, content in contents.items() if content is not None}


def make_control_patch(repository: GitRepository, base: str, patch: bytes, changed: Mapping[str, bytes]) -> bytes:
    """Return `patch` with other contents of some files, against the same base.

    Raises:
        GitError: the patch does not apply.
    """
    with ScratchIndex(repository, base) as index:
        index.apply(patch)
        for path, content in changed.items():
            index.write_file(path, content)
        return index.diff()


# ------------------------------------------------------------------------------------------------------- methods


def _find_functions(tree: ast.Module) -> Iterable[tuple[str, TestFunction]]:
    """Yield (`Class::name`, function) of all functions at top level or in classes."""
    todo: list[tuple[str, ast.stmt]] = [("", node) for node in tree.body]
    while todo:
        prefix, node = todo.pop(0)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield prefix + node.name, node
        elif isinstance(node, ast.ClassDef):
            todo += [(f"{prefix}{node.name}::", child) for child in node.body]
        else:  # tests may be defined under `if` and `try`
            todo += [(prefix, child) for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)]


def _change_expectations(function: TestFunction, offsets: _SourceOffsets) -> list[_SourceEdit]:
    """Return edits that change the expected values, in the comparisons and where they are assigned to a name."""
    edits: list[_SourceEdit] = []
    expectations = [expected for node in ast.walk(function) if (expected := _find_expected(node)) is not None]
    names = {expected.id for expected in expectations if isinstance(expected, ast.Name)}
    arguments = names & {argument.arg for argument in function.args.args + function.args.kwonlyargs}
    edits += [_change_argument(name, function, offsets) for name in sorted(arguments)]
    named: set[str] = set(arguments)
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id in names:
            constants = _find_constants(node.value)
            edits += [offsets.make_edit(constant, _format_other_value(constant.value)) for constant in constants]
            named |= {node.targets[0].id} if constants else set()
    for expected in expectations:
        if not (isinstance(expected, ast.Name) and expected.id in named):
            constants = _find_constants(expected)
            edits += [offsets.make_edit(constant, _format_other_value(constant.value)) for constant in constants]
            edits += [] if constants else [offsets.make_edit(expected, _SENTINEL)]
    return edits


def _change_argument(name: str, function: TestFunction, offsets: _SourceOffsets) -> _SourceEdit:
    """Return an edit that changes the argument at the start of the body, so that ids with parameters stay the same."""
    first = function.body[0]
    start = offsets.find_offset(first.lineno, first.col_offset)
    alone = first.lineno != function.lineno
    between = "\n" + offsets.read_indent(first) if alone else "; "
    return _SourceEdit(start, start, _CHANGED_ARGUMENT.format(name) + between)


def _find_expected(node: ast.AST) -> ast.expr | None:
    """Return the side of an equality that holds the expected value."""
    if isinstance(node, ast.Assert) and isinstance(node.test, ast.Compare):
        compared = node.test
        alone = len(compared.ops) == 1 and isinstance(compared.ops[0], ast.Eq | ast.Is)
        return _choose_literal(compared.left, compared.comparators[0]) if alone else None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and len(node.args) >= 2:
        return _choose_literal(node.args[0], node.args[1]) if node.func.attr in _EQUALITY_METHODS else None
    return None


def _choose_literal(left: ast.expr, right: ast.expr) -> ast.expr:
    def literal(side: ast.expr) -> bool:
        return bool(_find_constants(side)) and not _has_call(side)

    return left if literal(left) and not literal(right) else right


def _has_call(node: ast.expr) -> bool:
    return any(isinstance(part, ast.Call) for part in ast.walk(node))


def _find_constants(node: ast.expr) -> list[ast.Constant]:
    """Return the replaceable constants of an expected value: none inside f-strings, calls and subscripts."""
    if isinstance(node, ast.Constant):
        return [] if node.value is Ellipsis else [node]
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return [constant for element in node.elts for constant in _find_constants(element)]
    if isinstance(node, ast.Dict):
        return [constant for value in node.values for constant in _find_constants(value)]
    if isinstance(node, ast.UnaryOp):
        return _find_constants(node.operand)
    return []


def _format_other_value(value: object) -> str:
    """Return Python text of a different value of the same type."""
    if isinstance(value, bool):
        return str(not value)
    if isinstance(value, int | float | complex):
        return repr(value + 1) if value + 1 != value else "1"
    if isinstance(value, str):
        return ascii(value + "q7")
    if isinstance(value, bytes):
        return ascii(value + b"q7")
    return "0"


def _append_failure(function: TestFunction, offsets: _SourceOffsets) -> _SourceEdit:
    """Return an edit that adds a failing statement after the last one of the body."""
    last, first = function.body[-1], function.body[0]
    end = offsets.find_end(last)
    if first.lineno == function.lineno:  # `def test_x(): pass`, all on one line
        return _SourceEdit(end, end, f"; {_FAILING_STATEMENT}")
    line_end = offsets.find_line_end(end)
    return _SourceEdit(line_end, line_end, "\n" + offsets.read_indent(first) + _FAILING_STATEMENT)


class _SourceOffsets:
    """Map from the parser's lines and columns (UTF-8 bytes) to offsets in the file."""

    def __init__(self, source: bytes) -> None:
        self.source = source
        self.bom = 3 if source.startswith(b"\xef\xbb\xbf") else 0
        self.starts = [0]
        for line in source.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))

    def find_offset(self, line: int, column: int) -> int:
        return self.starts[line - 1] + column + (self.bom if line == 1 else 0)

    def find_end(self, node: ast.stmt | ast.expr) -> int:
        return self.find_offset(node.end_lineno or node.lineno, node.end_col_offset or 0)

    def make_edit(self, node: ast.expr, text: str) -> _SourceEdit:
        return _SourceEdit(self.find_offset(node.lineno, node.col_offset), self.find_end(node), text)

    def find_line_end(self, offset: int) -> int:
        """Return the offset of the line's end, before its line break."""
        found = self.source.find(b"\n", offset)
        found = len(self.source) if found < 0 else found
        return found - 1 if self.source[found - 1 : found] == b"\r" else found

    def read_indent(self, node: ast.stmt) -> str:
        start = self.starts[node.lineno - 1]
        return self.source[start : start + node.col_offset].decode(errors="replace")


def _select_disjoint(edits: Iterable[_SourceEdit]) -> list[_SourceEdit]:
    """Return the edits from the end of the file to its start, without overlapping ones."""
    kept: list[_SourceEdit] = []
    for edit in sorted(set(edits), reverse=True):
        if not kept or edit.end <= kept[-1].start:
            kept.append(edit)
    return kept
