"""Stored form of records: canonical JSON, compressed, with each list of tests stored once.

A body is a byte, the number of the dictionary it was compressed with, and a zstd frame. In its JSON a long list of
tests is replaced by a reference (`{"$list": hash}`) to a row of `test_list`, which records share: the lists of a
verification and of its tasks are equal. A list is stored as the part that differs from a list of the same repository
where that is shorter. Ids of records are those of the whole JSON.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import zstandard
from pydantic_core import from_json
from sqlalchemy import Connection, text

from core.errors import InputError
from taskdb.schema.batches import KeyedQuery, split_batches

Json = dict[str, Any]
REFERENCE = "$list"
_MARK = REFERENCE.encode()
Reference = tuple[Json, str, str]
"""Object, name of its field, and hash of the list that belongs there."""
ListBase = tuple[int, zstandard.ZstdCompressor]
"""`seq` of a whole list, and a compressor that gives differences from it."""
_LIST_FIELDS = frozenset(("FAIL_TO_PASS", "PASS_TO_PASS", "flaky", "controls", "eval_files", "missing", "extra"))
_MIN_LENGTH = 120
"""Shorter lists (characters of JSON) stay in their record."""
DICTIONARIES = {0: None, 1: Path(__file__).with_name("bodies_1.dict")}
"""Number -> file of a dictionary. A file never changes: bodies need the dictionary they were compressed with."""
_NEWEST = 1
_LEVEL = 9
_GROUP = re.compile(r"(.+?)-(\d[\w.]*|[0-9a-f]{7,40})(\.[a-z-]+(-\d+)?)?$")
"""Name of a change or task: repository, number, kind."""


@dataclass
class ListBatch:
    """Lists of tests to be stored: hash -> repository and JSON."""

    lists: dict[str, tuple[str, bytes]] = field(default_factory=dict)

    def add(self, group: str, content: bytes) -> str:
        """Add a list and return its hash."""
        key = hashlib.sha256(content).hexdigest()[:32]
        self.lists[key] = (group, content)
        return key


def pack_body(data: Json, lists: ListBatch) -> bytes:
    """Return the stored form of a record's JSON data; its lists are added to `lists`."""
    match = _GROUP.match(str(data.get("name", "")))
    return compress_body(_dump(_extract_lists(data, match[1] if match else str(data.get("name", "")), lists)))


def compress_body(content: bytes) -> bytes:
    """Return the stored form of JSON without lists."""
    return bytes([_NEWEST]) + _get_compressor(_NEWEST).compress(content)


def decompress_body(packed: bytes) -> bytes:
    """Return the JSON of a body, references to lists in it.

    Raises:
        InputError: it is damaged, or compressed with the dictionary of a newer mergemill.
    """
    packed = bytes(packed)
    if not packed or packed[0] not in DICTIONARIES:
        raise InputError("a record cannot be read", advice="update mergemill, or restore the database from a copy")
    try:
        return _get_decompressor(packed[0]).decompress(packed[1:])
    except zstandard.ZstdError as error:
        raise InputError(f"a record is damaged: {error}", advice="restore the database from a copy") from error


def decompress_bodies(packed: Sequence[bytes]) -> list[bytes]:
    """Return the JSON of many bodies in their order; errors as in `decompress_body`.

    They are decompressed in a single call, during which other threads run.
    """
    # Bodies of different dictionaries cannot be decompressed by the same call.
    numbers = {body[:1] for body in packed}
    if len(numbers) != 1 or (number := int.from_bytes(numbers.pop(), "big")) not in DICTIONARIES:
        return [decompress_body(body) for body in packed]
    try:
        return _decompress_many(_get_decompressor(number), [body[1:] for body in packed])
    except (zstandard.ZstdError, ValueError):
        # Decompressed individually, so that the error is that of the damaged body.
        return [decompress_body(body) for body in packed]


def _decompress_many(decompressor: zstandard.ZstdDecompressor, frames: Sequence[bytes]) -> list[bytes]:
    if not frames:
        return []
    contents = decompressor.multi_decompress_to_buffer(list(frames))
    return [contents[place].tobytes() for place in range(len(contents))]


def unpack_bodies(connection: Connection, packed: Iterable[bytes]) -> list[Json]:
    """Return the JSON data of bodies in their order."""
    bodies, references = list[Json](), list[Reference]()
    for body in packed:
        raw = decompress_body(body)
        data = parse_json(raw)
        bodies.append(data)
        # Searching bytes is far cheaper than walking the data of a body without lists.
        if _MARK in raw:
            references += _find_references(data)
    _insert_lists(connection, references)
    return bodies


def unpack_field(connection: Connection, packed: bytes, name: str) -> Any:
    """Return a field of a body as JSON data, or None where it is absent; other fields' lists are not read."""
    field = {name: parse_json(decompress_body(packed)).get(name)}
    _insert_lists(connection, list(_find_references(field)))
    return field[name]


def _insert_lists(connection: Connection, references: Sequence[Reference]) -> None:
    """Put lists of tests in the places that refer to them."""
    lists = load_lists(connection, sorted({key for _, _, key in references})) if references else {}
    for holder, name, key in references:
        holder[name] = lists[key]


def parse_apart(raw: bytes, apart: Mapping[str, str]) -> tuple[Json, dict[str, str]]:
    """Return the data of a body without some of its fields, and these as JSON text: faster than data that nobody reads.

    Args:
        raw: JSON of the body.
        apart: name of such a field -> name of the field behind it, both no names of fields inside another. Fields
            are sorted and quotes in texts escaped, so that `,"NAME":` is nowhere else.
    """
    texts, rest, at = dict[str, str](), list[bytes](), 0
    for name, following in apart.items():
        mark = _mark_field(name)
        start = raw.find(mark, at)
        end = raw.find(_mark_field(following), start)
        # A body that is older than a field lacks it, so its text cannot be cut out.
        if start < 0 or end < 0:
            data = parse_json(raw)
            return data, {name: _dump(data.pop(name, None)).decode() for name in apart}
        texts[name] = raw[start + len(mark) : end].decode()
        rest.append(raw[at:start])
        at = end
    return parse_json(b"".join((*rest, raw[at:]))), texts


@cache
def _mark_field(name: str) -> bytes:
    return b',"%s":' % name.encode()


def parse_json(raw: bytes) -> Any:
    """Return the data of JSON that this module wrote; only texts with lone surrogates need the slower parser."""
    try:
        return from_json(raw)
    except ValueError:
        return json.loads(raw)


def store_lists(connection: Connection, batch: ListBatch, bases: dict[str, ListBase] | None = None) -> None:
    """Store the lists that are new, each as the difference from a list of its repository where that is shorter.

    Args:
        connection: a write transaction.
        batch: the lists.
        bases: repository -> a list of it, for several calls in a single transaction.
    """
    bases = {} if bases is None else bases
    # Equal lists are stored once, and runs of a task mostly have equal lists.
    known = {key for part in split_batches(sorted(batch.lists), _PART) for (key,) in _KNOWN.fetch(connection, part)}
    for key, (group, content) in sorted(batch.lists.items()):
        if key in known:
            continue
        if group not in bases and (row := connection.execute(_BASE, {"repo": group}).first()):
            bases[group] = _make_base(row.seq, _get_decompressor(0).decompress(row.content))
        base, packed = _pack_list(content, bases.get(group))
        row = connection.execute(_ADD, {"id": key, "repo": group, "base": base, "content": packed}).first()
        if base is None and row:
            bases[group] = _make_base(row.seq, content)


def _make_base(seq: int, content: bytes) -> ListBase:
    return seq, _make_compressor(_make_dictionary(content))


def _pack_list(content: bytes, base: ListBase | None) -> tuple[int | None, bytes]:
    """Return the number of the list that the stored form is the difference from, or None, and the stored form."""
    whole = _get_compressor(0).compress(content)
    if base is not None:
        seq, compressor = base
        difference = compressor.compress(content)
        # A difference costs the base's decompression on each reading, so it has to save at least half.
        if len(difference) * 2 < len(whole):
            return seq, difference
    return None, whole


def load_lists(connection: Connection, keys: Sequence[str]) -> dict[str, list[Any]]:
    """Return hash -> list.

    Raises:
        InputError: a list is missing.
    """
    return {key: parse_json(content) for key, content in load_list_contents(connection, keys).items()}


def load_list_contents(connection: Connection, keys: Sequence[str]) -> dict[str, bytes]:
    """Return hash -> JSON of a list.

    Raises:
        InputError: a list is missing or damaged.
    """
    contents = dict[str, bytes]()
    for part in split_batches(keys, _PART):
        try:
            contents |= _unpack_lists(_LISTS.fetch(connection, part))
        except (zstandard.ZstdError, ValueError) as error:
            advice = "restore the database from a copy"
            raise InputError(f"a list of tests is damaged: {error}", advice=advice) from error
    if missing := set(keys) - set(contents):
        raise InputError(f"{len(missing)} lists of tests are missing", advice="restore the database from a copy")
    return contents


def _unpack_lists(rows: Sequence[tuple[Any, ...]]) -> dict[str, bytes]:
    """Return hash -> JSON of the rows of _LISTS. A base is unpacked once for all lists that are its differences."""
    bases = {
        base: _make_decompressor(_make_dictionary(_unpack_list(content))) for key, base, content in rows if not key
    }
    differences = {key: bases[base].decompress(content) for key, base, content in rows if key and base is not None}
    whole = {key: content for key, base, content in rows if key and base is None}
    return differences | dict(zip(whole, _decompress_many(_get_decompressor(0), list(whole.values())), strict=True))


def _unpack_list(content: bytes) -> bytes:
    return _get_decompressor(0).decompress(content)


def collect_references(packed: bytes) -> set[str]:
    """Return the hashes of the lists that a body refers to."""
    return {key for _, _, key in _find_references(json.loads(decompress_body(packed)))}


_KNOWN = KeyedQuery("SELECT id FROM test_list WHERE id IN :keys")
_LISTS = KeyedQuery("""WITH wanted AS (SELECT id, base, content FROM test_list WHERE id IN :keys)
                       SELECT id, base, content FROM wanted
                       UNION ALL SELECT NULL, seq, content FROM test_list WHERE seq IN (SELECT base FROM wanted)""")
"""The lists, and behind them the bases without an id."""
_BASE = text("SELECT seq, content FROM test_list WHERE repo = :repo AND base IS NULL ORDER BY seq DESC LIMIT 1")
_ADD = text("""INSERT INTO test_list (id, repo, base, content) VALUES (:id, :repo, :base, :content)
               ON CONFLICT (id) DO NOTHING RETURNING seq""")
_PART = 500


def _extract_lists(data: Any, group: str, lists: ListBatch) -> Any:
    if isinstance(data, dict):
        extracted = {}
        for key, value in data.items():
            content = _dump(value) if key in _LIST_FIELDS and isinstance(value, list) else b""
            if len(content) >= _MIN_LENGTH:
                extracted[key] = {REFERENCE: lists.add(group, content)}
            else:
                extracted[key] = _extract_lists(value, group, lists) if isinstance(value, dict) else value
        return extracted
    return data


def _find_references(data: Json) -> Iterator[Reference]:
    for name, value in data.items():
        if type(value) is dict:
            if name in _LIST_FIELDS and len(value) == 1 and REFERENCE in value:
                yield data, name, value[REFERENCE]
            else:
                yield from _find_references(value)


def _dump(data: Any) -> bytes:
    return json.dumps(data, sort_keys=True, separators=(",", ":")).encode()


@cache
def _load_dictionary(number: int) -> zstandard.ZstdCompressionDict | None:
    path = DICTIONARIES[number]
    return _make_dictionary(path.read_bytes()) if path else None


def _make_dictionary(content: bytes) -> zstandard.ZstdCompressionDict:
    return zstandard.ZstdCompressionDict(content, dict_type=zstandard.DICT_TYPE_RAWCONTENT)


def _make_compressor(dictionary: zstandard.ZstdCompressionDict | None) -> zstandard.ZstdCompressor:
    """Return a new compressor: one must not be used by several threads."""
    return zstandard.ZstdCompressor(level=_LEVEL, dict_data=dictionary)


def _make_decompressor(dictionary: zstandard.ZstdCompressionDict | None) -> zstandard.ZstdDecompressor:
    return zstandard.ZstdDecompressor(dict_data=dictionary)


class _ThreadState(threading.local):
    """Objects that a thread keeps: one must not be used by several, and making one takes longer than using it."""

    def __init__(self) -> None:
        self.compressors: dict[int, zstandard.ZstdCompressor] = {}
        self.decompressors: dict[int, zstandard.ZstdDecompressor] = {}


_THREAD = _ThreadState()


def _get_compressor(number: int) -> zstandard.ZstdCompressor:
    """Return this thread's compressor with a dictionary."""
    if number not in _THREAD.compressors:
        _THREAD.compressors[number] = _make_compressor(_load_dictionary(number))
    return _THREAD.compressors[number]


def _get_decompressor(number: int) -> zstandard.ZstdDecompressor:
    """Return this thread's decompressor with a dictionary."""
    if number not in _THREAD.decompressors:
        _THREAD.decompressors[number] = _make_decompressor(_load_dictionary(number))
    return _THREAD.decompressors[number]
