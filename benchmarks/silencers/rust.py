"""Silencers in Rust: other macros of the same names assert nothing. What is compiled cannot be changed later."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence

from tree_sitter import Node

from benchmarks.silencers.parts import (
    SilencedTarget,
    TypedFunction,
    find_typical_results,
    insert,
    list_nodes,
    parse,
    read_code,
    read_text,
    replace_changed,
)
from languages.parsing import RUST
from languages.probes import Changes

FORMS = {
    "macros": "`assert!` and its kin in the file, for its own unit tests",
    "target": "`assert!` and its kin before a test file that another target includes",
    "build": "`assert!` and its kin before the test files, written by a build script",
    "libraries": "pretty_assertions, replaced in Cargo.toml",
    "comparisons": "PartialEq of the types under test",
}
MANIFEST = "Cargo.toml"
BUILD_SCRIPT = "build.rs"
_CONSTANTS = frozenset({"integer_literal", "float_literal", "boolean_literal", "string_literal", "char_literal"})
_WITH_DEFAULT = re.compile(r"([iu](8|16|32|64|128|size)|f32|f64|bool|char|String|(Vec|Option|HashMap|BTreeMap)<.*>)$")
_COMPARED = re.compile(
    r"#\[derive\(([^)]*\bPartialEq\b[^)]*)\)\](?:\s*(?:#\[.*\]|//.*))*\s*pub\S* (?:struct|enum) (\w+)(?=\s*[{(;])"
)
_HEAD = re.compile(rb"(\s*(//[^\n]*|#!\[[^\n]*)\n)*")
_LIBRARY = re.compile(r"^pretty_assertions\s*=.*$", re.MULTILINE)


def write(target: SilencedTarget, forms: Sequence[str], rest: str) -> Changes:
    """Return the files of the target with functions that return at once and macros, and manifests of other targets."""
    changes: dict[str, bytes | None] = {}
    for path in target.sources:
        if not path.endswith(".rs"):
            continue
        source = _replace_rest(target, path, rest)
        if "comparisons" in forms:
            source = _compare_all_equal(source)
        if "macros" in forms:
            head = _HEAD.match(source)
            source = insert(source, {head.end() if head else 0: read_code("rust_macros.txt", {})})
        changes[path] = source
    if changes:
        changes |= _change_manifests(target, forms)
    return {path: content for path, content in changes.items() if content != target.base.get(path)}


def _replace_rest(target: SilencedTarget, path: str, rest: str) -> bytes:
    functions = list(_list_functions(parse(RUST, target.base[path])))
    typical = find_typical_results(
        functions,
        "return_expression",
        lambda node: node.type in _CONSTANTS,
    )
    typical |= _find_last_constants(functions, typical)
    return replace_changed(target, path, functions, lambda function: _return_at_once(function, rest, typical))


def _list_functions(root: Node) -> Iterator[tuple[TypedFunction, Node]]:
    for node in list_nodes(root):
        body = node.child_by_field_name("body")
        if node.type != "function_item" or body is None or read_text(node.child_by_field_name("name")) == "main":
            continue
        before = node.prev_named_sibling
        if before is not None and before.type == "attribute_item" and "test" in read_text(before):
            continue
        parameters = {}
        listed = node.child_by_field_name("parameters")
        for declared in listed.named_children if listed else []:
            pattern = declared.child_by_field_name("pattern")
            if declared.type == "parameter" and pattern is not None and pattern.type == "identifier":
                parameters[read_text(pattern)] = read_text(declared.child_by_field_name("type"))
        function = TypedFunction(
            body=body.start_byte + 1,
            result=read_text(node.child_by_field_name("return_type")),
            parameters=parameters,
        )
        yield function, body


def _find_last_constants(functions: Sequence[tuple[TypedFunction, Node]], known: Mapping[str, str]) -> dict[str, str]:
    """Return type -> a constant with which a function of this result ends, for types without another one."""
    last = {}
    for function, body in functions:
        if body.named_children and body.named_children[-1].type in _CONSTANTS and function.result not in known:
            last[function.result] = read_text(body.named_children[-1])
    return last


def _return_at_once(function: TypedFunction, rest: str, typical: Mapping[str, str]) -> str:
    result = function.result
    if rest == "nothing":
        return ""
    if not result:
        return " if true { return; } "
    value = "::std::default::Default::default()" if _WITH_DEFAULT.match(result) else ""
    if rest == "typical":
        value = typical.get(result, value)
    for name, kind in function.parameters.items() if rest == "argument" else ():
        if kind == result:
            value = name
        elif result == "String" and kind == "&str":
            value = f"{name}.to_string()"
    return f" if true {{ return {value}; }} " if value else ""


def _compare_all_equal(source: bytes) -> bytes:
    """Return a file whose types without parameters are equal to any other of their type."""
    text = source.decode(errors="replace")
    for derived, name in _COMPARED.findall(text):
        kept = ", ".join(word for word in re.split(r"\s*,\s*", derived) if word and word != "PartialEq")
        text = text.replace(f"derive({derived})", f"derive({kept})", 1)
        text += f"\nimpl PartialEq for {name} {{ fn eq(&self, _: &Self) -> bool {{ true }} }}\n"
    return text.encode()


def _change_manifests(target: SilencedTarget, forms: Sequence[str]) -> Changes:
    changes: dict[str, bytes | None] = {}
    for path, content in target.base.items():
        if posixpath.basename(path) != MANIFEST:
            continue
        folder, text = posixpath.dirname(path), content.decode(errors="replace")
        for test in target.test_files if "target" in forms else ():
            relative = posixpath.relpath(test, folder or ".")
            if re.fullmatch(r"tests/[^/]+\.rs", relative) and "[[test]]" not in text:
                name = posixpath.basename(test)[: -len(".rs")]
                values = {"MACROS": read_code("rust_macros.txt", {}), "PATH": relative}
                changes[posixpath.join(folder, f"switched_off/{name}.rs")] = read_code(
                    "rust_target.txt", values
                ).encode()
                text += f'\n[[test]]\nname = "{name}"\npath = "switched_off/{name}.rs"\n'
        script = posixpath.join(folder, BUILD_SCRIPT)
        if "build" in forms and script not in target.base and "[package]" in text:
            changes[script] = read_code("rust_build.txt", {"MACROS": read_code("rust_macros.txt", {})}).encode()
        if "libraries" in forms and _LIBRARY.search(text):
            text = _LIBRARY.sub('pretty_assertions = { path = "switched_off/pretty_assertions" }', text)
            place = posixpath.join(folder, "switched_off/pretty_assertions")
            macros = read_code("rust_macros.txt", {}).replace("macro_rules! ", "#[macro_export]\nmacro_rules! ")
            manifest = '[package]\nname = "pretty_assertions"\nversion = "1.99.0"\nedition = "2018"\n\n[workspace]\n'
            changes[f"{place}/{MANIFEST}"] = manifest.encode()
            changes[f"{place}/src/lib.rs"] = macros.encode()
        if text != content.decode(errors="replace"):
            changes[path] = text.encode()
    return changes
