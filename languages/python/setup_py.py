"""Arguments of `setup()` in `setup.py`, as far as they are literal data. The file is parsed, never executed."""

from __future__ import annotations

import ast
from typing import Any

from languages.source_tree import SourceTree


class UnknownValueError(Exception):
    """The value of an expression is known only at run time."""


def read_setup_arguments(tree: SourceTree, path: str = "setup.py") -> dict[str, tuple[Any, int]]:
    """Return keyword -> (value, line) of the call of `setup()`; keywords with computed values are skipped."""
    try:
        module = ast.parse(tree.read(path))
    except (SyntaxError, ValueError):
        return {}
    evaluator = _LiteralEvaluator(tree)
    evaluator.assign_statements(module)
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "setup":
            return evaluator.evaluate_keywords(node)
    return {}


class _LiteralEvaluator:
    """Evaluates literals, names, sums, dict and list displays, `open(...).read().splitlines()` and similar."""

    def __init__(self, tree: SourceTree) -> None:
        self.tree = tree
        self.names: dict[str, Any] = {}

    def assign_statements(self, module: ast.Module) -> None:
        """Evaluate assignments: `x = ...`, `x += ...`, `x["k"] = ...`, also within `with` and `if`."""
        for node in ast.walk(module):
            try:
                self._assign_statement(node)
            except UnknownValueError:
                continue

    def _assign_statement(self, node: ast.AST) -> None:
        if isinstance(node, ast.Assign):
            value = self.evaluate(node.value)
            for target in node.targets:
                self._assign(target, value)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and isinstance(node.op, ast.Add):
            previous: Any = self.names.get(node.target.id)
            added = self.evaluate(node.value)
            if type(previous) is type(added) and isinstance(previous, list | str):
                self.names[node.target.id] = previous + added
        elif isinstance(node, ast.With):
            for item in node.items:
                if isinstance(item.optional_vars, ast.Name):
                    self.names[item.optional_vars.id] = self.evaluate(item.context_expr)

    def _assign(self, target: ast.expr, value: Any) -> None:
        if isinstance(target, ast.Name):
            self.names.setdefault(target.id, value)
        elif isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            mapping = self.names.get(target.value.id)
            if isinstance(mapping, dict):
                mapping[self.evaluate(target.slice)] = value

    def evaluate_keywords(self, call: ast.Call) -> dict[str, tuple[Any, int]]:
        values: dict[str, tuple[Any, int]] = {}
        for keyword in call.keywords:
            try:
                value = self.evaluate(keyword.value)
            except UnknownValueError:
                continue
            if keyword.arg is not None:
                values[keyword.arg] = (value, keyword.value.lineno)
            elif isinstance(value, dict):
                values.update({str(name): (item, keyword.value.lineno) for name, item in value.items()})
        return values

    def evaluate(self, node: ast.expr) -> Any:  # noqa: PLR0911 - one case per line
        """Return the value of an expression.

        Raises:
            UnknownValueError: it is not literal data.
        """
        match node:
            case ast.Constant():
                return node.value
            case ast.Name() if node.id in self.names:
                return self.names[node.id]
            case ast.List() | ast.Tuple() | ast.Set():
                return [self.evaluate(item) for item in node.elts]
            case ast.Dict():
                return self._evaluate_dict(node)
            case ast.BinOp(op=ast.Add()):
                left, right = self.evaluate(node.left), self.evaluate(node.right)
                if type(left) is type(right) and isinstance(left, list | str):
                    return left + right
            case ast.Subscript():
                mapping, key = self.evaluate(node.value), self.evaluate(node.slice)
                if isinstance(mapping, dict) and key in mapping:
                    return mapping[key]
            case ast.Call():
                return self._evaluate_call(node)
        raise UnknownValueError(ast.dump(node)[:80])

    def _evaluate_dict(self, node: ast.Dict) -> dict[Any, Any]:
        result: dict[Any, Any] = {}
        for key, item in zip(node.keys, node.values, strict=True):
            try:
                value = self.evaluate(item)
                if key is not None:
                    result[self.evaluate(key)] = value
                elif isinstance(value, dict):
                    result.update(value)
            except UnknownValueError:
                continue  # an unknown entry must not hide the others
        return result

    def _evaluate_call(self, node: ast.Call) -> Any:
        match node.func, node.args:
            case ast.Name(id="dict"), []:
                return {word.arg: self.evaluate(word.value) for word in node.keywords if word.arg}
            case ast.Name(id="open" | "read" | "read_file" | "readfile" | "parse_requirements" as name), [first, *_]:
                text = self._read_file(first)
                return text.splitlines() if name == "parse_requirements" else text
            case ast.Attribute(value=base, attr="open"), [first, *_] if isinstance(base, ast.Name):
                return self._read_file(first)
            case ast.Attribute(value=base, attr="read" | "strip" | "decode" | "rstrip"), _:
                return self.evaluate(base)
            case ast.Attribute(value=base, attr="splitlines" | "readlines" | "split"), _:
                text = self.evaluate(base)
                if isinstance(text, str):
                    return text.splitlines()
            case ast.Name(id="list" | "sorted" | "tuple" | "set"), [first]:
                return self.evaluate(first)
        raise UnknownValueError(ast.dump(node)[:80])

    def _read_file(self, node: ast.expr) -> str:
        """Return the text of the file whose path the string literals of an expression form."""
        strings = [n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
        path = "/".join(s.strip("/") for s in strings)
        if not self.tree.is_file(path):
            raise UnknownValueError(path)
        return self.tree.read(path)
