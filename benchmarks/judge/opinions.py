"""Score the rows with language models, alone and combined with the rules as in the judge.

Answers are cached in the store of the settings, so an interrupted benchmark can be resumed.
"""

from __future__ import annotations

from statistics import fmean

import numpy as np

from backends.llm.client import ChatModel
from benchmarks.judge.rows import LABELS, LabelledRows
from benchmarks.judge.tables import Scores
from core.config import Settings
from taskdb.artifacts import Artifacts
from verifiers.judge.client import JudgeClient
from verifiers.judge.model_verdict import combine_probabilities
from verifiers.judge.opinions import OpinionPanel, collect_opinions


def collect_panels(rows: LabelledRows, settings: Settings) -> list[OpinionPanel]:
    """Return the opinions of the configured models on each row.

    Raises:
        Transient, InputError: the endpoint failed or rejects the request.
    """
    model, artifacts = ChatModel(settings.llm, settings.host), Artifacts(settings.storage.store_dir / "artifacts")
    try:
        return [collect_opinions(case, JudgeClient.from_settings(model, settings, artifacts)) for case in rows.cases]
    finally:
        model.close()


def score_judges(panels: list[OpinionPanel], rules: Scores) -> dict[str, Scores]:
    """Return the scores of the opinions alone and with the rules; rows without valid opinions get the others' mean."""
    alone: Scores = {}
    together: Scores = {}
    for label in LABELS:
        means = [getattr(panel, label) for panel in panels]
        known = [mean for mean in means if mean is not None]
        alone[label] = np.array([fmean(known or [0.0]) if mean is None else mean for mean in means])
        together[label] = np.array(
            [combine_probabilities(float(p), mean) for p, mean in zip(rules[label], means, strict=True)]
        )
    return {"opinions": alone, "rules and opinions": together}


def summarize_panels(panels: list[OpinionPanel]) -> str:
    """Return the number of valid opinions, their agreement, and their cost."""
    opinions = [opinion for panel in panels for opinion in panel.opinions]
    invalid = [opinion for opinion in opinions if opinion.invalid_reason]
    shares = [panel.agreement for panel in panels if panel.agreement is not None]
    alphas = [panel.alpha for panel in panels if panel.alpha is not None]
    agreement = f"{fmean(shares):.2f}" if shares else "-"
    alpha = f"{fmean(alphas):.2f}" if alphas else "-"
    tokens, cost = sum(opinion.tokens for opinion in opinions), sum(opinion.cost for opinion in opinions)
    totals = f"agreement {agreement}, alpha {alpha}; {tokens} tokens, {cost:.2f} paid"
    return f"{len(opinions)} opinions, {len(invalid)} invalid; {totals}"
