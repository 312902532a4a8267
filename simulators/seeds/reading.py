"""Seeds of files and folders. A document that cannot be read is reported with its place; all else is read first."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from core.errors import InputError
from core.files import read_input
from simulators.seeds.formats import READERS, SeedDocument, SeedFormatError, find_reader
from simulators.seeds.seed import UNKNOWN_LICENSE, Seed

SUFFIXES = (".json", ".jsonl", ".parquet")
COMPANIONS = frozenset(("dataset_info.json", "manifest.json"))
"""Files next to the rows of an export, which hold no conversation."""
ADVICE = f"formats are {', '.join(reader.name for reader in READERS)}: see docs/guide/simulate/simulate.md"
FEW_PROBLEMS = 5
"""Problems of a file that are named individually."""


@dataclass
class SeedCollection:
    """Seeds in the order of their files, each conversation once, and the documents that could not be read."""

    seeds: list[Seed] = field(default_factory=list)
    problems: list[InputError] = field(default_factory=list)
    n_repeated: int = 0
    """Conversations that were read before."""


def read_seeds(path: Path, *, license_id: str = "") -> SeedCollection:
    """Return the seeds of a file, or of all files of a folder.

    Args:
        path: a file of a format of `READERS` (JSON, a row a line, or parquet), or a folder of such files.
        license_id: SPDX id of seeds whose source names none.

    Raises:
        InputError: there is not such a file, or no conversation in it.
    """
    collection, known = SeedCollection(), dict[str, int]()
    files = _list_files(path)
    for file in files:
        problems: list[InputError] = []
        for place, document in _read_documents(file, problems):
            for seed in _read_document(file, place, document, license_id, problems):
                if seed.id in known:
                    collection.n_repeated += 1
                    place_of_first = known[seed.id]
                    collection.seeds[place_of_first] = _add_origin(collection.seeds[place_of_first], seed)
                    continue
                known[seed.id] = len(collection.seeds)
                collection.seeds.append(seed)
        collection.problems += _shorten(file, problems)
    if not collection.seeds:
        first = f": {collection.problems[0]}" if collection.problems else ""
        raise InputError(f"{path} holds no conversations{first}", advice=ADVICE)
    return collection


def _list_files(path: Path) -> list[Path]:
    if not path.exists():
        raise InputError(f"there is no file or folder {path}", advice="name it with --seeds")
    if not path.is_dir():
        return [path]
    files = sorted(file for file in path.rglob("*") if file.suffix in SUFFIXES and file.name not in COMPANIONS)
    if not files:
        raise InputError(f"{path} holds no conversations: no file ends in {', '.join(SUFFIXES)}", advice=ADVICE)
    return files


def _read_documents(file: Path, problems: list[InputError]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield place and document: the elements of a list, the lines of a file, the rows of a table."""
    try:
        if file.suffix == ".parquet":
            yield from enumerate(pq.read_table(file).to_pylist(), 1)
            return
        text = read_input(file).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError, pa.ArrowInvalid) as error:
        reason = getattr(error, "strerror", None) or "it is neither text nor parquet"
        problems.append(InputError(f"cannot read {file}: {reason}", advice=ADVICE))
        return
    whole = _load(text)
    if isinstance(whole, list | dict):
        listed = whole if isinstance(whole, list) else [whole]
        numbered = list(enumerate(listed, 1))
    else:
        lines = enumerate(text.splitlines(), 1)
        numbered = [(number, _load(line)) for number, line in lines if line.strip()]
    if not numbered:
        problems.append(InputError(f"{file} is empty", advice=ADVICE))
    for place, document in numbered:
        if isinstance(document, Mapping):
            yield place, document
        else:
            problems.append(InputError(f"{file}:{place} is no JSON object", advice=ADVICE))


def _read_document(
    file: Path, place: int, document: Mapping[str, Any], license_id: str, problems: list[InputError]
) -> Iterator[Seed]:
    try:
        reader = find_reader(document)
        for seed_document in list(reader.read(document)):
            yield _make_seed(seed_document, file, place, reader.name, license_id)
    except (SeedFormatError, AttributeError, KeyError, TypeError, ValueError) as error:
        reason = str(error) if isinstance(error, SeedFormatError) else "a field is missing or has another type"
        problems.append(InputError(f"{file}:{place} holds no conversation: {reason}", advice=ADVICE))


def _make_seed(document: SeedDocument, file: Path, place: int, format_name: str, license_id: str) -> Seed:
    return Seed(
        conversation=document.conversation,
        file=file.name,
        line=place,
        format=format_name,
        name=document.name,
        subjects=document.subjects,
        license=document.license or license_id or UNKNOWN_LICENSE,
        is_solved=document.is_solved,
    )


def _add_origin(seed: Seed, repeated: Seed) -> Seed:
    """Return a seed with the words of another source of the same conversation: one may name a subject alone."""
    further = dict.fromkeys(word for word in repeated.origin if word not in seed.origin)
    return replace(seed, subjects=(*seed.subjects, *further)) if further else seed


def _load(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _shorten(file: Path, problems: list[InputError]) -> list[InputError]:
    """Return the first problems of a file, and how many more it has."""
    if len(problems) <= FEW_PROBLEMS:
        return problems
    more = f"{file}: {len(problems) - FEW_PROBLEMS} more lines hold no conversation"
    return [*problems[:FEW_PROBLEMS], InputError(more, advice=ADVICE)]
