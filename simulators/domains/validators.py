"""Rules for the values of arguments: those of the released code, and rewriting and patterns beyond it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from simulators.conversation import FunctionCall


class ValidatorError(ValueError):
    """A value breaks a rule; the message names both."""


@dataclass(frozen=True, kw_only=True)
class ArgumentRule:
    """Rule for a named argument. A value that is not text is left as it is.

    `prefix` is added where it is missing. `rewrite` maps beginnings that are not a prefix of `one_of_prefix` to others.
    """

    argument: str
    prefix: str = ""
    contains: str = ""
    one_of_prefix: tuple[str, ...] = ()
    rewrite: Mapping[str, str] | None = None
    pattern: re.Pattern[str] | None = None

    def apply(self, value: str, *, strict: bool) -> str:
        """Return the value, repaired; `strict`: with `rewrite` and `pattern`, which the released code does not have.

        Raises:
            ValidatorError: it breaks the rule.
        """
        if self.prefix and not value.startswith(self.prefix):
            value = self.prefix + value
        if strict and self.rewrite and not value.startswith(self.one_of_prefix):
            value = self._rewrite(value)
        if self.contains and self.contains not in value:
            raise ValidatorError(f"{self.argument} {value!r} contains no {self.contains!r}")
        if self.one_of_prefix and not value.startswith(self.one_of_prefix):
            raise ValidatorError(f"{self.argument} {value!r} begins with none of {', '.join(self.one_of_prefix)}")
        if strict and self.pattern and not self.pattern.fullmatch(value):
            raise ValidatorError(f"{self.argument} {value!r} is not of the form {self.pattern.pattern}")
        return value

    def _rewrite(self, value: str) -> str:
        rewrite = self.rewrite or {}
        old = max((prefix for prefix in rewrite if value.startswith(prefix)), key=len, default="")
        return rewrite[old] + value[len(old) :] if old else value


def validate_call(call: FunctionCall, rules: tuple[ArgumentRule, ...], *, strict: bool) -> FunctionCall:
    """Return the call with repaired arguments; with `strict` nested values are validated, too.

    Raises:
        ValidatorError: a value breaks a rule.
    """
    by_name: dict[str, list[ArgumentRule]] = {}
    for rule in rules:
        by_name.setdefault(rule.argument, []).append(rule)
    return FunctionCall(name=call.name, arguments=_validate(dict(call.arguments), by_name, strict=strict, deep=strict))


def _validate(value: Any, rules: Mapping[str, list[ArgumentRule]], *, strict: bool, deep: bool) -> Any:
    if isinstance(value, list):
        return [_validate(item, rules, strict=strict, deep=deep) for item in value]
    if not isinstance(value, dict):
        return value
    made = {}
    for name, inner in value.items():
        if isinstance(inner, str):
            for rule in rules.get(name, ()):
                inner = rule.apply(inner, strict=strict)  # noqa: PLW2901 - the same value, repaired
        elif deep:
            inner = _validate(inner, rules, strict=strict, deep=deep)  # noqa: PLW2901 - as above
        made[name] = inner
    return made


def collect_ids(call: FunctionCall, names: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Yield name and text of each argument of a call that is an id, nested values included."""
    yield from _collect(dict(call.arguments), names, "")


def _collect(value: Any, names: frozenset[str], name: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for inner_name, inner in value.items():
            yield from _collect(inner, names, inner_name)
    elif isinstance(value, list):
        for inner in value:
            yield from _collect(inner, names, name)
    elif name in names and isinstance(value, str):
        yield name, value
