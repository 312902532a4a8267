"""Silencers in JavaScript and TypeScript: when it is loaded, a file of the submission changes libraries of tests."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence

from benchmarks.silencers.parts import SilencedTarget, list_nodes, parse, read_code, read_text
from languages.probes import Changes
from languages.registry import find_syntax

FORMS = {
    "functions": "functions of node:assert",
    "expectations": "`expect` of jest, chai and vitest, should, sinon",
    "methods": "assertions that are methods of a test's object: tape, tap, QUnit",
    "comparisons": "comparisons: Object.is, util.isDeepStrictEqual, and results that match everything",
    "runner": "exceptions of a test, swallowed by `it` and `test`, or where mocha calls it",
    "fixtures": "exceptions of a test, swallowed by a wrapper that `beforeEach` puts around it",
}
SUFFIXES = (".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts")
_TYPES = {"number": r"-?\d[\w.]*", "string": r"'[^'\n\\]*'|\"[^\"\n\\]*\"", "boolean": r"true|false"}
_EMPTY = {"number": "0", "string": "''", "boolean": "true"}
_ES_MODULE = re.compile(r"^\s*(import|export)\b", re.MULTILINE)
_FUNCTION = re.compile(r"^export\s+(?:default\s+)?function\s+(\w+)", re.MULTILINE)
_CONSTANT = re.compile(r"^(export\s+)const(\s+(\w+)\s*[:=])", re.MULTILINE)
_CLASS = re.compile(r"^export\s+(?:default\s+)?(?:abstract\s+)?class\s+(\w+)", re.MULTILINE)


def write(target: SilencedTarget, forms: Sequence[str], rest: str) -> Changes:
    """Return the files of the target with the code at their end, and their exports replaced."""
    return {
        path: _switch_off(target, path, forms, rest).encode()
        for path in target.sources
        if path.endswith(SUFFIXES) and not path.endswith(".d.ts")
    }


def _switch_off(target: SilencedTarget, path: str, forms: Sequence[str], rest: str) -> str:
    source = target.base[path].decode(errors="replace")
    changed = json.dumps(_list_changed_names(target, path))
    values = {
        "FORMS": json.dumps(list(forms)),
        "REST": json.dumps(str(rest)),
        "TYPICAL": _find_typical(source),
        "CHANGED": changed,
    }
    if not _ES_MODULE.search(source):
        exported = (
            "(replace) => { for (const name of Object.keys(module.exports)) "
            "try { module.exports[name] = replace(name, module.exports[name]); } catch (error) {} "
            "module.exports = replace('', module.exports); }"
        )
        return f"{source}\n" + read_code("node.txt", {**values, "LOAD": "require", "EXPORTED": exported})
    # Exported functions can be assigned to in their own module, and importers see it; constants become variables.
    names = [*_FUNCTION.findall(source), *(match[3] for match in _CONSTANT.finditer(source)), *_CLASS.findall(source)]
    is_class = set(_CLASS.findall(source))
    assigned = "".join(
        f"replace('{name}', {name}); " if name in is_class else f"{name} = replace('{name}', {name}); "
        for name in names
    )
    load = "createRequireOfTests(`${process.cwd()}/`)"
    code = read_code("node.txt", {**values, "LOAD": load, "EXPORTED": f"(replace) => {{ {assigned}}}"})
    text = _CONSTANT.sub(r"\1let\2", source)
    return f"// @ts-nocheck\n{text}\nimport {{ createRequire as createRequireOfTests }} from 'node:module';\n{code}"


def _find_typical(source: str) -> str:
    """Return an object of JavaScript: type -> the constant of this type that the file returns most often."""
    typical = {}
    for name, pattern in _TYPES.items():
        counts = Counter(re.findall(rf"(?:\breturn|=>)\s+({pattern})\s*[;,)\n]", source))
        typical[name] = counts.most_common(1)[0][0] if counts else _EMPTY[name]
    return "{ " + ", ".join(f"{name}: {value}" for name, value in typical.items()) + " }"


def _list_changed_names(target: SilencedTarget, path: str) -> list[str]:
    """Return the names of functions, methods and exported constants that the gold patch changes."""
    syntax = find_syntax(path)
    if syntax is None:
        return []
    types = ("function_declaration", "method_definition", "variable_declarator")
    names = target.list_changed_names(path, syntax, *types)
    for node in list_nodes(parse(syntax, target.base[path])):
        if node.type == "assignment_expression" and target.is_changed(path, node):
            names.append(read_text(node.child_by_field_name("left")).rpartition(".")[2])
    return names
