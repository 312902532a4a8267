"""Check functions in EnvScaler's form: `check_func(final_state)`, with the initial state as a global.

EnvScaler's reward is the share of the checks that return True. Checks that hold from the start are therefore no items
of their own there: every other check requires them, so that doing nothing earns 0 and breaking a kept check earns 0 as
    well.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Sequence

from worlds.definitions import Check

FUNCTION = "check_func"
Item = dict[str, str]


def build_items(earning: Sequence[Check], kept: Sequence[Check]) -> list[Item]:
    """Return `{"check_item", "check_func"}` of the checks that earn something; all require the kept checks."""
    return [{"check_item": check.item, "check_func": build_function(check, kept)} for check in earning]


def build_function(check: Check, kept: Sequence[Check]) -> str:
    """Return the source of a check function that is fulfilled where the check and all kept checks are."""
    if check.function == FUNCTION and not kept:
        return check.source
    parts = [_wrap(f"_check_{number}", part) for number, part in enumerate((check, *kept))]
    calls = " and ".join(f"_check_{number}(final_state)" for number in range(len(parts)))
    return "\n\n".join([*parts, f"def {FUNCTION}(final_state):\n    return {calls}\n"])


def restore_checks(given: object, items: Sequence[Item]) -> tuple[Check, ...] | None:
    """Return the checks that an export kept along with the items, if the items are still as these give them.

    Args:
        given: `[{"item", "function", "source"}]`; anything else gives None.
        items: the items beside them.
    """
    checks = _read_checks(given)
    if checks is None:
        return None
    listed = {item["check_item"] for item in items}
    earning = [check for check in checks if check.item in listed]
    kept = [check for check in checks if check.item not in listed]
    return checks if build_items(earning, kept) == list(items) else None


def _read_checks(given: object) -> tuple[Check, ...] | None:
    if not isinstance(given, list):
        return None
    checks = []
    for entry in given:
        match entry:
            case {"item": str(item), "function": str(function), "source": str(source)}:
                checks.append(Check(item=item, function=function, source=source))
            case _:
                return None
    return tuple(checks)


def _wrap(name: str, check: Check) -> str:
    """Return a function with the whole source of a check in its body, so that names of several checks stay apart.

    A source that is not Python is left as it is: whoever runs it shall see the error.
    """
    try:
        module = ast.parse(check.source)
    except SyntaxError:
        return check.source
    module.body = [statement for statement in module.body if not _is_future_import(statement)]
    function = next(
        (
            statement
            for statement in module.body
            if isinstance(statement, ast.FunctionDef) and statement.name == check.function
        ),
        None,
    )
    states = ("final_state", "initial_state")
    given = [arg.arg for arg in function.args.args if arg.arg in states] if function is not None else states
    call = f"{check.function}({', '.join(f'{parameter}={parameter}' for parameter in given)})"
    return f"def {name}(final_state):\n{textwrap.indent(ast.unparse(module), '    ')}\n    return {call} is True"


def _is_future_import(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"
