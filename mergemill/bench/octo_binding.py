"""Table of a user's that binds items of published checklists to checks by program: `bench import --bind TABLE.toml`.

::

    [[bind]]
    check_id = "SP_read_before_modify"         # an item, in every row that has it
    check = "read-before-edit"

    [[bind]]
    instance_id = "md-course-builder-code-style"      # in a row alone, which counts before the others
    check_id = "Agents_no_spurious_docs"
    check = "new-files-never"
    arguments = {globs = ["*.md"]}
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from core.errors import InputError
from core.files import read_text
from core.toml import parse_toml
from core.validation import describe_invalid
from evaluation.instructions.checks import make_check
from taskdb.records.instructions import JUDGED


class BoundCheck(BaseModel):
    """A check by program with its arguments."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    check: str
    arguments: dict[str, Any] = Field(default_factory=dict)


class _Entry(BoundCheck):
    check_id: str
    instance_id: str = ""


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    bind: tuple[_Entry, ...] = Field(min_length=1)


@dataclass(frozen=True, kw_only=True)
class BindingTable:
    """Checks of items by instance and name; an empty instance stands for all."""

    path: Path | None = None
    checks: Mapping[tuple[str, str], BoundCheck] = field(default_factory=dict)

    def find(self, instance: str, item: str) -> BoundCheck | None:
        """Return the check of an item; None where a model judges it."""
        return self.checks.get((instance, item)) or self.checks.get(("", item))

    def check_items(self, items: Iterable[tuple[str, str]]) -> None:
        """Raise InputError for an entry that no item of some rows has; `items`: instance and name of each."""
        known = set(items)
        known |= {("", name) for _, name in known}
        for number, key in enumerate(self.checks, 1):
            if key not in known:
                instance, item = key
                where = f" in {instance}" if instance else " in any row"
                raise InputError(f"{self.path}: bind[{number}].check_id: there is no check {item}{where}")


def read_binding_table(path: Path) -> BindingTable:
    """Return the table of a file.

    Raises:
        InputError: it cannot be read, or an entry has another form, an unknown check or other arguments than it; the
            message names file and key.
    """
    try:
        table = _Table.model_validate(parse_toml(read_text(path, f"cannot read the table {path}")))
    except ValidationError as error:
        raise InputError(f"{path}: {describe_invalid(error.errors())}") from error
    except ValueError as error:
        raise InputError(f"{path}: {error}") from error
    checks: dict[tuple[str, str], BoundCheck] = {}
    for number, entry in enumerate(table.bind, 1):
        place = f"{path}: bind[{number}]"
        check_binding(entry, place)
        key = (entry.instance_id, entry.check_id)
        if key in checks:
            raise InputError(f"{place}.check_id: {entry.check_id} is bound twice")
        checks[key] = BoundCheck(check=entry.check, arguments=entry.arguments)
    return BindingTable(path=path, checks=checks)


def check_binding(bound: BoundCheck, place: str) -> None:
    """Raise InputError where a check does not exist, has other arguments, or needs more than a published row has.

    Args:
        bound: the check.
        place: file and key, for messages.
    """
    check = make_check(bound.check, bound.arguments, place)
    if bound.check == JUDGED:
        raise InputError(f"{place}.check: items without an entry are judged", advice="leave the entry out")
    if check.compares_files:
        raise InputError(
            f"{place}.check: {bound.check} compares files, and the tree of a published row is not known",
            advice="a check of actions, of answers or of the names of files",
        )
