"""Import of rows of OctoCodingBench as instruction tasks: published ones, and those that mergemill wrote.

A published row becomes a task without tests, whose items a model judges, or a check decides to which the user's table
binds them. A row that mergemill wrote is read back from its key OWN_KEY. Nothing is stored unless all rows are sound.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from core.errors import InputError
from core.validation import describe_invalid
from derivers.base import build_task
from exporters.bundle_reader import parse_records
from mergemill.bench.octo_binding import BindingTable, BoundCheck, check_binding, read_binding_table
from mergemill.bench.octo_export import list_row_artifacts, make_public_row
from mergemill.bench.octo_rows import OWN_KEY, OctoItem, OctoRow, read_octo_rows
from mergemill.bench.unbuilt import store_unbuilt_task
from mergemill.execution.services import make_services
from taskdb.queries.lineages import add_lineage
from taskdb.records import Candidate, Kind, PullRequest, Record, Shape, Task
from taskdb.records.instructions import (
    JUDGED,
    BoundConstraint,
    InstructionOracle,
    PublishedChecklist,
)
from taskdb.records.lineage import Lineage
from taskdb.store import Store

if TYPE_CHECKING:
    from core.config import Settings
    from taskdb.artifacts import Artifacts

SOURCE = "instances:octo"
"""Source of published rows. It names no file, so that a row is the same task wherever it is imported."""
NO_COMMIT = "0" * 40
"""Base commit of a published row, whose tree is not known."""
NO_ENVIRONMENT = "published-checklist"
"""Reason for which no environment is built for a published row: its image is the benchmark's own."""
QUESTION = "Is this item met?"
FAMILY = "published"


@dataclass(kw_only=True)
class OctoImport:
    """Tasks of a file. `canary`: that of the set that all rows were exported from; empty for none."""

    tasks: list[Task] = field(default_factory=list)
    canary: str = ""

    @property
    def constraints(self) -> list[BoundConstraint]:
        """Items of all tasks."""
        oracles = [task.oracle for task in self.tasks if isinstance(task.oracle, InstructionOracle)]
        return [constraint for oracle in oracles for constraint in oracle.constraints]


@dataclass(frozen=True, kw_only=True)
class _OwnRow:
    """Content of OWN_KEY of a row of our own task."""

    records: Sequence[Record]
    task: Task
    artifacts: Sequence[bytes]


def import_octo(path: Path, bind: Path | None, settings: Settings) -> OctoImport:
    """Store the instruction tasks of a file.

    Args:
        path: rows, in any form of `core.json_files`.
        bind: table that binds items to checks by program; None for none.
        settings: database and store.

    Raises:
        InputError: the file or the table cannot be read, or any of their rows or keys is wrong; nothing is stored.
        Transient: the disk is full, or the database cannot be written.
    """
    rows = read_octo_rows(path)
    table = read_binding_table(bind) if bind else BindingTable()
    published = [row for row in rows if not _is_own(row)]
    table.check_items((row.name, item.name) for row in published for item in row.items)
    # All rows are read and checked before the database is opened, so that a wrong row leaves nothing behind.
    own = {row.name: _read_own_row(row) for row in rows if _is_own(row)}
    constraints = {row.name: _bind_items(row, table) for row in published}
    artifacts = make_services(settings, engine=False).artifacts
    imported = OctoImport(canary=_find_canary(rows))
    with Store.open(settings.storage.db, writes=True) as store:
        for row in rows:
            task = (
                _store_own_row(store, own[row.name], artifacts)
                if row.name in own
                else _store_published_row(store, row, constraints[row.name], artifacts)
            )
            imported.tasks.append(task)
    return imported


def _is_own(row: OctoRow) -> bool:
    """Return whether a row is of a task of our own, which has records."""
    return row.own is not None and "records" in row.own


def _find_canary(rows: Iterable[OctoRow]) -> str:
    """Return the canary that all rows have; empty where they have none, or several."""
    # The set keeps its canary, by which its rows in training data are recognised.
    canaries = {str((row.own or {}).get("canary") or "") for row in rows}
    return canaries.pop() if len(canaries) == 1 else ""


def _bind_items(row: OctoRow, table: BindingTable) -> tuple[BoundConstraint, ...]:
    """Return the constraints of a published row: bound by the table, else by the row's own key, else judged.

    Raises:
        InputError: a binding of the row's own key is of no item, or of no check.
    """
    # A binding that was exported holds, unless the user's table has another.
    known = {item.name for item in row.items}
    own: dict[str, BoundCheck] = {}
    bindings = (row.own or {}).get("bindings") or {}
    for name, value in bindings.items() if isinstance(bindings, dict) else ():
        place = f"{row.place}: {OWN_KEY}.bindings[{name!r}]"
        if name not in known:
            raise InputError(f"{place}: the row has no such check")
        try:
            own[name] = BoundCheck.model_validate(value)
        except ValidationError as error:
            raise InputError(f"{place}: {describe_invalid(error.errors())}") from error
        check_binding(own[name], place)
    return tuple(_bind_item(item, table.find(row.name, item.name) or own.get(item.name)) for item in row.items)


def _bind_item(item: OctoItem, bound: BoundCheck | None) -> BoundConstraint:
    return BoundConstraint(
        name=item.name,
        family=FAMILY,
        source=item.source,
        text=item.text,
        check=bound.check if bound else JUDGED,
        arguments=bound.arguments if bound else {"question": QUESTION},
    )


def _store_published_row(
    store: Store, row: OctoRow, constraints: tuple[BoundConstraint, ...], artifacts: Artifacts
) -> Task:
    """Store the change and the task of a published row, and return the task."""
    pull, candidate = _make_change(row, artifacts.put_text(""))
    oracle = InstructionOracle(
        constraints=constraints,
        turns=row.messages[1:],
        dutiful=None,
        careless=(),
        published=PublishedChecklist(
            row=artifacts.put_text(json.dumps(row.published)), image=row.image, workdir=row.workdir, system=row.system
        ),
    )
    task = build_task(Lineage(candidate=candidate), Kind.INSTRUCTIONS, oracle=oracle, problem_statement=row.messages[0])
    store_unbuilt_task(
        store, pull, candidate, task, reason=NO_ENVIRONMENT, detail="a published checklist has an image of its own"
    )
    return task


def _make_change(row: OctoRow, no_patch: str) -> tuple[PullRequest, Candidate]:
    """Return the change that stands for a published row. Rows of an image are of the same repository."""
    # An image has no owner/name, and a repository needs one.
    repo = f"octo/{re.sub(r'[^A-Za-z0-9_.-]+', '-', row.image or row.name).strip('.-')[-99:] or 'row'}"
    common: dict[str, Any] = {
        "source": SOURCE,
        "repo": repo,
        "name": row.name,
        "base_commit": NO_COMMIT,
        "merge_commit": NO_COMMIT,
        "version": "",
        "problem_statement": row.messages[0],
        "hints": "",
    }
    pull = PullRequest(
        number=None,
        shape=Shape.INSTANCE,
        title=row.messages[0].strip().partition("\n")[0].strip(),
        body="",
        author="",
        merged_at="",
        patch=no_patch,
        test_patch=no_patch,
        **common,
    )
    candidate = Candidate(
        parent=pull.id,
        language="unknown",
        created_at="",
        license="NOASSERTION",
        gold_patch=no_patch,
        test_patch=no_patch,
        gold_files=(),
        test_files=(),
        gold_lines=0,
        test_lines=0,
        **common,
    )
    return pull, candidate


def _read_own_row(row: OctoRow) -> _OwnRow:
    """Return the records of a row of our own task, checked against their hashes and the row's other keys.

    Raises:
        InputError: they are no records of an instruction task, or the row's other keys are not those of the task.
    """
    own = row.own or {}
    place = f"{row.place}: {OWN_KEY}.records"
    # Rows come from anyone: a record counts only under the id that its content gives.
    entries = own["records"] if isinstance(own["records"], list) else []
    records = list(parse_records((json.dumps(entry).encode() for entry in entries), place))
    tasks = [record for record in records if isinstance(record, Task)]
    if len(tasks) != 1 or not isinstance(tasks[0].oracle, InstructionOracle) or tasks[0].oracle.published:
        raise InputError(f"{place}: they are not those of an instruction task")
    contents = _read_artifacts(own.get("artifacts"), f"{row.place}: {OWN_KEY}.artifacts")
    if missing := [key for key in list_row_artifacts(records) if key not in contents]:
        raise InputError(f"{row.place}: {OWN_KEY}.artifacts: {missing[0][:12]} is missing")
    # An edited text would be shown to people and never to an agent.
    if make_public_row(tasks[0]) != row.published:
        raise InputError(
            f"{row.place}: {OWN_KEY}: the other keys are not those of its task",
            advice=f"without the key {OWN_KEY} it is read as a published row",
        )
    return _OwnRow(records=records, task=tasks[0], artifacts=list(contents.values()))


def _read_artifacts(value: object, place: str) -> Mapping[str, bytes]:
    """Return hash -> content, each with the hash that it is named by."""
    contents = {}
    for key, text in value.items() if isinstance(value, dict) else ():
        try:
            content = base64.b64decode(text["base64"], validate=True) if isinstance(text, dict) else text.encode()
        except (KeyError, TypeError, AttributeError, UnicodeEncodeError, binascii.Error) as error:
            raise InputError(f"{place}: {key[:12]} is neither text nor base64") from error
        if hashlib.sha256(content).hexdigest() != key:
            raise InputError(f"{place}: {key[:12]} has another hash")
        contents[key] = content
    return contents


def _store_own_row(store: Store, own: _OwnRow, artifacts: Artifacts) -> Task:
    for content in own.artifacts:
        artifacts.put(content)
    add_lineage(store, {record.id: record for record in own.records})
    return own.task
