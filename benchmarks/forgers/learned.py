"""A reader that has learned from the tests of other projects how to weigh all rules, as a trained policy could."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax
from scipy.stats import rankdata

from benchmarks.forgers.readers import Reader, ReadTest

Features = NDArray[np.float64]
"""The rank of each instance by each rule, from -1 to 1, of shape instances x rules."""

_PENALTY = 0.01
"""Of the squares of weights, for each test that was learned from."""


def rank_instances(test: ReadTest, rules: Iterable[Reader]) -> Features:
    """Return the features of the instances of a test; 0 in the columns of rules that do not distinguish them."""
    columns = [rankdata(test.score(rule)) for rule in rules]
    return np.array([2 * (column - 1) / (len(column) - 1) - 1 for column in columns], dtype=float).T


def learn_weights(examples: Sequence[tuple[Features, int]]) -> NDArray[np.float64]:
    """Return the weights of rules under which the true instances are most likely: a conditional logit.

    Args:
        examples: the features of a test's instances, and the number of the true one.
    """

    def lose(weights: NDArray[np.float64]) -> float:
        likelihood = sum(log_softmax(features @ weights)[true] for features, true in examples)
        return float(_PENALTY * weights @ weights - likelihood / len(examples))

    return np.asarray(minimize(lose, np.zeros(examples[0][0].shape[1]), method="L-BFGS-B").x)


@dataclass(kw_only=True)
class LearnedReaders:
    """Readers that have learned from all projects but one.

    Args:
        rules: rules that are weighed.
    """

    rules: Mapping[str, Reader]
    _examples: dict[str, list[tuple[Features, int]]] = field(default_factory=dict)
    """Project -> examples of its tests."""

    def add(self, project: str, choices: Iterable[tuple[ReadTest, int]]) -> None:
        """Add examples. `choices`: tests of the project, each with the number of its true instance."""
        examples = [(rank_instances(test, self.rules.values()), true) for test, true in choices]
        self._examples.setdefault(project, []).extend(examples)

    def make_reader(self, project: str) -> Reader | None:
        """Return the reader of a project's tests; None where no other project has any."""
        others = [example for name, known in self._examples.items() if name != project for example in known]
        if not others:
            return None
        weights = learn_weights(others)
        return lambda test: list(rank_instances(test, self.rules.values()) @ weights)
