"""Training data as a folder: rows, the card of the data set, and a manifest with hashes, written last."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from core.errors import InputError, make_write_error
from core.version import read_version
from samplers.exports import atif, messages, sharegpt, token_rows
from samplers.exports.card import build_card
from samplers.exports.conversations import TrainedConversation, make_conversations, replace_system
from samplers.exports.facts import ExportedTrajectory
from samplers.exports.options import KEEP, TrainingFormat, TrainingOptions
from samplers.exports.report import TrainingReport
from training_data.card import render_card
from training_data.row_files import hash_files
from training_data.sharegpt import is_alternating

MANIFEST_NAME = "manifest.json"
MANIFEST_KIND = "mergemill-training-data"
SCHEMA = 1
WITHOUT_TOKENS = "the upstream gave no token ids"
NO_MASKS = "ShareGPT has no masks, and not every answer in it is trained"
NOT_ALTERNATING = "turns of user and model do not alternate"
GROUP_ROWS = 100
"""Rows of a row group of parquet."""


def write_training_data(
    items: Iterable[ExportedTrajectory],
    out: Path,
    options: TrainingOptions,
    left_out: Mapping[str, int] = MappingProxyType({}),
) -> TrainingReport:
    """Write trajectories to a new or empty folder; `left_out`: reason -> trajectories that are not among them.

    Raises:
        InputError: the folder has files, or writing is not permitted.
        Transient: the disk is full.
        UsageError: options exclude each other.
    """
    options.check()
    report = TrainingReport(left_out=Counter(left_out))
    try:
        out.mkdir(parents=True, exist_ok=True)
        if any(out.iterdir()):
            raise InputError(f"{out} is not empty", advice="name a new folder")
        with _open_writer(out, options) as write:
            for item in items:
                n_before = report.rows
                for row, length, n_answers in _make_rows(item, options, report.left_out):
                    write(row)
                    report.rows += 1
                    report.answers += n_answers
                    report.tokens.append(length)
                if report.rows > n_before:
                    report.add_trajectory(item)
        (out / "README.md").write_text(render_card(build_card(report, options)))
        report.manifest_sha256 = _write_manifest(out, options, report)
    except OSError as error:
        raise make_write_error(f"cannot write to {out}", error, advice="free some space, then run it again") from error
    return report


def _make_rows(
    item: ExportedTrajectory, options: TrainingOptions, left_out: Counter[str]
) -> Iterator[tuple[dict[str, Any], int, int]]:
    """Yield the rows of a trajectory, each with its length in tokens and the number of answers it trains."""
    if options.format is TrainingFormat.PARQUET:
        if not item.content.has_token_ids:
            left_out[WITHOUT_TOKENS] += 1
            return
        for row in token_rows.build_rows(item, per_request=options.per_request):
            yield row, len(row["input_ids"]), len(set(row["exchanges"][row["loss_mask"] > 0].tolist()))
        return
    for conversation in make_conversations(item.content, per_request=options.per_request):
        length = _measure_tokens(item, conversation)
        if options.system != KEEP:
            conversation = replace_system(conversation, options.system_text)  # noqa: PLW2901 - the same one
        if options.format is TrainingFormat.ATIF:
            yield atif.build_document(item, conversation), length, conversation.n_trained
        elif options.format is TrainingFormat.MESSAGES:
            yield messages.build_row(item, conversation), length, conversation.n_trained
        elif not (conversation.is_whole or options.per_request):
            left_out[NO_MASKS] += 1
        else:
            row = sharegpt.build_row(item, conversation, hermes=options.hermes)
            if is_alternating(row["conversations"]):
                yield row, length, conversation.n_trained
            else:
                left_out[NOT_ALTERNATING] += 1


def _measure_tokens(item: ExportedTrajectory, conversation: TrainedConversation) -> int:
    """Return the tokens of a conversation: those of its last request and the answer to it."""
    last = next(one for one in item.content.requests if one.exchange == conversation.exchanges[-1])
    return last.prompt_tokens + last.completion_tokens


@contextmanager
def _open_writer(out: Path, options: TrainingOptions) -> Iterator[Any]:
    """Open the files of a format, and yield a function that writes a row."""
    with ExitStack() as stack:
        if options.format is TrainingFormat.PARQUET:
            path = out / "data" / "train-00000-of-00001.parquet"
            path.parent.mkdir()
            writer = stack.enter_context(pq.ParquetWriter(path, token_rows.SCHEMA, compression="zstd"))
            waiting: list[dict[str, Any]] = []
            stack.callback(lambda: _write_group(writer, waiting))
            yield lambda row: _collect(writer, waiting, row)
        elif options.format is TrainingFormat.ATIF:
            (out / "trajectories").mkdir()
            yield lambda row: _write_document(out / "trajectories", row)
        else:
            if options.format is TrainingFormat.SHAREGPT:
                info = sharegpt.make_dataset_info(hermes=options.hermes)
                (out / "dataset_info.json").write_text(json.dumps(info, indent=1) + "\n")
            lines = stack.enter_context((out / "train.jsonl").open("w", encoding="utf-8", errors="replace"))
            yield lambda row: lines.write(json.dumps(row, ensure_ascii=False) + "\n")


def _collect(writer: pq.ParquetWriter, waiting: list[dict[str, Any]], row: dict[str, Any]) -> None:
    waiting.append(row)
    if len(waiting) >= GROUP_ROWS:
        _write_group(writer, waiting)


def _write_group(writer: pq.ParquetWriter, waiting: list[dict[str, Any]]) -> None:
    if waiting:
        columns = [pa.array([row[name] for row in waiting], token_rows.SCHEMA.field(name).type) for name in waiting[0]]
        writer.write_table(pa.Table.from_arrays(columns, names=list(waiting[0])).select(token_rows.SCHEMA.names))
    waiting.clear()


def _write_document(folder: Path, document: dict[str, Any]) -> None:
    text = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
    (folder / f"{document['trajectory_id']}.json").write_text(text, encoding="utf-8", errors="replace")


def _write_manifest(out: Path, options: TrainingOptions, report: TrainingReport) -> str:
    """Write the manifest of the files that are there now; return its sha256."""
    manifest = {
        "kind": MANIFEST_KIND,
        "schema": SCHEMA,
        "mergemill": read_version(),
        "format": options.format.value,
        "options": {"per_request": options.per_request, "hermes": options.hermes, "system": options.system},
        "files": hash_files(out),
        "rows": report.rows,
        "answers": report.answers,
        "left_out": dict(report.left_out),
        "lengths": {name: [asdict(one) for one in bins] for name, bins in report.lengths.items()},
        "trajectories": report.trajectories,
    }
    content = json.dumps(manifest, indent=1, sort_keys=True) + "\n"
    (out / MANIFEST_NAME).write_text(content)
    return hashlib.sha256(content.encode()).hexdigest()
