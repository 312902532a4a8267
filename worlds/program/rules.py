"""Rules on the text of a program: the names that it may import and name. RULES is the complete list.

They are the first wall and give a program's author a reason; the container is the second, and holds without them. A
module is used as `module.name` only and never as a value, so that the types that its attributes are is known here.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType

from guest.world.modules import ALLOWED_MODULES
from worlds.program.tree import ProgramError, parse_module
from worlds.reasons import Reason

_REFUSED_MODULES: Mapping[str, Reason] = {
    **dict.fromkeys(("os", "io", "pathlib", "shutil", "tempfile", "glob", "fileinput"), Reason.OPENS_FILE),
    **dict.fromkeys(("socket", "ssl", "http", "urllib", "requests", "asyncio", "socketserver"), Reason.OPENS_SOCKET),
    **dict.fromkeys(
        ("subprocess", "multiprocessing", "pty", "threading", "concurrent", "signal"), Reason.STARTS_PROCESS
    ),
    **dict.fromkeys(("time", "zoneinfo"), Reason.READS_CLOCK),
    **dict.fromkeys(("importlib", "code", "codeop", "runpy", "pickle", "marshal", "ctypes"), Reason.EVALUATES_CODE),
    **dict.fromkeys(("inspect", "gc", "sys", "builtins", "types", "traceback", "dis"), Reason.INTROSPECTION),
}
"""Modules whose refusal has a better reason than `import-refused`."""
_REFUSED_NAMES: Mapping[str, Reason] = {
    **dict.fromkeys(("open", "input"), Reason.OPENS_FILE),
    **dict.fromkeys(("eval", "exec", "compile", "__import__"), Reason.EVALUATES_CODE),
    **dict.fromkeys(
        ("breakpoint", "delattr", "getattr", "globals", "hash", "help", "id", "locals", "setattr", "vars"),
        Reason.INTROSPECTION,
    ),
}
"""Built-in functions. `hash` and `id` differ between runs."""
_REFUSED_ATTRIBUTES: Mapping[str, Reason] = {
    **dict.fromkeys(("now", "utcnow", "today"), Reason.READS_CLOCK),
    **dict.fromkeys(
        (
            *("f_back", "f_builtins", "f_code", "f_globals", "f_locals", "tb_frame", "tb_next", "gi_frame", "gi_code"),
            *("cr_frame", "cr_code", "ag_frame", "ag_code", "gi_yieldfrom", "cr_await", "mro"),
            *("attrgetter", "methodcaller", "Formatter", "get_type_hints", "make_dataclass", "ForwardRef"),
        ),
        Reason.INTROSPECTION,
    ),
}
"""Attributes, and names imported from modules, that reach frames or take names of attributes as text."""
_DUNDER = re.compile(r"__\w+__")
_METHODS = frozenset(("__init__", "__post_init__"))
"""The only dunder methods that a class may define: others run when objects are compared, copied or printed."""
_NAMES = frozenset(("__future__",))


@dataclass(frozen=True, kw_only=True)
class Violation:
    """Place of a program that breaks a rule."""

    reason: Reason
    line: int
    detail: str

    def __str__(self) -> str:
        return f"{self.reason.value}: line {self.line}: {self.detail}"


def check_imports(module: ast.Module) -> Iterator[Violation]:
    """Yield imports of modules that are not on the list, and of modules through them."""
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = ["." * node.level + (node.module or "")]
        else:
            continue
        for name in names:
            if name not in ALLOWED_MODULES:
                reason = _REFUSED_MODULES.get(name.partition(".")[0], Reason.IMPORT_REFUSED)
                yield Violation(reason=reason, line=node.lineno, detail=f"imports {name}")
        if isinstance(node, ast.ImportFrom) and names[0] in ALLOWED_MODULES:
            for alias in node.names:
                yield from _check_member(names[0], alias.name, node.lineno)


def check_modules(module: ast.Module) -> Iterator[Violation]:
    """Yield uses of an imported module other than any of its public names."""
    imported = {
        alias.asname or alias.name.partition(".")[0]: alias.name if alias.asname else alias.name.partition(".")[0]
        for node in ast.walk(module)
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.name in ALLOWED_MODULES
    }
    members = set()
    for node in ast.walk(module):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in imported:
            members.add(node.value)
            yield from _check_member(imported[node.value.id], node.attr, node.lineno)
    for node in ast.walk(module):
        if isinstance(node, ast.Name) and node.id in imported and node not in members:
            yield Violation(reason=Reason.INTROSPECTION, line=node.lineno, detail=f"the module {node.id} is a value")


def check_names(module: ast.Module) -> Iterator[Violation]:
    """Yield uses of built-in functions that open files, evaluate code or look into objects."""
    bound = {node.id for node in ast.walk(module) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    bound |= {node.arg for node in ast.walk(module) if isinstance(node, ast.arg)}
    for node in ast.walk(module):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in _REFUSED_NAMES:
            # A parameter may be named `id` or `hash`; the dangerous names are refused even then.
            if node.id in ("id", "hash", "input", "help") and node.id in bound:
                continue
            yield Violation(reason=_REFUSED_NAMES[node.id], line=node.lineno, detail=f"names {node.id}")


def check_attributes(module: ast.Module) -> Iterator[Violation]:
    """Yield attributes that read the clock, reach frames, or take names of attributes as text."""
    for node in ast.walk(module):
        if isinstance(node, ast.Attribute) and node.attr in _REFUSED_ATTRIBUTES and not _is_own(node):
            yield Violation(
                reason=_REFUSED_ATTRIBUTES[node.attr], line=node.lineno, detail=f"uses {ast.unparse(node)[:80]}"
            )


def check_dunders(module: ast.Module) -> Iterator[Violation]:
    """Yield dunder names in code and in strings, docstrings excepted."""
    documentation = {id(node.value) for node in ast.walk(module) if isinstance(node, ast.Expr)}
    for node in ast.walk(module):
        match node:
            case ast.Attribute(attr=name) | ast.Name(id=name) | ast.keyword(arg=str(name)) | ast.arg(arg=name):
                is_dunder = bool(_DUNDER.fullmatch(name)) and name not in _NAMES
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                is_dunder = bool(_DUNDER.fullmatch(name)) and name not in _METHODS
            case ast.Constant(value=str(name)) if id(node) not in documentation:
                is_dunder = bool(_DUNDER.search(name))
            case ast.Constant(value=bytes(data)):
                name = data.decode("latin-1")
                is_dunder = bool(_DUNDER.search(name))
            case _:
                continue
        if is_dunder:
            line = getattr(node, "lineno", 0)
            yield Violation(reason=Reason.DUNDER_ACCESS, line=line, detail=f"names {name[:80]}")


Rule = Callable[[ast.Module], Iterator[Violation]]
RULES: tuple[Rule, ...] = (check_imports, check_names, check_attributes, check_dunders, check_modules)


def find_violations(source: str) -> tuple[Violation, ...]:
    """Return the places of a program, or of a check's source, that break a rule, in the order of RULES."""
    try:
        module = parse_module(source)
    except ProgramError as error:
        return (Violation(reason=error.reason, line=0, detail=str(error)),)
    return tuple(violation for rule in RULES for violation in rule(module))


def _check_member(module_name: str, name: str, line: int) -> Iterator[Violation]:
    """Yield a violation where a name of a module is private or again a module."""
    full = f"{module_name}.{name}"
    if name in _REFUSED_ATTRIBUTES:
        yield Violation(reason=_REFUSED_ATTRIBUTES[name], line=line, detail=f"uses {full}")
    elif full not in ALLOWED_MODULES and (
        name.startswith("_") or isinstance(getattr(import_module(module_name), name, None), ModuleType)
    ):
        yield Violation(reason=Reason.INTROSPECTION, line=line, detail=f"reaches {full}")


def _is_own(node: ast.Attribute) -> bool:
    """Return whether an attribute belongs to the world's object, such as `self.today`."""
    return isinstance(node.value, ast.Name) and node.value.id == "self"
