"""What models say of the rows: alone, and together with the rules as the judge puts them together.

Answers are kept in the store of the settings, so a benchmark that was cut short goes on where it was.
"""

from __future__ import annotations

from statistics import fmean

import numpy as np

from backends.llm.client import ChatModel
from benchmarks.judge.rows import LABELS, Rows
from benchmarks.judge.tables import Scores
from mergemill.config import Settings
from taskdb.artifacts import Artifacts
from verifiers.judge.asking import Asking
from verifiers.judge.hearing import weighed
from verifiers.judge.opinions import Panel, ask_panel


def panels_of(rows: Rows, settings: Settings) -> list[Panel]:
    """What the models of the settings say of each row.

    Raises:
        Transient, InputError: the endpoint failed or refuses.
    """
    model, artifacts = ChatModel(settings), Artifacts(settings.store_dir / "artifacts")
    try:
        return [ask_panel(case, Asking.begin(model, settings, artifacts)) for case in rows.cases]
    finally:
        model.close()


def judges_of(panels: list[Panel], rules: Scores) -> dict[str, Scores]:
    """Scores of the opinions alone, and with the rules. A row of which no opinion counts has the mean of the others."""
    alone: Scores = {}
    together: Scores = {}
    for label in LABELS:
        means = [getattr(panel, label) for panel in panels]
        known = [mean for mean in means if mean is not None]
        alone[label] = np.array([fmean(known or [0.0]) if mean is None else mean for mean in means])
        together[label] = np.array([weighed(float(p), mean) for p, mean in zip(rules[label], means, strict=True)])
    return {"opinions": alone, "rules and opinions": together}


def summary(panels: list[Panel]) -> str:
    """How many opinions count, how far they agree, and what they cost."""
    every = [opinion for panel in panels for opinion in panel.opinions]
    void = [opinion for opinion in every if opinion.void]
    shares = [panel.agreement for panel in panels if panel.agreement is not None]
    alphas = [panel.alpha for panel in panels if panel.alpha is not None]
    agreement = f"{fmean(shares):.2f}" if shares else "-"
    alpha = f"{fmean(alphas):.2f}" if alphas else "-"
    tokens, cost = sum(one.tokens for one in every), sum(one.cost for one in every)
    told = f"agreement {agreement}, alpha {alpha}; {tokens} tokens, {cost:.2f} paid"
    return f"{len(every)} opinions, {len(void)} void; {told}"
