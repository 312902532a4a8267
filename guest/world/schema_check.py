"""Check of values against JSON schemas, as far as schemas of tools and states use them.

Keywords: `type` (a name or a list of names), `enum`, `properties`, `required`, `additionalProperties` (a boolean or a
schema) and `items`. `worlds.program.schemas` writes no others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Schema = Mapping[str, Any]
_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
    "array": (list,),
    "object": (dict,),
}


def find_schema_error(value: object, schema: Schema, path: str = "arguments") -> str | None:
    """Return a sentence about the first place where a JSON value breaks a schema, or None."""
    if "type" in schema and not _has_type(value, schema["type"]):
        names = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
        return f"{path} is not of type {' or '.join(names)}"
    if "enum" in schema and not any(type(value) is type(choice) and value == choice for choice in schema["enum"]):
        return f"{path} is none of {', '.join(map(repr, schema['enum']))}"
    if isinstance(value, dict):
        return _find_object_error(value, schema, path)
    if isinstance(value, list) and "items" in schema:
        errors = (find_schema_error(item, schema["items"], f"{path}[{number}]") for number, item in enumerate(value))
        return next((error for error in errors if error), None)
    return None


def _has_type(value: object, names: str | list[str]) -> bool:
    return any(type(value) in _TYPES[name] for name in ([names] if isinstance(names, str) else names))


def _find_object_error(value: Mapping[str, object], schema: Schema, path: str) -> str | None:
    missing = [name for name in schema.get("required", ()) if name not in value]
    if missing:
        return f"{path} lacks {missing[0]}"
    properties, others = schema.get("properties", {}), schema.get("additionalProperties", True)
    for name, item in value.items():
        inner = properties.get(name, others)
        if inner is False:
            return f"{path} has no {name}"
        if isinstance(inner, Mapping) and (error := find_schema_error(item, inner, f"{path}.{name}")):
            return error
    return None
