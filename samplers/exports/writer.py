"""Training data as a folder: rows, the card of the data set, and a manifest with hashes, written last."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import Any

from core.errors import InputError, make_write_error
from core.version import read_version
from samplers.exports import atif, token_rows
from samplers.exports.card import build_card
from samplers.exports.conversations import TrainedConversation, make_conversations, replace_system, strip_system
from samplers.exports.facts import ExportedTrajectory
from samplers.exports.options import KEEP, STRIP, TrainingFormat, TrainingOptions
from samplers.exports.recorded import CONVERSATIONS, RecordedConversation
from samplers.exports.report import TrainingReport
from samplers.exports.token_rows import TOKENS
from training_data.card import render_card
from training_data.formats import FORMATS
from training_data.row_files import hash_files
from training_data.sources import LeftOutError, Row
from training_data.writer import RowWriter

MANIFEST_NAME = "manifest.json"
MANIFEST_KIND = "mergemill-training-data"
SCHEMA = 1
WITHOUT_TOKENS = "the upstream gave no token ids"
Write = Callable[[Any], Sequence[Row]]
"""Writes an item of a format and returns its rows."""


def write_training_data(
    items: Iterable[ExportedTrajectory],
    out: Path,
    options: TrainingOptions,
    left_out: Mapping[str, int] = MappingProxyType({}),
    notes: Mapping[str, int] = MappingProxyType({}),
) -> TrainingReport:
    """Write trajectories to a new or empty folder.

    `left_out`: reason -> trajectories that are not among them; `notes`: warning -> trajectories that it is about, for
    manifest and card.

    Raises:
        InputError: the folder has files, or writing is not permitted.
        Transient: the disk is full.
        UsageError: options exclude each other.
    """
    options.check()
    report = TrainingReport(left_out=Counter(left_out), notes=dict(notes))
    try:
        out.mkdir(parents=True, exist_ok=True)
        if any(out.iterdir()):
            raise InputError(f"{out} is not empty", advice="name a new folder")
        with _open_writer(out, options) as write:
            for item in items:
                n_before = report.rows
                _write_trajectory(item, options, write, report)
                if report.rows > n_before:
                    report.add_trajectory(item)
        (out / "README.md").write_text(render_card(build_card(report, options)))
        report.manifest_sha256 = _write_manifest(out, options, report)
    except OSError as error:
        raise make_write_error(f"cannot write to {out}", error, advice="free some space, then run it again") from error
    return report


def _write_trajectory(item: ExportedTrajectory, options: TrainingOptions, write: Write, report: TrainingReport) -> None:
    """Write the rows of a trajectory and count them, with their lengths and the answers that they train."""
    if options.format is TrainingFormat.PARQUET:
        if not item.content.has_token_ids:
            report.left_out[WITHOUT_TOKENS] += 1
            return
        for row in write(item):
            report.add_row(len(row["input_ids"]), len(set(row["exchanges"][row["loss_mask"] > 0].tolist())))
        return
    for conversation in make_conversations(item.content, per_request=options.per_request):
        length = _measure_tokens(item, conversation)
        if options.system == STRIP:
            conversation = strip_system(conversation, item.added_system)  # noqa: PLW2901 - the same one
        elif options.system != KEEP:
            conversation = replace_system(conversation, options.system_text)  # noqa: PLW2901 - the same one
        try:
            write(RecordedConversation(item=item, conversation=conversation, per_request=options.per_request))
        except LeftOutError as error:
            report.left_out[str(error)] += 1
        else:
            report.add_row(length, conversation.n_trained)


def _measure_tokens(item: ExportedTrajectory, conversation: TrainedConversation) -> int:
    """Return the tokens of a conversation: those of its last request and the answer to it."""
    last = next(request for request in item.content.requests if request.exchange == conversation.exchanges[-1])
    return last.prompt_tokens + last.completion_tokens


@contextmanager
def _open_writer(out: Path, options: TrainingOptions) -> Iterator[Write]:
    """Open the files of a format, and yield a function that writes an item and returns its rows."""
    if options.format is TrainingFormat.ATIF:
        (out / "trajectories").mkdir()
        yield lambda recorded: [_write_document(out / "trajectories", recorded)]
    elif options.format is TrainingFormat.PARQUET:
        with RowWriter(out, token_rows.make_format(per_request=options.per_request), TOKENS) as writer:
            yield writer.add
    else:
        name = f"{options.format.value}-hermes" if options.hermes else options.format.value
        with RowWriter(out, FORMATS[name], CONVERSATIONS) as writer:
            yield writer.add


def _write_document(folder: Path, recorded: RecordedConversation) -> Row:
    document = atif.build_document(recorded.item, recorded.conversation)
    text = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
    (folder / f"{document['trajectory_id']}.json").write_text(text, encoding="utf-8", errors="replace")
    return document


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
        **({"notes": dict(report.notes)} if report.notes else {}),
        "lengths": {name: [asdict(length_bin) for length_bin in bins] for name, bins in report.lengths.items()},
        "trajectories": report.trajectories,
    }
    content = json.dumps(manifest, indent=1, sort_keys=True) + "\n"
    (out / MANIFEST_NAME).write_text(content)
    return hashlib.sha256(content.encode()).hexdigest()
