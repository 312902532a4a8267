"""JSON of files that a user names: a document per line, or documents that span lines, and the rows that they hold.

A row is a document of its own (JSON lines, or one object over several lines), an entry of a list, or a value of an
object whose keys are names. Compressed files (gzip) and byte order marks are recognised by their first bytes. A line
that is no JSON is reported, and the others are read; of a broken document that spans lines there is one report.
"""

from __future__ import annotations

import codecs
import gzip
import io
import json
import re
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from core.errors import InputError
from core.files import open_input

MAX_LINE = 256 << 20
"""Characters of a line."""
MAX_DOCUMENT = 4 << 30
"""Characters of a document that is read at once: one that spans lines, or any in a file named `.json`."""
_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')


@dataclass(frozen=True, kw_only=True)
class JsonRow:
    """Row or document of a file; `problem`: why it has no value, else empty."""

    line: int
    """Line on which its document begins, from 1."""
    position: int = 0
    """Position in the list or object that is its document, from 1; 0 where it is a document of its own."""
    key: str | None = None
    """Its key in the object that is its document."""
    value: Any = None
    problem: str = ""

    @property
    def number(self) -> int:
        """Position in the document that begins on the first line, which is mostly the whole file; else the line."""
        return self.position if self.position and self.line == 1 else self.line

    @property
    def place(self) -> str:
        """Line, and the position in the document that begins there."""
        return f"line {self.line}" + (f", row {self.position}" if self.position else "")


def read_rows(path: Path, is_row: Callable[[dict[str, Any]], bool], *, noun: str = "") -> Iterator[JsonRow]:
    """Yield the rows of a file.

    Args:
        path: the file.
        is_row: whether an object is a row; of any other object each value is a row.
        noun: see `read_documents`.

    Raises:
        InputError: see `read_documents`.
    """
    for document in read_documents(path, noun=noun):
        yield from split_document(document, is_row)


def split_document(document: JsonRow, is_row: Callable[[dict[str, Any]], bool]) -> Iterator[JsonRow]:
    """Yield the rows of a document; see `read_rows`."""
    value, line = document.value, document.line
    if document.problem or not isinstance(value, dict | list) or (isinstance(value, dict) and value and is_row(value)):
        yield document
    elif not value:
        yield JsonRow(line=line, problem=f"it is an empty {'list' if isinstance(value, list) else 'object'}")
    elif isinstance(value, list):
        yield from (JsonRow(line=line, position=n, value=entry) for n, entry in enumerate(value, 1))
    else:
        yield from (JsonRow(line=line, position=n, key=key, value=value[key]) for n, key in enumerate(value, 1))


def read_documents(path: Path, *, noun: str = "") -> Iterator[JsonRow]:
    """Yield the JSON documents of a file, and a problem for each line that is none.

    Args:
        path: the file.
        noun: name of its content in an error, such as `the predictions`.

    Raises:
        InputError: the file cannot be read, or a line or document is too long.
    """
    noun = noun and f"{noun} "
    # A document in a file of this name is often one line.
    limit = MAX_DOCUMENT if path.name.removesuffix(".gz").endswith(".json") else MAX_LINE
    try:
        with open_input(path) as file, _decode(_decompress(file)) as text:
            yield from _Documents(path, text, limit)
    except (OSError, EOFError, zlib.error, UnicodeError) as error:
        raise InputError(f"cannot read {noun}{path}: {getattr(error, 'strerror', None) or error}") from error


def _decompress(file: io.BufferedReader) -> io.BufferedReader | gzip.GzipFile:
    return gzip.GzipFile(fileobj=file) if file.peek(2)[:2] == b"\x1f\x8b" else file


def _decode(file: io.BufferedReader | gzip.GzipFile) -> io.TextIOWrapper:
    begin = file.peek(4)
    encoding = next((name for mark, name in _BOMS if begin.startswith(mark)), "utf-8")
    # A byte that is not UTF-8 makes its line a problem, not the file.
    return io.TextIOWrapper(file, encoding, errors="surrogateescape", newline="\n")


class _Documents:
    """Iterator over the documents of a text. `limit`: characters of a line."""

    def __init__(self, path: Path, file: IO[str], limit: int) -> None:
        self._path = path
        self._lines = self._number_lines(file, limit)
        self._returned: deque[tuple[int, str]] = deque()
        self._may_span = True

    def __iter__(self) -> Iterator[JsonRow]:
        while (numbered := self._take_line()) is not None:
            number, line = numbered
            try:
                yield JsonRow(line=number, value=_parse(line))
            except ValueError as error:
                is_open = isinstance(error, json.JSONDecodeError) and error.pos >= len(line)
                yield self._read_spanning(number, line) if is_open and self._may_span else _report(number, error)

    def _read_spanning(self, number: int, line: str) -> JsonRow:
        """Return the document that begins with a line; the problem of the line where other documents follow it."""
        lines, depth, size = [(number, line)], _count_open(line), len(line)
        while depth > 0 and (following := self._take_line()) is not None:
            lines.append(following)
            depth += _count_open(following[1])
            size += len(following[1])
            if size > MAX_DOCUMENT:
                raise InputError(f"{self._path}:{number} has more than {MAX_DOCUMENT} bytes")
        try:
            return JsonRow(line=number, value=_parse("\n".join(text for _, text in lines)))
        except ValueError as error:
            if len(lines) > 1 and _is_json(lines[1][1]):
                # The line was cut off. Each such line might take all that follow, so that only the first one may.
                self._may_span = False
                self._returned.extend(lines[1:])
                return JsonRow(line=number, problem="it is not JSON: the line ends within a value")
            at = lines[error.lineno - 1][0] if isinstance(error, json.JSONDecodeError) else number
            return _report(number, error, at)

    def _take_line(self) -> tuple[int, str] | None:
        return self._returned.popleft() if self._returned else next(self._lines, None)

    def _number_lines(self, file: IO[str], limit: int) -> Iterator[tuple[int, str]]:
        """Yield the lines that are not empty, with their numbers."""
        number = 0
        while line := file.readline(limit):
            number += 1
            if len(line) == limit:
                raise InputError(f"{self._path}:{number} has more than {limit} bytes")
            # Files that were joined may have a mark at the beginning of any line.
            if text := line.strip().lstrip("\ufeff").lstrip():
                yield number, text


def _report(line: int, error: ValueError, at: int | None = None) -> JsonRow:
    if not isinstance(error, json.JSONDecodeError):
        return JsonRow(line=line, problem=str(error))
    place = f" in line {at}" if at not in (None, line) else ""
    return JsonRow(line=line, problem=f"it is not JSON: {error.msg}{place}, character {error.colno}")


def _parse(text: str) -> Any:
    """Return a document.

    Raises:
        ValueError: it is not JSON, or not UTF-8.
    """
    try:
        text.encode()
        return json.loads(text)
    except UnicodeEncodeError:
        raise ValueError("it is not UTF-8") from None
    except RecursionError:
        raise ValueError("it is not JSON: it is nested too deeply") from None


def _is_json(text: str) -> bool:
    try:
        _parse(text)
    except ValueError:
        return False
    return True


def _count_open(line: str) -> int:
    """Return how many brackets of a line are not closed in it; strings of JSON do not span lines."""
    bare = _STRING.sub("", line) if '"' in line else line
    return sum(map(bare.count, "[{")) - sum(map(bare.count, "]}"))
