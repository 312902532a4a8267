"""Card of a data set of trajectories: front matter for the hub, then where the rows come from and what they train."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import yaml

from core.text import format_count
from samplers.exports.options import DROP, KEEP, TrainingFormat, TrainingOptions
from taskdb.queries.trajectories import SYNTHETIC
from training_data import hub

if TYPE_CHECKING:
    from samplers.exports.lengths import LengthBin
    from samplers.exports.report import TrainingReport

DATA_FILES = {
    TrainingFormat.MESSAGES: "train.jsonl",
    TrainingFormat.SHAREGPT: "train.jsonl",
    TrainingFormat.PARQUET: "data/train-*.parquet",
}
TEXT = """\
# {title}

{rows} of {trajectories}, which train {answers}, made by mergemill from recorded model traffic.

{tables}

`environment` of a row says where its tools ran. `metadata` names task, rollout, scaffold, model and reward of each row.

{origins}

{training}

{system}

## Lengths
{lengths}
{left_out}"""
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
"""Environment -> what its rows come from."""
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
    DROP: "The system's texts of sampling are left out (prompt distillation).",
    "replace": "The system's texts of sampling are replaced by one text (prompt distillation).",
}


def render_card(report: TrainingReport, options: TrainingOptions) -> str:
    """Return the card."""
    title, tags = _describe_kind(report)
    front: dict[str, Any] = {
        "pretty_name": title,
        "license": hub.name_licenses(list(report.licenses) or [""]),
        "task_categories": ["text-generation"],
        "language": ["en"],
        "tags": [*tags, *([SIMULATED] if SIMULATED in report.environments else []), "agent", "mergemill"],
        "environment": sorted(report.environments),
        "size_categories": [hub.name_size(report.rows)],
    }
    if options.format in DATA_FILES:
        files = [{"split": "train", "path": DATA_FILES[options.format]}]
        front["configs"] = [{"config_name": "default", "data_files": files}]
    left_out = [f"- {format_count(number, 'row')} left out: {reason}" for reason, number in report.left_out.items()]
    body = TEXT.format(
        title=title,
        origins="\n".join(f"- `{name}`: {text}" for name, text in ORIGINS.items() if name in report.environments),
        rows=format_count(report.rows, "row"),
        trajectories=format_count(len(report.trajectories), "trajectory"),
        answers=format_count(report.answers, "answer"),
        tables="\n\n".join(
            _render_counts(name, counts)
            for name, counts in (
                ("environment", report.environments),
                ("scaffold", report.scaffolds),
                ("model", report.models),
                ("licence", report.licenses),
            )
        ),
        training=PER_REQUEST if options.per_request else TRAINING[options.format],
        system=SYSTEM[options.system],
        lengths="\n\n".join(_render_bins(name, bins) for name, bins in report.lengths.items()),
        left_out="\n## Left out\n" + "\n".join(left_out) + "\n" if left_out else "",
    )
    return f"---\n{yaml.safe_dump(front, sort_keys=False)}---\n{body}"


def _describe_kind(report: TrainingReport) -> tuple[str, tuple[str, ...]]:
    """Return title and tags of the data set."""
    if SYNTHETIC not in report.environments:
        return TASKS_TITLE, TASKS_TAGS
    if set(report.environments) == {SYNTHETIC}:
        return WORLDS_TITLE, WORLDS_TAGS
    return MIXED_TITLE, (*TASKS_TAGS, *WORLDS_TAGS)


def _render_counts(title: str, counts: Mapping[str, int]) -> str:
    rows = [f"| `{name.replace('|', '/').replace('`', '')}` | {count} |" for name, count in sorted(counts.items())]
    return "\n".join([f"| {title} | trajectories |", "| --- | --- |", *rows])


def _render_bins(name: str, bins: list[LengthBin]) -> str:
    rows = [f"| {one.low} to {one.high} | {one.count} |" for one in bins]
    what = "rows" if name == "tokens" else "trajectories"
    return "\n".join([f"| {name} | {what} |", "| --- | --- |", *rows])
