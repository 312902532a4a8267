"""Which rollouts of a batch have a reward that can be compared with another one of their group."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence


def find_comparable(rewards: Sequence[float], groups: Iterable[Hashable]) -> list[bool]:
    """Return for each rollout whether it and at least one other one of its group have a reward.

    Args:
        rewards: one number a rollout, NaN for none.
        groups: the group of each rollout, such as the id of its prompt.
    """
    names = list(groups)
    scored = Counter(name for reward, name in zip(rewards, names) if not math.isnan(reward))
    return [not math.isnan(reward) and scored[name] > 1 for reward, name in zip(rewards, names)]
