"""Progress of many gradings: a line on a terminal, a JSON line for each score elsewhere."""

from __future__ import annotations

import json
import sys
from collections import Counter
from typing import IO, Self

from rich.console import Console

from mergemill.execution.progress import CountProgress, LiveCountProgress
from mergemill.grading.predictions import PredictionScore
from samplers.imports.predictions import MODEL


class ScoreProgress:
    """Context manager that counts scores by kind; `line` shows how many there are."""

    def __init__(self, line: CountProgress) -> None:
        self.line = line
        self.counts: Counter[str] = Counter()
        """`resolved`, `failed` and `unscored` -> rows."""

    def __enter__(self) -> Self:
        self.line.__enter__()
        return self

    def __exit__(self, *details: object) -> None:
        self.line.__exit__(*details)

    def add(self, graded: PredictionScore) -> None:
        """Count a score."""
        score = graded.score
        self.counts["unscored" if score.value is None else "resolved" if score.resolved else "failed"] += 1
        self.line.note = ", ".join(f"{count} {name}" for name, count in sorted(self.counts.items()))
        self.line.advance()


class JsonScoreProgress(ScoreProgress):
    """Progress as a JSON line for each score."""

    def __init__(self, line: CountProgress, out: IO[str]) -> None:
        super().__init__(line)
        self._out = out

    def add(self, graded: PredictionScore) -> None:
        """Count a score and write its line."""
        super().add(graded)
        left, prediction = self.line.estimate_seconds_left(), graded.prediction
        event = {
            "event": "score",
            "instance_id": prediction.instance,
            MODEL: prediction.model,
            "value": graded.score.value,
            "done": self.line.n_finished,
            "total": self.line.total,
            "seconds_left": None if left is None else round(left, 1),
        }
        self._out.write(json.dumps(event) + "\n")
        self._out.flush()


def make_score_progress(total: int, *, as_json: bool, quiet: bool) -> ScoreProgress:
    """Return the progress that suits the streams: JSON goes to standard output if `as_json`, else to standard error."""
    line = CountProgress("submission", total)
    if as_json:
        return JsonScoreProgress(line, sys.stdout)
    if quiet:
        return ScoreProgress(line)
    if sys.stderr.isatty():
        return ScoreProgress(LiveCountProgress("submission", total, Console(stderr=True)))
    return JsonScoreProgress(line, sys.stderr)
