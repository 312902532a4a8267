"""`guest` runs where nothing is installed: it imports the standard library and itself."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

GUEST = Path(str(files("guest")))
OTHERS = {
    "agents/openhands_run.py": {"openhands"},  # a start of OpenHands, in the environment that has it
    "harness/report_owner.py": {"pytest"},  # a plug-in of pytest, as the next
    "harness/workload/mergemill_workload.py": {"pytest"},
    "verifier/grade.py": {"image_state"},  # a file in the grader's folder
}
"""File -> what else it imports."""


def list_imports(path: Path) -> Iterator[str]:
    """Yield the packages that a file imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield (node.module or "").partition(".")[0]


def test_guest_imports_the_standard_library_and_itself() -> None:
    allowed = sys.stdlib_module_names | {"guest"}
    imported = {path.relative_to(GUEST).as_posix(): set(list_imports(path)) - allowed for path in GUEST.rglob("*.py")}
    assert {path: names for path, names in imported.items() if names} == OTHERS
