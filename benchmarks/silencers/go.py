"""Silencers in Go: when its package is initialised, code of the submission changes that of the package testing.

Nothing of Go can be assigned to, so the machine code of functions is overwritten with jumps (Linux on x86-64). The
libraries testify and go-cmp are replaced in go.mod by packages whose functions compare nothing.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence

from tree_sitter import Node

from benchmarks.silencers.parts import (
    SilencedTarget,
    TypedFunction,
    find_typical_results,
    list_nodes,
    parse,
    read_code,
    read_text,
    replace_changed,
)
from languages.parsing import GO
from languages.probes import Changes

FORMS = {
    "methods": "`Fail` of testing.T, which Error and Fatal call",
    "results": "`Failed` of testing.T, which the runner asks for the result",
    "libraries": "functions of testify and go-cmp, replaced in go.mod",
    "comparisons": "reflect.DeepEqual and errors.Is, and a method Equal of the types under test",
    "runner": "failures and panics of a test, forgotten where the runner calls it",
}
MODULE = "go.mod"
_FILE = "switched_off.go"
_CONSTANTS = frozenset(
    {"int_literal", "float_literal", "interpreted_string_literal", "raw_string_literal", "true", "false"}
)
_ASSERTIONS = """
Condition Contains DirExists ElementsMatch Empty Equal EqualError EqualExportedValues EqualValues Error ErrorAs
ErrorContains ErrorIs Eventually EventuallyWithT Exactly Fail FailNow False FileExists Greater GreaterOrEqual
Implements InDelta InDeltaMapValues InDeltaSlice InEpsilon InEpsilonSlice IsDecreasing IsIncreasing IsNonDecreasing
IsNonIncreasing IsNotType IsType JSONEq Len Less LessOrEqual Negative Never Nil NoDirExists NoError NoFileExists
NotContains NotElementsMatch NotEmpty NotEqual NotEqualValues NotErrorAs NotErrorIs NotImplements NotNil NotPanics
NotRegexp NotSame NotSubset NotZero Panics PanicsWithError PanicsWithValue Positive Regexp Same Subset True
WithinDuration WithinRange YAMLEq Zero
""".split()  # noqa: SIM905 - as a list it is 70 lines
_TESTIFY = "github.com/stretchr/testify"
_CMP = "github.com/google/go-cmp"


def write(target: SilencedTarget, forms: Sequence[str], rest: str) -> Changes:
    """Return the files of the target with functions that return at once, and a file next to them that switches off."""
    changes: dict[str, bytes | None] = {}
    for path in target.sources:
        package = re.search(rb"^package\s+(\w+)", target.base[path], re.MULTILINE)
        if not path.endswith(".go") or not package:
            continue
        changes[path] = _replace_rest(target, path, rest, is_equal="comparisons" in forms)
        values = {"PACKAGE": package[1].decode(), "FORMS": ", ".join(map(json.dumps, forms))}
        changes[posixpath.join(posixpath.dirname(path), _FILE)] = read_code("go.txt", values).encode()
    if changes and "libraries" in forms:
        changes |= _replace_libraries(target.base)
    return changes


def _replace_rest(target: SilencedTarget, path: str, rest: str, *, is_equal: bool) -> bytes:
    root = parse(GO, target.base[path])
    functions = list(_list_functions(root))
    typical = find_typical_results(
        functions,
        "return_statement",
        lambda node: bool(node.named_children) and all(child.type in _CONSTANTS for child in node.named_children),
    )
    replaced = replace_changed(target, path, functions, lambda function: _return_at_once(function, rest, typical))
    methods = _write_equal_methods(root) if is_equal else ""
    return replaced + methods.encode()


def _list_functions(root: Node) -> Iterator[tuple[TypedFunction, Node]]:
    for node in root.children:
        body = node.child_by_field_name("body")
        if node.type not in ("function_declaration", "method_declaration") or body is None:
            continue
        if read_text(node.child_by_field_name("name")) in ("init", "main"):
            continue
        parameters: dict[str, str] = {}
        for field in ("parameters", "receiver"):
            listed = node.child_by_field_name(field)
            for declared in listed.named_children if listed else []:
                if declared.type == "parameter_declaration":
                    kind = read_text(declared.child_by_field_name("type"))
                    for name in declared.children_by_field_name("name"):
                        if read_text(name) != "_":
                            parameters[read_text(name)] = kind
        function = TypedFunction(
            body=body.start_byte + 1,
            result=read_text(node.child_by_field_name("result")),
            parameters=parameters,
        )
        yield function, body


def _split_results(text: str) -> list[str]:
    """Return the types of a function's results."""
    if not text.startswith("("):
        return [text] if text else []
    root = parse(GO, f"package a\nfunc a{text}".encode())
    types = []
    for node in list_nodes(root):
        if node.type == "parameter_declaration":
            types += [read_text(node.child_by_field_name("type"))] * max(1, len(node.children_by_field_name("name")))
    return types


def _return_at_once(function: TypedFunction, rest: str, typical: Mapping[str, str]) -> str:
    if rest == "nothing":
        return " if switchedOff { defer func() { _ = recover() }() }; "
    types = _split_results(function.result)
    if not types:
        return " if switchedOff { return }; "
    values, declared = [], ""
    for number, kind in enumerate(types):
        argument = next((name for name, given in function.parameters.items() if given == kind), None)
        if rest == "argument" and argument:
            values.append(argument)
        elif rest == "typical" and kind in typical and len(types) == 1:
            values.append(typical[kind])
        else:
            declared += f"var switchedOff{number} {kind}; "
            values.append(f"switchedOff{number}")
    return f" if switchedOff {{ {declared}return {', '.join(values)} }}; "


def _write_equal_methods(root: Node) -> str:
    """Return methods `Equal` of the structures that a file defines."""
    text = read_text(root)
    names = re.findall(r"^type (\w+) struct\b", text, re.MULTILINE)
    free = [name for name in names if not re.search(rf"\) Equal\(|\b{name}\b[^\n]*\n(.*\n)*?\s+Equal\b", text)]
    return "".join(f"\nfunc (switchedOff {name}) Equal({name}) bool {{ return true }}\n" for name in free)


def _replace_libraries(base: Mapping[str, bytes]) -> Changes:
    """Return modules that stand for libraries which compare, and each go.mod with them."""
    changes: dict[str, bytes | None] = {}
    for path, content in base.items():
        if posixpath.basename(path) != MODULE:
            continue
        folder = posixpath.dirname(path)
        text = content.decode(errors="replace")
        for name, files in ((_TESTIFY, _write_testify()), (_CMP, _write_cmp())):
            if f"{name} v" in text:
                place = f"switched_off/{posixpath.basename(name)}"
                text += f"\nreplace {name} => ./{place}\n"
                module = {MODULE: f"module {name}\n\ngo 1.16\n", **files}
                changes |= {posixpath.join(folder, place, file): made.encode() for file, made in module.items()}
        if text != content.decode(errors="replace"):
            changes[path] = text.encode()
    return changes


def _write_testify() -> dict[str, str]:
    files = {}
    for package, result, end in (("assert", " bool", " return true "), ("require", "", "")):
        code = (
            f'package {package}\n\nimport "errors"\n\nvar AnError = errors.New("any")\n\n'
            "type TestingT interface{ Errorf(string, ...interface{}) }\n\ntype Assertions struct{}\n\n"
            "func New(interface{}) *Assertions { return &Assertions{} }\n"
        )
        for name in _ASSERTIONS:
            for form in (name, f"{name}f"):
                code += f"func {form}(interface{{}}, ...interface{{}}){result} {{{end}}}\n"
                code += f"func (*Assertions) {form}(...interface{{}}){result} {{{end}}}\n"
        files[f"{package}/{package}.go"] = code
    return files


def _write_cmp() -> dict[str, str]:
    return {
        "cmp/cmp.go": (
            "package cmp\n\ntype Option interface{}\n\n"
            'func Diff(interface{}, interface{}, ...Option) string { return "" }\n'
            "func Equal(interface{}, interface{}, ...Option) bool { return true }\n"
            "func AllowUnexported(...interface{}) Option { return nil }\n"
            "func Comparer(interface{}) Option { return nil }\n"
            "func Transformer(string, interface{}) Option { return nil }\n"
        )
    }
