"""Card of a data set of trajectories.

Front matter for the hub, then where the rows come from and the models that they train.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from core.text import format_count
from samplers.exports.options import DROP, KEEP, STRIP, TrainingFormat, TrainingOptions
from taskdb.queries.trajectories import SYNTHETIC
from training_data.card import Card, Section, make_left_out_section, render_table

if TYPE_CHECKING:
    from samplers.exports.lengths import LengthBin
    from samplers.exports.report import TrainingReport

DATA_FILES = {
    TrainingFormat.MESSAGES: "train.jsonl",
    TrainingFormat.SHAREGPT: "train.jsonl",
    TrainingFormat.PARQUET: "data/train-*.parquet",
}
SUMMARY = "{rows} of {trajectories}, which train {answers}, made by mergemill from recorded model traffic."
COLUMNS = (
    "`environment` of a row says where its tools ran."
    " `metadata` names task, rollout, scaffold, model and reward of each row."
)
TASKS_TITLE = "Trajectories of agents on software-engineering tasks"
WORLDS_TITLE = "Trajectories of agents in synthesised tool environments"
MIXED_TITLE = "Trajectories of agents on software-engineering tasks and in synthesised tool environments"
SIMULATED = "simulated"
TASKS_TAGS = ("code", "software-engineering")
WORLDS_TAGS = ("tool-use", SYNTHETIC)
ORIGINS = {
    "verified": "the task is of a merged change of a public repository, and verified: the reward is that of its hidden"
    " tests or oracle. The licence is that of the repository whose code is in the row.",
    "none": "the task needs no environment, such as a review; the reward is that of its oracle. The licence is that of"
    " the repository.",
    SIMULATED: "the task has no environment. Files, searches and differences are true, but a model wrote what test"
    " runners, interpreters and builds print: nothing was run, and the reward is an estimate, of predicted tests.",
    SYNTHETIC: "the tools are those of a program that a model or a person wrote, which ran; nothing in it exists"
    " elsewhere. The reward is the share of checks of the final state that passed, and `repo` the world's name.",
}
"""Environment -> the sources that its rows come from."""
TRAINING = {
    TrainingFormat.MESSAGES: "Messages of the assistant with `weight` 0 are context; without `weight`, all train.",
    TrainingFormat.SHAREGPT: "Every answer of a row is trained. `dataset_info.json` is LLaMA-Factory's.",
    TrainingFormat.PARQUET: "Tokens with `loss_mask` 1 are trained. A token attends to itself and its ancestors by"
    " `parents`, and is predicted from its parent; `logprobs` are those at sampling.",
    TrainingFormat.ATIF: "Steps of the agent with `is_copied_context` are not trained.",
}
PER_REQUEST = "Each row is one request, and its last answer alone is trained (LLaMA-Factory: `mask_history: true`)."
SYSTEM = {
    KEEP: "The system's texts are those of sampling.",
    STRIP: "The text that was added to the system's texts at sampling is cut out of them (prompt distillation).",
    DROP: "The system's texts of sampling are left out (prompt distillation).",
    "replace": "The system's texts of sampling are replaced by one text (prompt distillation).",
}


def build_card(report: TrainingReport, options: TrainingOptions) -> Card:
    """Return the card."""
    title, tags = _describe_kind(report)
    summary = SUMMARY.format(
        rows=format_count(report.rows, "row"),
        trajectories=format_count(len(report.trajectories), "trajectory"),
        answers=format_count(report.answers, "answer"),
    )
    data_files = DATA_FILES.get(options.format)
    origins = "\n".join(f"- `{name}`: {text}" for name, text in ORIGINS.items() if name in report.environments)
    description = [
        summary,
        _render_counts("environment", report.environments),
        _render_counts("scaffold", report.scaffolds),
        _render_counts("model", report.models),
        _render_counts("licence", report.licenses),
        COLUMNS,
        origins,
        *(f"**{format_count(number, 'trajectory')}: {note}.**" for note, number in report.notes.items()),
        PER_REQUEST if options.per_request else TRAINING[options.format],
        SYSTEM[options.system],
    ]
    return Card(
        title=title,
        tags=(*tags, *([SIMULATED] if SIMULATED in report.environments else []), "agent", "mergemill"),
        licenses=report.licenses,
        rows=report.rows,
        environment=sorted(report.environments),
        data_files={"train": data_files} if data_files else None,
        sections=(
            Section("", description),
            Section("Lengths", [_render_bins(name, bins) for name, bins in report.lengths.items()]),
            make_left_out_section(report.left_out, "row"),
        ),
    )


def _describe_kind(report: TrainingReport) -> tuple[str, tuple[str, ...]]:
    """Return title and tags of the data set."""
    if SYNTHETIC not in report.environments:
        return TASKS_TITLE, TASKS_TAGS
    if set(report.environments) == {SYNTHETIC}:
        return WORLDS_TITLE, WORLDS_TAGS
    return MIXED_TITLE, (*TASKS_TAGS, *WORLDS_TAGS)


def _render_counts(title: str, counts: Mapping[str, int]) -> str:
    rows = [(f"`{name.replace('|', '/').replace('`', '')}`", count) for name, count in sorted(counts.items())]
    return render_table((title, "trajectories"), rows)


def _render_bins(name: str, bins: list[LengthBin]) -> str:
    what = "rows" if name == "tokens" else "trajectories"
    return render_table((name, what), [(f"{bucket.low} to {bucket.high}", bucket.count) for bucket in bins])
