"""Frozen sets: subjects with hashes of everything that decides their grading, as a record and as a file."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from core.errors import InputError, UsageError, make_write_error
from core.files import read_input
from taskdb.queries.bench import SCENARIO, find_certified_tasks, find_current_tasks, list_sets, resolve_set
from taskdb.queries.worlds import find_current_scenarios
from taskdb.records import Task
from taskdb.records.bench import BenchLimits, BenchSet, BenchSubject
from taskdb.records.worlds import Scenario
from taskdb.store import Store
from training_data.row_files import replace_file

SCHEMA = 1
CANARY = "mergemill-bench"
DIGEST_FIELD = "image_digest"
"""Field that differs between two builds of an image from the same inputs."""
GRADING_FIELDS = frozenset(
    {
        *("FAIL_TO_PASS", "PASS_TO_PASS", "controls", "control_patch", "blind_controls", "evaluations"),
        *("gold_patch", "test_patch", "setup_patch", "eval_script", "oracle", "image", DIGEST_FIELD),
    }
)
"""Fields of a task that decide the reward of a submission; texts are in them as their hashes."""
_ABSENT_FIELDS = ("others", "published")
"""Fields of an oracle that are left out where it has none, so that sets frozen before there were any stay valid."""
_READ_FIELDS = frozenset({"tree", "related", "material"})
"""Fields of an oracle that a reviewer reads, and that decide nothing. Sets frozen before there were any stay valid."""
SET_NAME = "set.json"
"""File of a set in an export."""
CHANGED = "changed-subject"
"""Name under which subjects are counted that are not as they were when their set was frozen."""
NOT_THERE = "it is not in the database"
NOT_CERTIFIED = "it has no certificate in this database: mergemill certify makes it"
_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,99}", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class ChangedSubject:
    """A subject that is not as it was when its set was frozen."""

    name: str
    problem: str


def hash_grading(subject: Task | Scenario, *, rebuilt_images: bool = False) -> str:
    """Return the sha256 (hex) of everything that decides the grading of a task or scenario.

    With `rebuilt_images` the digest of the image is no part of it; its name is, a hash of the inputs of its build.
    """
    if isinstance(subject, Scenario):
        decisive: dict[str, Any] = {"world": subject.parent, "definition": subject.definition}
    else:
        unused = {*_READ_FIELDS, *(name for name in _ABSENT_FIELDS if not getattr(subject.oracle, name, None))}
        fields = set(GRADING_FIELDS) - ({DIGEST_FIELD} if rebuilt_images else set())
        decisive = subject.model_dump(mode="json", include=fields, exclude={"oracle": unused})
    return _hash_json(decisive)


def check_name(name: str) -> str:
    """Return the name of a set.

    Raises:
        UsageError: it has other characters than letters, digits, `.`, `_` and `-`.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name[:80]!r} is no name of a set", advice="letters, digits, '.', '_' and '-'")
    return name


def freeze(
    store: Store,
    name: str,
    subjects: Sequence[Task | Scenario],
    limits: BenchLimits,
    *,
    held_out: bool,
    rebuilt_images: bool = False,
    canary: str = "",
) -> BenchSet:
    """Return the set of some subjects, which is stored; equal content under the same name is the same set.

    Args:
        store: the database, open for writing.
        name: name of the set.
        subjects: tasks and scenarios, in any order.
        limits: limits of a rollout on each of them.
        held_out: whether they are refused as training data.
        rebuilt_images: whether their images may be built again elsewhere.
        canary: canary of the export that they were imported from; empty for one of their own.

    Raises:
        InputError: there is no subject, or two have the same name.
        UsageError: the name has other characters than letters, digits, `.`, `_` and `-`.
    """
    check_name(name)
    if not subjects:
        raise InputError("no subject is selected", advice="mergemill tasks list shows tasks; see its filters")
    twice = [word for word, number in Counter(subject.name for subject in subjects).items() if number > 1]
    if twice:
        raise InputError(f"two subjects are named {twice[0]}", advice="choose one, such as with --source")
    frozen = tuple(
        BenchSubject(
            name=subject.name,
            id=subject.id,
            kind=SCENARIO if isinstance(subject, Scenario) else subject.kind.value,
            grading=hash_grading(subject, rebuilt_images=rebuilt_images),
        )
        for subject in sorted(subjects, key=lambda subject: subject.name)
    )
    earlier = [bench_set for bench_set in list_sets(store) if bench_set.name == name]
    content = (frozen, held_out, limits, rebuilt_images)
    for bench_set in earlier:
        if (bench_set.subjects, bench_set.held_out, bench_set.limits, bench_set.rebuilt_images) == content:
            return bench_set
    version = str(
        max((int(bench_set.version) for bench_set in earlier if bench_set.version.isdecimal()), default=0) + 1
    )
    named = [name, version, [subject.model_dump() for subject in frozen]]
    bench_set = BenchSet(
        name=name,
        version=version,
        held_out=held_out,
        canary=canary or f"{CANARY} {_hash_json(named)[:32]}",
        subjects=frozen,
        limits=limits,
        rebuilt_images=rebuilt_images,
    )
    store.add(bench_set)
    return bench_set


def describe_set(bench_set: BenchSet) -> dict[str, Any]:
    """Return the JSON of a set, with the sha256 of its other keys."""
    # A set of earlier versions has no such key, and the hash of its file stays valid.
    unused = None if bench_set.rebuilt_images else {"rebuilt_images"}
    document = {"schema": SCHEMA, **bench_set.model_dump(mode="json", exclude=unused)}
    return document | {"sha256": _hash_json(document)}


def write_set(bench_set: BenchSet, path: Path) -> None:
    """Write the file of a set.

    Raises:
        InputError: writing is not permitted.
        Transient: the disk is full.
    """
    try:
        replace_file(path, json.dumps(describe_set(bench_set), indent=1) + "\n")
    except OSError as error:
        raise make_write_error(f"cannot write {path}", error) from error


def read_set(path: Path) -> BenchSet:
    """Return the set of a file.

    Raises:
        InputError: it cannot be read, is no set, or was changed after it was written.
    """
    try:
        document = json.loads(read_input(path))
        schema, digest = document.pop("schema"), document.pop("sha256")
        bench_set = BenchSet.model_validate(document)
    except OSError as error:
        raise InputError(f"cannot read the set {path}: {error.strerror}") from error
    except (ValueError, KeyError, AttributeError, TypeError, ValidationError) as error:
        raise InputError(f"{path} is no set", advice="mergemill bench freeze writes them") from error
    if schema != SCHEMA:
        raise InputError(f"{path} is a set of schema {schema}", advice="update mergemill")
    if digest != describe_set(bench_set)["sha256"]:
        raise InputError(f"{path} was changed after it was written", advice="freeze the set again")
    return bench_set


def open_set(store: Store, word: str) -> BenchSet:
    """Return the set of a file or name; that of a file is stored, so that its subjects are held out from then on.

    Raises:
        InputError: there is no such set, or the file is none.
    """
    path = Path(word)
    if path.suffix != ".json" and not path.is_file():
        return resolve_set(store, word)
    bench_set = read_set(path)
    if not store.is_read_only:
        store.add(bench_set)
    return bench_set


def find_changed_subjects(store: Store, bench_set: BenchSet) -> list[ChangedSubject]:
    """Return the subjects that differ from the set: another id, another hash of their grading, or none any more.

    Where images may be built again, also those without a certificate, which shows that gold earns 1 and an empty
    submission 0 in the image of this machine.
    """
    tasks = [subject for subject in bench_set.subjects if subject.kind != SCENARIO]
    current = find_current_tasks(store, [subject.name for subject in tasks])
    records: dict[str, Task | Scenario] = dict(store.get_many(Task, [subject.id for subject in tasks]))
    if len(tasks) < len(bench_set.subjects):
        for scenario in find_current_scenarios(store, certified=False):
            current.setdefault(scenario.name, set()).add(scenario.id)
            records[scenario.id] = scenario
    certified = find_certified_tasks(store, list(records)) if bench_set.rebuilt_images else frozenset(records)
    changed = []
    for subject in bench_set.subjects:
        ids = current.get(subject.name, set())
        if not ids:
            changed.append(ChangedSubject(name=subject.name, problem=NOT_THERE))
        elif subject.id not in ids:
            changed.append(ChangedSubject(name=subject.name, problem=f"its id is {min(ids)[:12]} now"))
        elif hash_grading(records[subject.id], rebuilt_images=bench_set.rebuilt_images) != subject.grading:
            changed.append(ChangedSubject(name=subject.name, problem="it is graded otherwise: image, script or lists"))
        elif subject.id not in certified and subject.kind != SCENARIO:
            changed.append(ChangedSubject(name=subject.name, problem=NOT_CERTIFIED))
    return changed


def _hash_json(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
