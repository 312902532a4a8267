"""`setup.py` read by AST, never executed: the arguments of `setup()` as far as they are plain data."""

from __future__ import annotations

import ast
from typing import Any

from languages.tree import Tree


class Unknown(Exception):  # noqa: N818 - not an error: the expression is no plain data
    """An expression that only running the file would tell."""


def setup_arguments(tree: Tree, path: str = "setup.py") -> dict[str, tuple[Any, int]]:
    """Keyword -> (value, line) of the call of `setup()`; keywords whose value is no plain data are left out."""
    try:
        module = ast.parse(tree.read(path))
    except (SyntaxError, ValueError):
        return {}
    reader = _Reader(tree)
    reader.learn(module)
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "setup":
            return reader.keywords(node)
    return {}


class _Reader:
    """Evaluates literals, names, sums, dict and list displays, `open(...).read().splitlines()` and the like."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.names: dict[str, Any] = {}

    def learn(self, module: ast.Module) -> None:
        """Take in assignments: `x = ...`, `x += ...`, `x["k"] = ...`, also in the bodies of `with` and `if`."""
        for node in ast.walk(module):
            try:
                self._learn_one(node)
            except Unknown:
                continue

    def _learn_one(self, node: ast.AST) -> None:
        if isinstance(node, ast.Assign):
            value = self.value(node.value)
            for target in node.targets:
                self._assign(target, value)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and isinstance(node.op, ast.Add):
            held: Any = self.names.get(node.target.id)
            more = self.value(node.value)
            if type(held) is type(more) and isinstance(held, list | str):
                self.names[node.target.id] = held + more
        elif isinstance(node, ast.With):
            for item in node.items:
                if isinstance(item.optional_vars, ast.Name):
                    self.names[item.optional_vars.id] = self.value(item.context_expr)

    def _assign(self, target: ast.expr, value: Any) -> None:
        if isinstance(target, ast.Name):
            self.names.setdefault(target.id, value)
        elif isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            held = self.names.get(target.value.id)
            if isinstance(held, dict):
                held[self.value(target.slice)] = value

    def keywords(self, call: ast.Call) -> dict[str, tuple[Any, int]]:
        found: dict[str, tuple[Any, int]] = {}
        for keyword in call.keywords:
            try:
                value = self.value(keyword.value)
            except Unknown:
                continue
            if keyword.arg is not None:
                found[keyword.arg] = (value, keyword.value.lineno)
            elif isinstance(value, dict):
                found.update({str(name): (item, keyword.value.lineno) for name, item in value.items()})
        return found

    def value(self, node: ast.expr) -> Any:  # noqa: PLR0911 - one case a line
        """The value of an expression.

        Raises:
            Unknown: it isn't plain data.
        """
        match node:
            case ast.Constant():
                return node.value
            case ast.Name() if node.id in self.names:
                return self.names[node.id]
            case ast.List() | ast.Tuple() | ast.Set():
                return [self.value(item) for item in node.elts]
            case ast.Dict():
                return self._dict(node)
            case ast.BinOp(op=ast.Add()):
                left, right = self.value(node.left), self.value(node.right)
                if type(left) is type(right) and isinstance(left, list | str):
                    return left + right
            case ast.Subscript():
                held, key = self.value(node.value), self.value(node.slice)
                if isinstance(held, dict) and key in held:
                    return held[key]
            case ast.Call():
                return self._call(node)
        raise Unknown(ast.dump(node)[:80])

    def _dict(self, node: ast.Dict) -> dict[Any, Any]:
        result: dict[Any, Any] = {}
        for key, item in zip(node.keys, node.values, strict=True):
            try:
                value = self.value(item)
                if key is not None:
                    result[self.value(key)] = value
                elif isinstance(value, dict):
                    result.update(value)
            except Unknown:
                continue  # one unreadable entry shall not hide the others
        return result

    def _call(self, node: ast.Call) -> Any:
        match node.func, node.args:
            case ast.Name(id="dict"), []:
                return {word.arg: self.value(word.value) for word in node.keywords if word.arg}
            case ast.Name(id="open" | "read" | "read_file" | "readfile" | "parse_requirements" as name), [first, *_]:
                text = self._file(first)
                return text.splitlines() if name == "parse_requirements" else text
            case ast.Attribute(value=base, attr="open"), [first, *_] if isinstance(base, ast.Name):
                return self._file(first)
            case ast.Attribute(value=base, attr="read" | "strip" | "decode" | "rstrip"), _:
                return self.value(base)
            case ast.Attribute(value=base, attr="splitlines" | "readlines" | "split"), _:
                text = self.value(base)
                if isinstance(text, str):
                    return text.splitlines()
            case ast.Name(id="list" | "sorted" | "tuple" | "set"), [first]:
                return self.value(first)
        raise Unknown(ast.dump(node)[:80])

    def _file(self, node: ast.expr) -> str:
        """Text of the file that the last string literal of a path expression names."""
        strings = [n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
        path = "/".join(s.strip("/") for s in strings)
        if not self.tree.is_file(path):
            raise Unknown(path)
        return self.tree.read(path)
