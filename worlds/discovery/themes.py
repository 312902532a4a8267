"""Themes: environments that worlds are to be made of, and the choice among them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from core.settings.worlds import WorldsSettings
from worlds.discovery.seed_tasks import SeedTask
from worlds.reasons import Reason


@dataclass(frozen=True, kw_only=True)
class ThemeDraft:
    """An environment inferred from a seed task. `usefulness` and `modelability` (as a class) are 1..10."""

    label: str
    description: str
    usefulness: int
    modelability: int
    seed: SeedTask

    @property
    def id(self) -> str:
        """Hash of the text that a world is made from. Answers in the ledger are found by it."""
        content = json.dumps([self.label, self.description, self.seed.text])
        return hashlib.sha256(content.encode(errors="replace")).hexdigest()

    @property
    def text(self) -> str:
        """Text that is embedded: label and description."""
        return f"{self.label}: {self.description}"


@dataclass(frozen=True, kw_only=True)
class RejectedTheme:
    """A theme that was not chosen."""

    theme: ThemeDraft
    reason: Reason
    detail: str


Embed = Callable[[Sequence[str]], Sequence[Sequence[float]]]
"""Texts -> their vectors."""


def choose_themes(
    themes: Sequence[ThemeDraft], options: WorldsSettings, embed: Embed
) -> tuple[list[ThemeDraft], list[RejectedTheme]]:
    """Return the chosen themes and the others, each with the reason.

    Of those with the same label the best stays, by modelability and then usefulness. Both must reach their least
    values. The rest is clustered by KMeans on the vectors of `ThemeDraft.text`; of each cluster the vector nearest to
    the centre stays. Where there are no more themes than clusters, all stay.

    Args:
        themes: themes in the order of their seed tasks.
        options: least values, number of clusters and the seed of KMeans.
        embed: function that returns the vectors; not called where all stay.
    """
    rejected: list[RejectedTheme] = []
    best: dict[str, ThemeDraft] = {}
    for theme in themes:
        label = theme.label.casefold()
        other = best.setdefault(label, theme)
        if other is not theme:
            worse, better = sorted((other, theme), key=_rank)
            if _rank(other) == _rank(theme):  # the first one stays
                worse, better = theme, other
            best[label] = better
            rejected.append(RejectedTheme(theme=worse, reason=Reason.SAME_LABEL, detail=better.label))
    kept: list[ThemeDraft] = []
    for theme in best.values():
        if theme.modelability < options.min_modelability:
            detail = f"{theme.modelability} of at least {options.min_modelability}"
            rejected.append(RejectedTheme(theme=theme, reason=Reason.LOW_MODELABILITY, detail=detail))
        elif theme.usefulness < options.min_usefulness:
            detail = f"{theme.usefulness} of at least {options.min_usefulness}"
            rejected.append(RejectedTheme(theme=theme, reason=Reason.LOW_USEFULNESS, detail=detail))
        else:
            kept.append(theme)
    # The order of arrival must not decide about clusters.
    kept.sort(key=lambda theme: (theme.label.casefold(), theme.seed.id))
    if len(kept) <= options.themes:
        return kept, rejected
    nearest = find_nearest(embed([theme.text for theme in kept]), options.themes, options.draw)
    chosen = []
    for number, theme in enumerate(kept):
        center = nearest[number]
        if center == number:
            chosen.append(theme)
        else:
            rejected.append(RejectedTheme(theme=theme, reason=Reason.SIMILAR_THEME, detail=kept[center].label))
    return chosen, rejected


def find_nearest(vectors: Sequence[Sequence[float]], n_clusters: int, seed: int) -> list[int]:
    """Return for each vector the number of the vector that is nearest to the centre of its cluster.

    Args:
        vectors: vectors, at least `n_clusters`, of the same length.
        n_clusters: clusters of KMeans; equal vectors may leave fewer.
        seed: seed of KMeans.
    """
    import numpy as np  # noqa: PLC0415 - loads slowly, and queries need neither
    from sklearn.cluster import KMeans  # noqa: PLC0415

    points = np.asarray(vectors, dtype=np.float64)
    n_distinct = len(np.unique(points, axis=0))
    model = KMeans(n_clusters=min(n_clusters, n_distinct), random_state=seed, n_init=10).fit(points)
    distances = np.linalg.norm(points - model.cluster_centers_[model.labels_], axis=1)
    first: dict[int, int] = {}
    for number in np.argsort(distances, kind="stable").tolist():
        first.setdefault(int(model.labels_[number]), number)
    return [first[int(label)] for label in model.labels_]


def _rank(theme: ThemeDraft) -> tuple[int, int]:
    return theme.modelability, theme.usefulness
