"""JSON schemas from type annotations, and tools from signatures and docstrings.

`Optional` becomes nullable and not required; a parameter with a default is not required either; lists become arrays;
dicts and TypedDicts become objects. A docstring's text before its first section is the description of the tool, its
section `Args:` that of the parameters (Google style).
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Mapping
from typing import Any

from worlds.definitions import WorldTool
from worlds.program.tree import ProgramError, ProgramTree, parse_expression

Schema = dict[str, Any]
_SIMPLE = {"str": "string", "int": "integer", "float": "number", "bool": "boolean", "dict": "object", "list": "array"}
_ARRAYS = frozenset(("List", "list", "Sequence", "Iterable", "Collection"))
_OBJECTS = frozenset(("Dict", "dict", "Mapping", "MutableMapping"))
_WRAPPERS = frozenset(("Annotated", "Required", "NotRequired", "Final"))
_SECTION = re.compile(r"^(Args|Arguments|Returns|Raises|Yields|Example|Examples|Note|Notes):\s*$")
_PARAMETER = re.compile(r"^(\w+)(?:\s*\([^)]*\))?:\s*(.*)$")


class SchemaError(Exception):
    """Annotation that no JSON schema follows from."""


class SchemaBuilder:
    """Builds schemas from annotations of a program.

    Args:
        module: the program, whose TypedDicts and aliases may be named.
    """

    def __init__(self, module: ast.Module) -> None:
        self._typed_dicts = {
            node.name: node for node in module.body if isinstance(node, ast.ClassDef) and _is_typed_dict(node)
        }
        self._aliases = {
            node.targets[0].id: node.value
            for node in module.body
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
        }
        self._open: list[str] = []

    def convert(self, node: ast.expr) -> Schema:
        """Return the schema of an annotation.

        Raises:
            SchemaError: it is not a type of JSON.
        """
        match node:
            case ast.Constant(value=None):
                return {"type": "null"}
            case ast.Constant(value=str(text)):
                return self.convert(_parse_expression(text))
            case ast.Name(id=name) | ast.Attribute(attr=name):
                return self._convert_name(name, node)
            case ast.BinOp(op=ast.BitOr(), left=left, right=right):
                return self._unite([self.convert(left), self.convert(right)], node)
            case ast.Subscript(value=ast.Name(id=name) | ast.Attribute(attr=name), slice=inner):
                return self._convert_generic(name, inner.elts if isinstance(inner, ast.Tuple) else [inner], node)
        raise SchemaError(f"{ast.unparse(node)} is no type of JSON")

    def _convert_name(self, name: str, node: ast.expr) -> Schema:
        if name in _SIMPLE or name in ("Dict", "List"):
            return {"type": _SIMPLE.get(name.lower() if name in ("Dict", "List") else name)}
        if name == "Any":
            return {}
        if name in self._typed_dicts:
            return self._convert_typed_dict(name)
        if name in self._aliases:
            return self.convert(self._aliases[name])
        raise SchemaError(f"{ast.unparse(node)} is no type of JSON")

    def _convert_generic(self, name: str, inner: list[ast.expr], node: ast.expr) -> Schema:
        if name == "Optional":
            return self._unite([self.convert(inner[0]), {"type": "null"}], node)
        if name == "Union":
            return self._unite([self.convert(argument) for argument in inner], node)
        if name == "Literal":
            return _convert_literal([ast.literal_eval(argument) for argument in inner])
        if name in _ARRAYS:
            return {"type": "array", "items": self.convert(inner[0])}
        if name in _OBJECTS and len(inner) == 2:
            if self.convert(inner[0]).get("type") != "string":
                raise SchemaError(f"{ast.unparse(node)}: keys of JSON are strings")
            return {"type": "object", "additionalProperties": self.convert(inner[1])}
        if name in _WRAPPERS:
            return self.convert(inner[0])
        raise SchemaError(f"{ast.unparse(node)} is no type of JSON")

    def _convert_typed_dict(self, name: str) -> Schema:
        if name in self._open:
            raise SchemaError(f"{name} contains itself")
        node = self._typed_dicts[name]
        is_total = not any(
            keyword.arg == "total" and ast.unparse(keyword.value) == "False" for keyword in node.keywords
        )
        self._open.append(name)
        properties, required = {}, []
        for field in node.body:
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                properties[field.target.id] = self.convert(field.annotation)
                mark = ast.unparse(field.annotation).partition("[")[0].rpartition(".")[2]
                if (is_total and mark != "NotRequired") or mark == "Required":
                    required.append(field.target.id)
        self._open.pop()
        return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}

    def _unite(self, schemas: list[Schema], node: ast.expr) -> Schema:
        """Return the schema of a union: of a type and null, or of simple types."""
        others = [schema for schema in schemas if schema.get("type") != "null"]
        if len(others) == 1:
            return make_nullable(others[0]) if len(others) < len(schemas) else others[0]
        if all(set(schema) == {"type"} for schema in others):
            names = [name for schema in schemas for name in _list_types(schema)]
            return {"type": list(dict.fromkeys(names))}
        raise SchemaError(f"{ast.unparse(node)} is a union of types that are not simple")


def make_nullable(schema: Schema) -> Schema:
    """Return a schema that null fulfils as well."""
    if "type" not in schema:
        return schema
    nullable = {**schema, "type": list(dict.fromkeys([*_list_types(schema), "null"]))}
    return {**nullable, "enum": [*schema["enum"], None]} if "enum" in schema else nullable


def is_nullable(schema: Mapping[str, Any]) -> bool:
    """Return whether null fulfils a schema."""
    return "null" in _list_types(schema)


def derive_tool(name: str, method: ast.FunctionDef, builder: SchemaBuilder) -> WorldTool:
    """Return a method as a tool.

    Raises:
        SchemaError: a parameter has no annotation, no name or no type of JSON.
    """
    arguments = method.args
    if arguments.vararg or arguments.kwarg or arguments.posonlyargs:
        raise SchemaError(f"{name} has parameters without a name")
    description, texts = split_docstring(ast.get_docstring(method) or "")
    parameters = [*arguments.args[1:], *arguments.kwonlyargs]
    defaults = [*arguments.defaults, *arguments.kw_defaults]
    n_without = len(parameters) - len(defaults)
    properties, required = {}, []
    for parameter, default in zip(parameters, [None] * n_without + defaults, strict=True):
        if parameter.annotation is None:
            raise SchemaError(f"parameter {parameter.arg} of {name} has no type")
        schema = builder.convert(parameter.annotation)
        if parameter.arg in texts:
            schema = {**schema, "description": texts[parameter.arg]}
        if default is not None:
            value = _read_default(default, name)
            schema = schema if value is None else {**schema, "default": value}
        elif not is_nullable(schema):
            required.append(parameter.arg)
        properties[parameter.arg] = schema
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return WorldTool(name=name, description=description, parameters=schema)


def derive_state_schema(tree: ProgramTree) -> Schema:
    """Return the schema of a state from the annotations of the attributes; those without an annotation may be anything.

    Raises:
        SchemaError: an annotation is not a type of JSON.
    """
    builder, attributes = SchemaBuilder(tree.module), tree.attributes
    properties = {name: {} if node is None else builder.convert(node) for name, node in attributes.items()}
    return {"type": "object", "properties": properties, "required": sorted(properties), "additionalProperties": False}


def split_docstring(text: str) -> tuple[str, dict[str, str]]:
    """Return (text before the first section, name of a parameter -> its text) of a docstring in Google's style."""
    before: list[str] = []
    texts: dict[str, str] = {}
    section, parameter = "", ""
    for line in inspect.cleandoc(text).splitlines():
        if match := _SECTION.match(line):
            section, parameter = match[1], ""
        elif not section:
            before.append(line)
        elif section in ("Args", "Arguments") and line.strip():
            indent = len(line) - len(line.lstrip())
            if indent <= 4 and (match := _PARAMETER.match(line.strip())):
                parameter = match[1]
                texts[parameter] = match[2]
            elif parameter:
                texts[parameter] += " " + line.strip()
    paragraphs = re.split(r"\n\s*\n", "\n".join(before).strip())
    return "\n".join(" ".join(paragraph.split()) for paragraph in paragraphs), texts


def _convert_literal(values: list[Any]) -> Schema:
    plain = [value for value in values if value is not None]
    kinds = {_SIMPLE.get(type(value).__name__) for value in plain}
    if len(kinds) != 1 or None in kinds:
        raise SchemaError(f"Literal of {values} is of several types")
    schema: Schema = {"type": kinds.pop(), "enum": plain}
    return make_nullable(schema) if len(plain) < len(values) else schema


def _read_default(node: ast.expr, tool: str) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError:
        raise SchemaError(f"{tool} has the default {ast.unparse(node)}, which is no literal") from None


def _parse_expression(text: str) -> ast.expr:
    try:
        return parse_expression(text)
    except ProgramError:
        raise SchemaError(f"{text!r} is no type") from None


def _list_types(schema: Mapping[str, Any]) -> list[str]:
    types = schema.get("type", [])
    return [types] if isinstance(types, str) else list(types)


def _is_typed_dict(node: ast.ClassDef) -> bool:
    return any(getattr(base, "id", getattr(base, "attr", "")) == "TypedDict" for base in node.bases)
