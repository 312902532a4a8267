"""Made-up arguments of tools, drawn by Hypothesis from their schemas: a program of its own, JSON in and out.

Hypothesis takes constants of all loaded modules for its examples; in a process of its own the same schemas give the
same arguments. Strings and numbers are often `{"$known": [NUMBER, TYPE, NARROW, SHIFT]}`: a value of the present
state, a value of a field of the parameter's name, if narrow, and a new value near it, if shifted
(`worlds.gates.arguments`).
"""

from __future__ import annotations

import json
import sys
import tempfile
import zlib
from collections.abc import Mapping
from itertools import cycle, islice
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.configuration import set_hypothesis_home_dir

Schema = Mapping[str, Any]
WRONG_EVERY = 5
"""Every fifth call breaks the schema."""
CATEGORIES = "Cc Cf Cn Co Ll Lm Lo Lt Lu Mc Me Mn Nd Nl No Pc Pd Pe Pf Pi Po Ps Sc Sk Sm So Zl Zp Zs"
"""Categories of all characters that UTF-8 can encode. Hypothesis would take shorter constants for examples."""
CHARACTERS = st.characters(categories=list[Any](CATEGORIES.split()))
"""All characters of UTF-8. To find those of a codec, Hypothesis encodes a million of them in each new process."""
TEXTS = ("", " ", "x", "Ada Lovelace", "ada@example.org", "2025-06-05", "not an id", "ö\u2603", "0")
WRONG_VALUES: tuple[Any, ...] = (None, True, 7, 1.5, "x", [], {}, [[]], {"a": 1})


def build_known(kind: str, *, narrow: bool = True, shifts: tuple[int, int] = (0, 0)) -> st.SearchStrategy[Any]:
    """Return a strategy for places of values of the state, of the type `string` or `number`."""
    return st.builds(
        lambda number, shift: {"$known": [number, kind, narrow, shift]}, st.integers(0, 10_000), st.integers(*shifts)
    )


def build_strategy(schema: Schema) -> st.SearchStrategy[Any]:
    """Return a strategy for values of a schema."""
    if "enum" in schema:
        return st.sampled_from(list(schema["enum"]))
    names = schema.get("type", ["string", "integer", "boolean", "null"])
    return st.one_of(*(_build_type(name, schema) for name in ([names] if isinstance(names, str) else names)))


def _build_type(name: str, schema: Schema) -> st.SearchStrategy[Any]:
    if name == "array":
        return st.lists(build_strategy(schema.get("items", {})), max_size=3)
    if name == "object":
        return _build_object(schema)
    text, number = build_known("string"), build_known("number", shifts=(0, 9))
    other_texts = (build_known("string", shifts=(1, 9)), build_known("string", narrow=False))
    simple: Mapping[str, st.SearchStrategy[Any]] = {
        "string": st.one_of(text, text, text, *other_texts, st.sampled_from(TEXTS), st.text(CHARACTERS, max_size=20)),
        "integer": st.one_of(st.integers(-1, 12), st.integers(1, 300), number, st.integers(-(10**9), 10**9)),
        "number": st.one_of(st.integers(-1, 300), number, st.floats(-1e9, 1e9)),
        "boolean": st.booleans(),
        "null": st.none(),
    }
    return simple[name]


def _build_object(schema: Schema) -> st.SearchStrategy[Any]:
    required = set(schema.get("required", ()))
    properties = {
        name: build_strategy(property_schema) for name, property_schema in schema.get("properties", {}).items()
    }
    if properties or schema.get("additionalProperties") is False:
        return st.fixed_dictionaries(
            {name: strategy for name, strategy in properties.items() if name in required},
            optional={name: strategy for name, strategy in properties.items() if name not in required},
        )
    others = schema.get("additionalProperties", True)
    return st.dictionaries(
        st.sampled_from(TEXTS), build_strategy(others if isinstance(others, Mapping) else {}), max_size=2
    )


@st.composite
def build_wrong_arguments(draw: st.DrawFn, schema: Schema) -> dict[str, Any]:
    """Return arguments that break the schema in a single place: an argument is missing, unknown, or of another type."""
    arguments: dict[str, Any] = draw(build_strategy(schema))
    ways = ["unknown"] + (["missing"] if schema["required"] else []) + (["type"] if schema["properties"] else [])
    way = draw(st.sampled_from(ways))
    if way == "unknown":
        return {**arguments, "no_such_parameter": draw(st.sampled_from(WRONG_VALUES))}
    if way == "missing":
        name = draw(st.sampled_from(sorted(schema["required"])))
        return {key: value for key, value in arguments.items() if key != name}
    name = draw(st.sampled_from(sorted(schema["properties"])))
    return {**arguments, name: draw(st.sampled_from(WRONG_VALUES))}


def draw_examples(strategy: st.SearchStrategy[Any], number: int, start: int) -> list[Any]:
    """Return so many examples; where there are fewer different examples, they repeat.

    `start` determines the examples.
    """
    examples: list[Any] = []

    @seed(start)
    @settings(
        max_examples=number,
        database=None,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=tuple(HealthCheck),
    )
    @given(strategy)
    def collect(example: Any) -> None:
        examples.append(example)

    collect()
    return list(islice(cycle(examples), number))


def draw_calls(schema: Schema, number: int, start: int) -> list[dict[str, Any]]:
    """Return so many arguments of a tool, of which every fifth breaks the schema."""
    n_wrong = number // WRONG_EVERY
    right = draw_examples(build_strategy(schema), number - n_wrong, start)
    wrong = draw_examples(build_wrong_arguments(schema), n_wrong, start + 1) if n_wrong else []
    rights, wrongs = iter(right), iter(wrong)
    return [next(wrongs if index % WRONG_EVERY == WRONG_EVERY - 1 else rights) for index in range(number)]


def main() -> None:
    """Read `{"schemas": {tool: schema}, "calls": n, "seed": n}` and write `{tool: [arguments]}`."""
    request = json.load(sys.stdin)
    with tempfile.TemporaryDirectory() as folder:
        set_hypothesis_home_dir(folder)
        calls = {
            # Equal seeds would give tools with equal schemas equal arguments.
            tool: draw_calls(schema, request["calls"], request["seed"] + zlib.crc32(tool.encode()))
            for tool, schema in request["schemas"].items()
        }
    sys.stdout.write(json.dumps(calls))


if __name__ == "__main__":
    main()
