"""Assembly of a program: a class without operations, then methods after its own, imports at the top and each once.

Every answer is checked when it comes, so that another can be requested: the fault that a method breaks shows in the
class with this method alone.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from worlds.model_requests import RefusedAnswerError
from worlds.program.analysis import ProgramAnalysis, ToolKind, analyse_program
from worlds.program.tree import ProgramError, get_own_attribute, is_data_class, parse_module
from worlds.reasons import Reason

_PROBE = '''    def probe(self) -> dict[str, Any]:
        """Stand for the operations that are not written yet."""
        return {"success": True, "data": None}
'''
_INDENT = "    "


@dataclass(frozen=True, kw_only=True)
class Method:
    """A method with its own helpers, not indented, and the imports that stood above it."""

    name: str
    source: str
    imports: tuple[ast.stmt, ...] = ()
    helpers: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ClassSkeleton:
    """The module with the class of a world, without operations.

    Raises:
        RefusedAnswerError: when a property is read, the source is not such a module.
    """

    source: str

    @cached_property
    def module(self) -> ast.Module:
        """The syntax tree."""
        return _parse(self.source)

    @cached_property
    def world(self) -> ast.ClassDef:
        """The class."""
        classes = [node for node in self.module.body if isinstance(node, ast.ClassDef) and not is_data_class(node)]
        if len(classes) != 1:
            names = ", ".join(node.name for node in classes) or "none"
            raise RefusedAnswerError(Reason.NO_WORLD_CLASS, f"one class is needed besides TypedDicts; found: {names}")
        return classes[0]

    @property
    def helpers(self) -> list[str]:
        """Names of the methods that the class has."""
        return [node.name for node in self.world.body if isinstance(node, ast.FunctionDef)]

    def assemble(self, methods: Sequence[Method]) -> str:
        """Return the program with these methods.

        Raises:
            RefusedAnswerError: it is not Python.
        """
        imports = [node for node in self.module.body if _is_import(node)]
        imports += [node for method in methods for node in method.imports]
        end = self.world.end_lineno or 0
        lines = self.source.splitlines()
        # Blank lines take the place of imports, so that the line numbers of the tree stay valid.
        for node in self.module.body:
            if _is_import(node):
                lines[node.lineno - 1 : node.end_lineno] = [""] * ((node.end_lineno or 0) - node.lineno + 1)
        added = [textwrap.indent(method.source.strip("\n"), _INDENT) for method in methods]
        body = "\n".join([*lines[:end], *(f"\n{method}" for method in added), *lines[end:]])
        documentation, rest = self._split_documentation(body)
        program = "\n\n".join(
            part for part in (documentation, "\n".join(unite_imports(imports)), rest.strip("\n")) if part
        )
        _parse(f"{program}\n")
        return f"{program}\n"

    def _split_documentation(self, body: str) -> tuple[str, str]:
        """Return the docstring of the module and the rest of its text."""
        if ast.get_docstring(self.module, clean=False) is None:
            return "", body
        end = self.module.body[0].end_lineno or 0
        lines = body.splitlines()
        return "\n".join(lines[:end]).strip("\n"), "\n".join(lines[end:])


def read_class(source: str) -> ClassSkeleton:
    """Return the class of an answer.

    Raises:
        RefusedAnswerError: it has no state with types, has operations, or breaks a rule of programs.
    """
    skeleton = ClassSkeleton(source=source)
    public = [name for name in skeleton.helpers if not name.startswith("_")]
    if public:
        raise RefusedAnswerError(Reason.WRONG_METHOD, f"the class has the public method {public[0]}; write none yet")
    if "__init__" not in skeleton.helpers:
        raise RefusedAnswerError(Reason.NO_WORLD_CLASS, "the class has no __init__ that takes the state")
    # The rules are those of whole programs, and the operations are written later.
    probe = Method(name="probe", source=textwrap.dedent(_PROBE))
    analysis = analyse_program(skeleton.assemble([probe]))
    _raise_violation(analysis)
    if not analysis.state_schema.get("properties"):
        raise RefusedAnswerError(Reason.WRONG_STATE_TYPE, "__init__ assigns no attribute")
    if untyped := [name for name, schema in analysis.state_schema["properties"].items() if not schema]:
        raise RefusedAnswerError(Reason.WRONG_STATE_TYPE, f"the attribute {untyped[0]} has no type")
    return skeleton


def read_method(
    source: str,
    name: str,
    kind: ToolKind,
    skeleton: ClassSkeleton,
    *,
    operations: Collection[str],
    taken: Collection[str],
) -> Method:
    """Return the method of an answer.

    Args:
        source: code of the answer.
        name: name that the method must have.
        kind: kind that it must have.
        skeleton: the class.
        operations: names of all operations, which methods may call.
        taken: names of the helpers that other answers brought.

    Raises:
        RefusedAnswerError: it is not this one method, or breaks a rule of programs.
    """
    functions, imports = _split_answer(source)
    names = [node.name for node in functions]
    if names.count(name) != 1:
        raise RefusedAnswerError(Reason.WRONG_METHOD, f"there is no method {name}, or more than one")
    for node in functions:
        if node.name != name and (not node.name.startswith("_") or node.name in {*skeleton.helpers, *taken}):
            raise RefusedAnswerError(
                Reason.WRONG_METHOD, f"{node.name} is there already or is another operation; write {name} alone"
            )
        if node.decorator_list:
            raise RefusedAnswerError(Reason.WRONG_METHOD, f"{node.name} has a decorator")
    text = "\n\n".join(textwrap.dedent(ast.get_source_segment(source, node, padded=True) or "") for node in functions)
    helpers = tuple(helper for helper in names if helper != name)
    method = Method(name=name, source=text, imports=tuple(imports), helpers=helpers)
    analysis = analyse_program(skeleton.assemble([method]))
    _raise_violation(analysis)
    function = next(node for node in functions if node.name == name)
    if problem := find_return_problem(function):
        raise RefusedAnswerError(Reason.NO_SUCCESS, problem)
    known = {*analysis.state_schema["properties"], *skeleton.helpers, *names, *operations, *_list_class_names(skeleton)}
    unknown = sorted({own for node in ast.walk(function) if (own := get_own_attribute(node)) and own not in known})
    if unknown:
        raise RefusedAnswerError(Reason.RAISES, f"the class has no self.{unknown[0]}")
    if analysis.kinds[name] is not kind:
        raise RefusedAnswerError(
            Reason.OTHER_KIND,
            f"{name} was planned as a {kind.value}: a query returns `data`, a change `message`, in all that succeed",
        )
    return method


def find_return_problem(method: ast.FunctionDef) -> str:
    """Return which `return` gives no dict with `success`; calls and names are left to the sandbox."""
    returns = [node for node in _iterate_own_nodes(method) if isinstance(node, ast.Return)]
    if not returns:
        return f"{method.name} returns nothing"
    for node in returns:
        for value in _list_alternatives(node.value):
            match value:
                case ast.Dict(keys=keys):
                    names = {key.value for key in keys if isinstance(key, ast.Constant)}
                    # The key of `**other` is None; whether it holds `success` is left to the sandbox.
                    is_fine = "success" in names or None in keys
                case None | ast.Constant() | ast.List() | ast.Tuple() | ast.ListComp() | ast.JoinedStr():
                    is_fine = False
                case _:
                    is_fine = True
            if not is_fine:
                what = ast.unparse(value) if value is not None else "nothing"
                return f"{method.name} returns {what[:80]}, which is no dict with `success`"
    return ""


def unite_imports(nodes: Sequence[ast.stmt]) -> list[str]:
    """Return import statements, each name once, sorted, those of `__future__` first."""
    plain: set[str] = set()
    members: dict[str, set[str]] = {}
    for node in nodes:
        for alias in node.names if isinstance(node, ast.Import | ast.ImportFrom) else ():
            name = f"{alias.name} as {alias.asname}" if alias.asname else alias.name
            if isinstance(node, ast.ImportFrom):
                members.setdefault("." * node.level + (node.module or ""), set()).add(name)
            else:
                plain.add(name)
    future = members.pop("__future__", set())
    lines = [f"from __future__ import {', '.join(sorted(future))}"] if future else []
    lines += [f"import {name}" for name in sorted(plain)]
    return lines + [f"from {module} import {', '.join(sorted(names))}" for module, names in sorted(members.items())]


def _split_answer(source: str) -> tuple[list[ast.FunctionDef], list[ast.stmt]]:
    """Return functions and imports of an answer, which may repeat the line of the class."""
    module = _parse(source)
    body: list[ast.stmt] = []
    for node in module.body:
        body += node.body if isinstance(node, ast.ClassDef) and not is_data_class(node) else [node]
    functions = [node for node in body if isinstance(node, ast.FunctionDef)]
    imports = [node for node in body if _is_import(node)]
    others = [node for node in body if node not in functions and node not in imports and not _is_text(node)]
    if others:
        what = ast.unparse(others[0]).partition("\n")[0][:80]
        raise RefusedAnswerError(Reason.WRONG_METHOD, f"there is something besides the method: {what}")
    return functions, imports


def _parse(source: str) -> ast.Module:
    try:
        return parse_module(textwrap.dedent(source))
    except ProgramError as error:
        raise RefusedAnswerError(error.reason, str(error)) from None


def _raise_violation(analysis: ProgramAnalysis) -> None:
    if analysis.violations:
        first = analysis.violations[0]
        raise RefusedAnswerError(first.reason, str(first))


def _list_class_names(skeleton: ClassSkeleton) -> list[str]:
    """Return the names that the class itself assigns, such as constants."""
    nodes = [node for node in skeleton.world.body if isinstance(node, ast.AnnAssign | ast.Assign)]
    targets = [target for node in nodes for target in (node.targets if isinstance(node, ast.Assign) else [node.target])]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _list_alternatives(node: ast.expr | None) -> list[ast.expr | None]:
    if isinstance(node, ast.IfExp):
        return [*_list_alternatives(node.body), *_list_alternatives(node.orelse)]
    return [node]


def _iterate_own_nodes(method: ast.FunctionDef) -> Iterator[ast.AST]:
    """Yield the nodes of a function, without those of functions within it."""
    waiting: list[ast.AST] = list(method.body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            waiting += ast.iter_child_nodes(node)


def _is_import(node: ast.stmt) -> bool:
    return isinstance(node, ast.Import | ast.ImportFrom)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
