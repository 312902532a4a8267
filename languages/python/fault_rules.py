"""Rules for test files of Python, by their syntax tree: see `languages.test_faults`."""

from __future__ import annotations

import ast
import builtins
import re
import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property

from languages.test_faults import TestFault, TestFaultReason
from languages.test_faults.text import find_searcher, names_source

_R = TestFaultReason
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_READERS = frozenset(
    {"open", "read_text", "read_bytes", "readlines", "getlines", "getline", "loadtxt", "fdopen", "mmap"}
)
_WRITERS = frozenset({"write_text", "write_bytes", "unlink", "rename", "replace_text", "rmtree", "copyfile", "touch"})
_SOURCE_TEXT = frozenset(
    {
        "getsource",
        "getsourcelines",
        "getsourcefile",
        "findsource",
        "getcomments",
        "get_source",
        "get_data",
        "get_code",
        "cache_from_source",
        "getmodulename",
        "disassemble",
        "Bytecode",
        "get_instructions",
    }
)
"""Functions that return the text or the code of a module or function."""
_CODE_ATTRIBUTES = frozenset({"__code__", "co_code", "co_consts", "co_names", "co_varnames", "func_code", "__spec__"})
_LISTERS = frozenset({"glob", "rglob", "iglob", "walk", "scandir", "listdir", "iterdir"})
_STARTERS = frozenset(
    {"run", "call", "check_call", "check_output", "Popen", "system", "popen", "getoutput", "getstatusoutput"}
    | {"create_subprocess_exec", "create_subprocess_shell", "execv", "execvp", "spawnv"}
)
_GIT_MODULES = frozenset({"git", "pygit2", "dulwich", "gitdb"})
_RUNNER_MODULES = frozenset({"_pytest"})
_SKIP_MARKS = frozenset({"skipif", "skipIf", "skipUnless"})
_SKIPS = frozenset({"skip", "xfail", "SkipTest", "skipTest", "expectedFailure"})
_PLATFORM_NAMES = frozenset({"sys", "platform", "os"})
_PLATFORM_ATTRIBUTES = frozenset(
    {"version_info", "platform", "name", "system", "machine", "implementation", "python_implementation", "maxsize"}
)
_ENDINGS = frozenset({"_exit", "abort", "kill", "killpg"})
_EXISTENCE = frozenset(
    {
        "import_module",
        "reload",
        "find_spec",
        "signature",
        "getmembers",
        "isfunction",
        "isclass",
        "ismodule",
        "iscoroutinefunction",
        "getdoc",
        "getfullargspec",
        "get_type_hints",
    }
)
"""Calls that find out whether something exists, without running the program, in addition to builtins."""
_TEST_MODULES = frozenset({"pytest", "mock", "nose", "hamcrest"})
"""Modules of tests that do not come with Python."""
_BUILTINS = frozenset(dir(builtins))
_GIT_PATH = re.compile(r"(^|/)\.git(/|$)")
_PYTHON_FILES = re.compile(r"\*\.?\w*\.pyx?$")
_WRITING_MODE = re.compile(r"[rbt]*[wax+][rbt+]*")
_TMP = re.compile(r"tmp|temp|monkeypatch|isolated", re.IGNORECASE)


def find_test_fault(text: str, sources: Collection[str]) -> TestFault | None:
    """Return the first fault of a test file of Python; arguments as in `languages.test_faults`."""
    try:
        module = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None) or 1
        return TestFault(reason=_R.UNREADABLE, line=line, detail=f"it is no Python: {error}")
    file = _TestFile(module, sources)
    faults = sorted(file.iterate_node_faults(), key=lambda fault: fault.line)
    return next(iter(faults), None) or next(file.iterate_test_faults(), None)


@dataclass(frozen=True)
class _TestFile:
    """A parsed test file."""

    module: ast.Module
    sources: Collection[str]

    def iterate_node_faults(self) -> Iterator[TestFault]:
        """Yield the problem with single statements and expressions."""
        for node in ast.walk(self.module):
            for reason, detail in filter(None, self._iterate_node_faults(node)):
                yield TestFault(reason=reason, line=getattr(node, "lineno", 1), detail=detail)

    def iterate_test_faults(self) -> Iterator[TestFault]:
        """Yield the problem with whole tests."""
        if not self.tests:
            yield TestFault(reason=_R.UNREADABLE, line=1, detail="it defines no test")
        for test in self.tests:
            if fault := self._examine_test(test):
                yield TestFault(reason=fault[0], line=test.lineno, detail=f"{test.name} {fault[1]}")

    # ------------------------------------------------------------------------------------------------- the tree

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        """Node -> the node that contains it."""
        return {child: node for node in ast.walk(self.module) for child in ast.iter_child_nodes(node)}

    @cached_property
    def tests(self) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
        """Functions that pytest or unittest collects."""
        return [n for n in ast.walk(self.module) if isinstance(n, _FUNCTIONS) and n.name.startswith("test")]

    @cached_property
    def functions(self) -> dict[str, ast.FunctionDef | ast.AsyncFunctionDef]:
        """Name -> function or method of the file that is not a test."""
        return {
            node.name: node
            for node in ast.walk(self.module)
            if isinstance(node, _FUNCTIONS) and not node.name.startswith("test")
        }

    @cached_property
    def packages(self) -> set[str]:
        """First names of the program's modules."""
        names = set()
        for path in self.sources:
            parts = path.removesuffix(".py").split("/")
            names |= {part for part in parts if part not in ("src", "lib", "python", "__init__")}
        return names

    @cached_property
    def program_names(self) -> set[str]:
        """Names that an import of the program's modules binds."""
        names = set()
        for node in ast.walk(self.module):
            if isinstance(node, ast.ImportFrom) and (node.level or (node.module or "").split(".")[0] in self.packages):
                names |= {alias.asname or alias.name for alias in node.names}
            elif isinstance(node, ast.Import):
                names |= {
                    alias.asname or alias.name.split(".")[0]
                    for alias in node.names
                    if alias.name.split(".")[0] in self.packages
                }
        return names

    @cached_property
    def temporary_names(self) -> set[str]:
        """Names of values that are made from a temporary folder."""
        names: set[str] = set()
        assigned = [
            (target.id, node.value)
            for node in ast.walk(self.module)
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        ]
        assigned += [
            (item.optional_vars.id, item.context_expr)
            for node in ast.walk(self.module)
            if isinstance(node, ast.With | ast.AsyncWith)
            for item in node.items
            if isinstance(item.optional_vars, ast.Name)
        ]
        for _ in assigned:
            more = {name for name, value in assigned if name not in names and self._is_temporary(value, names)}
            if not more:
                break
            names |= more
        return names

    def _is_temporary(self, node: ast.AST, known: Collection[str]) -> bool:
        names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
        names |= {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)}
        return any(name in known or _TMP.search(name) for name in names)

    def _list_constants(self, node: ast.AST) -> list[str]:
        """Return the strings of an expression; constants that are added or joined are a single string, too."""
        nodes = [part for part in ast.walk(node) if isinstance(part, ast.Constant) and isinstance(part.value, str)]
        constants = [
            str(constant.value)
            for constant in sorted(nodes, key=lambda constant: (constant.lineno, constant.col_offset))
        ]
        return [*constants, "".join(constants), "/".join(constants)] if len(constants) > 1 else constants

    def _resolve(self, node: ast.AST, depth: int = 4) -> list[ast.AST]:
        """Return an expression and the values that are assigned to the names in it."""
        nodes = [node]
        names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
        for other in ast.walk(self.module) if depth else ():
            values = []
            if isinstance(other, ast.Assign | ast.AnnAssign | ast.NamedExpr) and other.value is not None:
                targets = other.targets if isinstance(other, ast.Assign) else [other.target]
                values = [other.value] if any(isinstance(t, ast.Name) and t.id in names for t in targets) else []
            elif isinstance(other, ast.For | ast.comprehension):
                values = [other.iter] if isinstance(other.target, ast.Name) and other.target.id in names else []
            elif isinstance(other, ast.With | ast.AsyncWith):
                values = [
                    item.context_expr
                    for item in other.items
                    if isinstance(item.optional_vars, ast.Name) and item.optional_vars.id in names
                ]
            for value in values:
                if value is not node:
                    nodes += self._resolve(value, depth - 1)
        return nodes

    def _touches_source(self, node: ast.AST) -> bool:
        """Return whether an expression, its names resolved, leads to a file of the program."""
        nodes = self._resolve(node)
        if any(self._is_temporary(part, self.temporary_names) for part in nodes):
            return False
        return any(
            names_source(text, self.sources) or _PYTHON_FILES.search(text)
            for part in nodes
            for text in self._list_constants(part)
        ) or any(
            isinstance(sub, ast.Attribute) and sub.attr in ("__file__", "__path__", "origin")
            for part in nodes
            for sub in ast.walk(part)
        )

    # ---------------------------------------------------------------------------------------------- single nodes

    def _iterate_node_faults(self, node: ast.AST) -> Iterator[tuple[TestFaultReason, str] | None]:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield self._examine_import(node)
        elif isinstance(node, ast.Attribute):
            yield self._examine_attribute(node)
        elif isinstance(node, ast.Call):
            yield from self._iterate_call_faults(node)
        elif isinstance(node, ast.Try):
            yield self._examine_try(node)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _GIT_PATH.search(node.value):
            yield None if self._is_in_temporary(node) else (_R.READS_GIT, f"names {node.value!r}")
        elif isinstance(node, _FUNCTIONS) and node.name.startswith("pytest_"):
            yield _R.ENDS_RUN, f"defines {node.name}, a hook of the test runner"
        elif isinstance(node, ast.Raise) and node.exc is not None and "SkipTest" in ast.dump(node.exc):
            yield self._examine_skip(node)

    def _examine_import(self, node: ast.Import | ast.ImportFrom) -> tuple[TestFaultReason, str] | None:
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
        for name in names:
            first = name.split(".")[0]
            if first in _GIT_MODULES and first not in self.packages and not getattr(node, "level", 0):
                return _R.READS_GIT, f"imports {name}"
            if first in _RUNNER_MODULES:
                return _R.ENDS_RUN, f"imports {name}, a part of the test runner"
        if isinstance(node, ast.ImportFrom) and node.module == "inspect":
            for alias in node.names:
                if alias.name in _SOURCE_TEXT:
                    return _R.READS_SOURCE, f"imports inspect.{alias.name}"
        return None

    def _examine_attribute(self, node: ast.Attribute) -> tuple[TestFaultReason, str] | None:
        if node.attr in _CODE_ATTRIBUTES:
            return _R.READS_SOURCE, f"reads {node.attr}"
        if node.attr in ("__file__", "__path__") and _get_root(node) in self.program_names:
            return _R.READS_SOURCE, f"reads {ast.unparse(node)}"
        if node.attr in ("_getframe", "settrace", "setprofile", "currentframe"):
            return _R.ENDS_RUN, f"uses {ast.unparse(node)}"
        return None

    def _iterate_call_faults(self, node: ast.Call) -> Iterator[tuple[TestFaultReason, str] | None]:
        name, root, text = _get_name(node.func), _get_root(node.func), ast.unparse(node.func)
        if name in _SOURCE_TEXT and root not in self.program_names:
            yield _R.READS_SOURCE, f"calls {text}"
        if name in _READERS | _WRITERS and self._touches_source(node):
            writes = name in _WRITERS or any(map(_is_writing_mode, _list_arguments(node)))
            yield (
                (_R.CHANGES_SOURCE, f"{text} writes to a file of the program")
                if writes
                else (_R.READS_SOURCE, f"{text} reads a file of the program")
            )
        if name in _LISTERS and self._lists_sources(node):
            yield _R.READS_SOURCE, f"{text} lists files of the program"
        if name in _STARTERS or text in ("exec", "eval"):
            yield self._examine_start(node)
        if name in _ENDINGS or (name in ("exit", "quit") and root in ("sys", "os", "exit", "quit")):
            yield _R.ENDS_RUN, f"calls {text}"
        if name == "importorskip" and any(c.split(".")[0] in self.packages for c in self._list_constants(node)):
            yield _R.SKIPS, "skips where a module of the program is missing"
        if name in _SKIP_MARKS and not (node.args and _is_about_platform(node.args[0])):
            yield _R.SKIPS, f"{text} has a condition that depends on more than the platform"
        if name in _SKIPS and root not in self.program_names:
            yield self._examine_skip(node)

    def _lists_sources(self, node: ast.Call) -> bool:
        if self._is_temporary(node, self.temporary_names):
            return False
        constants = [text for part in self._resolve(node) for text in self._list_constants(part)]
        folders = {part for path in self.sources for part in path.split("/")[:-1]}
        return any(
            text.strip("./") in folders or text in (".", "..") or text.endswith((".py", "*")) for text in constants
        )

    def _examine_start(self, node: ast.Call) -> tuple[TestFaultReason, str] | None:
        if self._is_temporary(node, self.temporary_names):
            return None
        for argument in node.args[:1]:
            for part in self._resolve(argument):
                constants = self._list_constants(part)
                program = next(filter(None, map(find_searcher, constants[:1])), None)
                if program is not None:
                    is_git = program == "git"
                    return _R.READS_GIT if is_git else _R.SEARCHES_SOURCE, f"starts {program}"
                for text in constants:
                    if re.search(r"\bopen\(|read_text|getsource", text) and names_source(text, self.sources):
                        return _R.READS_SOURCE, "starts a program that reads a file of the program"
        return None

    def _examine_skip(self, node: ast.AST) -> tuple[TestFaultReason, str] | None:
        above: ast.AST | None = node
        while above is not None:
            if isinstance(above, ast.If | ast.IfExp) and _is_about_platform(above.test):
                return None
            above = self.parents.get(above)
        return _R.SKIPS, "a test is skipped, or expected to fail"

    def _examine_try(self, node: ast.Try) -> tuple[TestFaultReason, str] | None:
        """Refuse tests that pass when the program lacks a name or fails."""
        guards = [
            statement
            for statement in node.body
            if isinstance(statement, ast.Import | ast.ImportFrom) or _contains_assertion(statement)
        ]
        for handler in node.handlers:
            caught = ast.dump(handler.type) if handler.type is not None else "BaseException"
            swallows = re.search(
                r"ImportError|ModuleNotFound|AttributeError|AssertionError|'Exception'|BaseException", caught
            )
            if guards and swallows and not any(isinstance(part, ast.Raise) for part in ast.walk(handler)):
                return _R.SKIPS, "an import or assertion that fails is ignored"
        return None

    def _is_in_temporary(self, node: ast.AST) -> bool:
        above: ast.AST | None = node
        while above is not None and not isinstance(above, ast.stmt):
            above = self.parents.get(above)
        return above is not None and self._is_temporary(above, self.temporary_names)

    # ---------------------------------------------------------------------------------------------- whole tests

    def _examine_test(self, test: ast.FunctionDef | ast.AsyncFunctionDef) -> tuple[TestFaultReason, str] | None:
        nodes = self._list_reached(test)
        assertions = [node for function in nodes for node in ast.walk(function) if _is_assertion(node)]
        if not assertions:
            return _R.NO_ASSERTION, "asserts nothing"
        if all(isinstance(node, ast.Assert) and not _has_name(node.test) for node in assertions):
            return _R.NO_ASSERTION, "asserts only constants"
        if not any(self._runs_program(node) for function in nodes for node in ast.walk(function)):
            return _R.NO_CALL, "calls nothing of the program"
        return None

    def _list_reached(self, test: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.AST]:
        """Return a test, and the functions and fixtures of its file that it uses."""
        reached: dict[str, ast.AST] = {test.name: test}
        reached |= {name: self.functions[name] for name in ("setUp", "setup_method") if name in self.functions}
        todo = list(reached.values())
        while todo:
            node = todo.pop()
            names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
            names |= {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)}
            # pytest passes fixtures by the names of arguments.
            names |= {part.arg for part in ast.walk(node) if isinstance(part, ast.arg)}
            for name in names & self.functions.keys() - reached.keys():
                reached[name] = self.functions[name]
                todo.append(self.functions[name])
        return list(reached.values())

    def _runs_program(self, node: ast.AST) -> bool:
        """Return whether a call may run code of the program: not that of Python, the runner, or about existence."""
        if not isinstance(node, ast.Call):
            return False
        name, root = _get_name(node.func), _get_root(node.func)
        if name in _EXISTENCE and root not in self.program_names:
            return False
        if root in _TEST_MODULES or _is_assertion(node):
            return False
        if root == "self" and name.startswith(("assert", "fail", "subTest")):
            return False
        if root in self.program_names or name in _STARTERS:
            return True
        return root not in sys.stdlib_module_names and root not in _BUILTINS


def _get_name(node: ast.AST) -> str:
    """Return the last name of the function that is called."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _get_root(node: ast.AST) -> str:
    """Return the first name of an expression."""
    while True:
        if isinstance(node, ast.Attribute | ast.Subscript | ast.Starred):
            node = node.value
        elif isinstance(node, ast.Call):
            node = node.func
        else:
            return node.id if isinstance(node, ast.Name) else ""


def _list_arguments(node: ast.Call) -> list[ast.expr]:
    """Return the arguments of a call but the first, which names the file that is opened."""
    return [*node.args[1:], *(keyword.value for keyword in node.keywords)]


def _is_writing_mode(node: ast.expr) -> bool:
    """Return whether an argument is a mode of `open` that writes."""
    return (
        isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and _WRITING_MODE.fullmatch(node.value) is not None
    )


def _is_assertion(node: ast.AST) -> bool:
    if isinstance(node, ast.Assert):
        return True
    if not isinstance(node, ast.Call):
        return False
    name = _get_name(node.func)
    return name.lower().startswith("assert") or name in ("raises", "warns", "fail", "approx_equal", "deprecated_call")


def _contains_assertion(node: ast.AST) -> bool:
    return any(_is_assertion(part) for part in ast.walk(node))


def _has_name(node: ast.AST) -> bool:
    return any(isinstance(part, ast.Name | ast.Attribute | ast.Call) for part in ast.walk(node))


def _is_about_platform(node: ast.AST) -> bool:
    """Return whether a condition depends on interpreter and operating system alone."""
    names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    attributes = {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)}
    known = {"startswith"} | _PLATFORM_ATTRIBUTES
    return bool(names) and names <= _PLATFORM_NAMES and attributes <= known
