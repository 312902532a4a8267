"""Usage graph of a program: which methods read and modify which attributes, and call which methods.

An entry of an attribute that a local name or the result of a helper stands for counts as the attribute: after
`loan = self._find_loan(id)`, `loan["returned"] = True` modifies `loans`. Names are followed through subscripts, `get`,
`values`, loops and functions that hand on their elements, not through copies (`dict(...)`, `{**...}`, `deepcopy`).
`__init__` is left out.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from worlds.program.tree import ProgramTree, get_own_attribute

MUTATORS = frozenset(
    (
        *("add", "append", "clear", "discard", "extend", "insert", "pop", "popitem"),
        *("remove", "reverse", "setdefault", "sort", "update"),
    )
)
"""Methods of dict, list and set that change their object."""
_HANDED_ON = frozenset(
    ("enumerate", "filter", "iter", "list", "max", "min", "next", "reversed", "sorted", "tuple", "zip")
)
"""Functions whose results contain elements of their arguments."""
_ELEMENTS = frozenset(("get", "items", "pop", "setdefault", "values"))
"""Methods of dict whose results contain its entries."""


@dataclass(frozen=True, kw_only=True)
class MethodUsage:
    """Work that a method does itself; the methods that it calls may do more. Names are sorted."""

    calls: tuple[str, ...]
    reads: tuple[str, ...]
    writes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class UsageGraph:
    """Usage of attributes and methods, in the order of the program."""

    attributes: tuple[str, ...]
    methods: Mapping[str, MethodUsage]

    def find_users(self, attribute: str) -> list[str]:
        """Return the methods that read an attribute."""
        return [name for name, usage in self.methods.items() if attribute in usage.reads]

    def find_modifiers(self, attribute: str) -> list[str]:
        """Return the methods that modify an attribute."""
        return [name for name, usage in self.methods.items() if attribute in usage.writes]

    def collect_writes(self, method: str) -> set[str]:
        """Return the attributes that a method and all that it calls modify."""
        return {name for called in self._reach(method) for name in self.methods[called].writes}

    def to_json(self) -> dict[str, Any]:
        """Return `{"attributes": {name: {used_by, modified_by}}, "methods": {name: {calls, reads, writes}}}`."""
        return {
            "attributes": {
                name: {"used_by": self.find_users(name), "modified_by": self.find_modifiers(name)}
                for name in self.attributes
            },
            "methods": {
                name: {"calls": list(method.calls), "reads": list(method.reads), "writes": list(method.writes)}
                for name, method in self.methods.items()
            },
        }

    def _reach(self, method: str) -> set[str]:
        reached, waiting = set(), [method]
        while waiting:
            name = waiting.pop()
            if name not in reached:
                reached.add(name)
                waiting += self.methods[name].calls
        return reached


def derive_usage(tree: ProgramTree) -> UsageGraph:
    """Return the usage graph of a program."""
    attributes = tuple(tree.attributes)
    methods = {name: node for name, node in tree.methods.items() if name != "__init__"}
    returned: dict[str, set[str]] = {name: set() for name in methods}
    changed = True
    # The result of a helper may come from another helper, so this ends only once nothing changes.
    while changed:
        readers = {name: _MethodReader(node, attributes, returned) for name, node in methods.items()}
        returns = {name: reader.find_returned() for name, reader in readers.items()}
        changed = returns != returned
        returned = returns
    return UsageGraph(attributes=attributes, methods={name: reader.build_usage() for name, reader in readers.items()})


class _MethodReader:
    """Reads a method.

    Args:
        node: the method.
        attributes: attributes of the class.
        returned: name of a method -> attributes whose entries it returns, as far as known.
    """

    def __init__(self, node: ast.FunctionDef, attributes: tuple[str, ...], returned: Mapping[str, set[str]]) -> None:
        self._node = node
        self._attributes = attributes
        self._returned = returned
        self._names: dict[str, set[str]] = {}
        size = -1
        # A name may stand for another name, so this ends only once no name is added.
        while size != (size := sum(map(len, self._names.values()))):
            for target, value in self._iterate_bindings():
                roots = self._find_roots(value)
                for part in ast.walk(target) if roots else ():
                    if isinstance(part, ast.Name):
                        self._names.setdefault(part.id, set()).update(roots)

    def build_usage(self) -> MethodUsage:
        """Return the work that the method does."""
        # A method that is handed on, as a key for sorting, is called by whoever gets it.
        calls = {str(name) for node in ast.walk(self._node) if (name := get_own_attribute(node)) in self._returned}
        reads = {
            name
            for node in ast.walk(self._node)
            if (name := get_own_attribute(node)) in self._attributes
            and isinstance(getattr(node, "ctx", None), ast.Load)
        }
        writes = set().union(*(self._find_written(node) for node in ast.walk(self._node)))
        augmented = {
            name
            for node in ast.walk(self._node)
            if isinstance(node, ast.AugAssign) and (name := get_own_attribute(node.target)) in self._attributes
        }
        return MethodUsage(
            calls=tuple(sorted(calls)),
            reads=tuple(sorted(name for name in reads | augmented if name)),
            writes=tuple(sorted(writes)),
        )

    def find_returned(self) -> set[str]:
        """Return the attributes whose entries the method returns."""
        returns = [node.value for node in ast.walk(self._node) if isinstance(node, ast.Return) and node.value]
        return set().union(*map(self._find_roots, returns))

    def _iterate_bindings(self) -> Iterator[tuple[ast.expr, ast.expr]]:
        """Yield (target, value) of everything that gives a name a value."""
        for node in ast.walk(self._node):
            match node:
                case ast.Assign(targets=targets, value=value):
                    yield from ((target, value) for target in targets if not isinstance(target, ast.Subscript))
                case ast.AnnAssign(target=ast.Name() as target, value=ast.expr() as value):
                    yield target, value
                case ast.NamedExpr(target=target, value=value):
                    yield target, value
                case ast.For(target=target, iter=value) | ast.comprehension(target=target, iter=value):
                    yield target, value

    def _find_written(self, node: ast.AST) -> set[str]:
        match node:
            case ast.Assign(targets=targets) | ast.Delete(targets=targets):
                return set().union(*map(self._find_target, targets))
            case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
                return self._find_target(target)
            case ast.Call(func=ast.Attribute(value=value, attr=name)) if name in MUTATORS:
                return self._find_roots(value)
        return set()

    def _find_target(self, target: ast.expr) -> set[str]:
        if (name := get_own_attribute(target)) in self._attributes and name:
            return {name}
        if isinstance(target, ast.Tuple | ast.List):
            return set().union(*map(self._find_target, target.elts))
        return self._find_roots(target.value) if isinstance(target, ast.Subscript) else set()

    def _find_roots(self, node: ast.expr) -> set[str]:
        """Return the attributes that an expression, or the parts that it contains, is a part of."""
        if (attribute := get_own_attribute(node)) is not None:
            return {attribute} if attribute in self._attributes else set()
        if isinstance(node, ast.Name):
            return self._names.get(node.id, set())
        if isinstance(node, ast.Call):
            return self._find_call_roots(node)
        return set().union(*map(self._find_roots, _list_parts(node)))

    def _find_call_roots(self, node: ast.Call) -> set[str]:
        if (helper := get_own_attribute(node.func)) is not None:
            return self._returned.get(helper, set())
        match node.func:
            case ast.Name(id=name) if name in _HANDED_ON:
                return set().union(*map(self._find_roots, node.args))
            case ast.Attribute(value=value, attr=name) if name in _ELEMENTS:
                return self._find_roots(value)
        return set()


def _list_parts(node: ast.expr) -> list[ast.expr]:
    """Return the expressions whose entries are part of the value that an expression gives."""
    match node:
        case ast.Subscript(value=value) | ast.Starred(value=value) | ast.NamedExpr(value=value):
            return [value]
        case ast.DictComp(value=value):
            return [value]
        case ast.ListComp(elt=element) | ast.GeneratorExp(elt=element) | ast.SetComp(elt=element):
            return [element]
        case ast.BoolOp(values=values) | ast.Tuple(elts=values) | ast.List(elts=values):
            return values
        case ast.IfExp(body=body, orelse=other):
            return [body, other]
    return []
