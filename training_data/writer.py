"""A writer for rows of all formats: a file for each split, and the files that stand beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Generic, Self

from training_data.formats import Item, RowFormat
from training_data.parquet import ParquetShards
from training_data.row_files import JsonLines, replace_file
from training_data.sources import Row, RowSource

TRAIN = ("train",)


class RowWriter(Generic[Item]):
    """Context manager that writes items as rows of a format into a folder.

    Files have their names once all rows are written. Those of an earlier export are replaced.

    Args:
        folder: folder of the rows.
        row_format: format of the rows.
        source: the facts that the rows have in common.
        names: split -> its name in the path of its file, where it is another.
        splits: splits whose files are there even without rows; of others there are those that have rows.
        portable: whether JSON lines are ASCII with sorted keys.
    """

    def __init__(
        self,
        folder: Path,
        row_format: RowFormat[Item],
        source: RowSource,
        *,
        names: Mapping[str, str] | None = None,
        splits: Sequence[str] = TRAIN,
        portable: bool = False,
    ) -> None:
        self._folder, self._format, self._source = folder, row_format, source
        self._names, self._splits, self._portable = names or {}, splits, portable
        self._stack = ExitStack()
        self._files: dict[str, JsonLines | ParquetShards] = {}

    def __enter__(self) -> Self:
        for split in self._splits:
            self._open(split)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)
        if kind is None and self._format.make_files is not None:
            for name, content in self._format.make_files(self._source).items():
                replace_file(self._folder / name, content)

    @property
    def count(self) -> int:
        """Number of rows written so far."""
        return sum(file.count for file in self._files.values())

    @property
    def splits(self) -> list[str]:
        """The splits that have a file, in the order in which they were opened."""
        return list(self._files)

    def add(self, *items: Item, split: str = "train") -> Sequence[Row]:
        """Write items to the file of a split, all or none, and return their rows.

        Raises:
            LeftOutError: the format cannot hold one of them.
        """
        number = self._files[split].count if split in self._files else 0
        rows: list[Row] = []
        for item in items:
            rows += self._format.build(item, number + len(rows))
        if rows and split not in self._files:
            self._open(split)
        for row in rows:
            self._files[split].add(row)
        return rows

    def _open(self, split: str) -> None:
        path = self._folder / self._format.name_file(self._names.get(split, split))
        file: JsonLines | ParquetShards
        if self._format.make_schema is None:
            file = JsonLines(path, portable=self._portable)
        else:
            schema = self._format.make_schema(self._source)
            keep_empty = split in self._splits
            file = ParquetShards(
                path.with_suffix(""), schema, group_rows=self._format.group_rows, keep_empty=keep_empty
            )
        self._stack.enter_context(file)
        self._files[split] = file
