"""Rows of a run, as a folder for each format. Files are replaced whole, so a run may be continued and written again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from core.errors import make_write_error
from simulators.domains.pack import DomainPack
from simulators.exports.card import DatasetFacts, build_card
from simulators.exports.formats import CONVERSATIONS, SimulatedDialogue
from simulators.options import SimulationOptions
from simulators.trajectory import SimulatedTrajectory
from training_data.card import render_card
from training_data.formats import ConversationFormat
from training_data.row_files import replace_file
from training_data.sources import LeftOutError
from training_data.writer import RowWriter


@dataclass
class FormatReport:
    """Rows of a format, and the conversations that it could not hold."""

    rows: int = 0
    left_out: Counter[str] = field(default_factory=Counter)


def write_exports(
    trajectories: Iterable[SimulatedTrajectory],
    out: Path,
    formats: Iterable[ConversationFormat],
    *,
    pack: DomainPack,
    options: SimulationOptions,
    facts: DatasetFacts,
) -> dict[str, FormatReport]:
    """Write trajectories in each format to `out/FORMAT`; return format -> report.

    Raises:
        InputError: writing is not permitted.
        Transient: the disk is full.
    """
    chosen = list(formats)
    reports = {row_format.name: FormatReport() for row_format in chosen}
    try:
        with ExitStack() as stack:
            writers = {
                row_format.name: stack.enter_context(RowWriter(out / row_format.name, row_format, CONVERSATIONS))
                for row_format in chosen
            }
            for trajectory in trajectories:
                facts.add(trajectory)
                for name, writer in writers.items():
                    try:
                        writer.add(SimulatedDialogue(trajectory, pack, options))
                    except LeftOutError as error:
                        reports[name].left_out[str(error)] += 1
        for row_format in chosen:
            report = reports[row_format.name]
            report.rows = writers[row_format.name].count
            data_files = row_format.name_file("train")
            card = build_card(facts, rows=report.rows, data_files=data_files, left_out=report.left_out)
            replace_file(out / row_format.name / "README.md", render_card(card))
        card = build_card(facts, rows=facts.trajectories, data_files="", left_out=Counter())
        replace_file(out / "README.md", render_card(card))
    except OSError as error:
        raise make_write_error(f"cannot write to {out}", error, advice="free some space, then run it again") from error
    return reports
