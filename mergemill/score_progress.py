"""Progress of many gradings: a line on a terminal, one JSON line for each score elsewhere."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import IO, Self

from rich.console import Console
from rich.live import Live
from rich.text import Text

from core.text import format_count
from mergemill.predictions import MODEL, PredictionScore
from mergemill.progress import estimate_seconds_left, format_seconds


class ScoreProgress:
    """Context manager that counts scores and shows nothing."""

    def __init__(self, total: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.total = total
        self.counts: Counter[str] = Counter()
        """`resolved`, `failed` and `unscored` -> rows."""
        self._clock, self._started = clock, clock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Show nothing more."""

    def add(self, graded: PredictionScore) -> None:
        """Count a score."""
        score = graded.score
        self.counts["unscored" if score.value is None else "resolved" if score.resolved else "failed"] += 1

    @property
    def n_finished(self) -> int:
        """Rows that were graded."""
        return self.counts.total()

    def estimate_seconds_left(self) -> float | None:
        """Return the seconds until all rows are graded, or None before the first one is."""
        return estimate_seconds_left(self._clock() - self._started, self.n_finished, self.total)

    def format_state(self) -> str:
        """Return one line: elapsed time, rows done of all, how many were resolved, and the time that is left."""
        left = self.estimate_seconds_left()
        counts = ", ".join(f"{count} {name}" for name, count in sorted(self.counts.items()))
        done = f"{self.n_finished} of {format_count(self.total, 'submission')}{f' ({counts})' if counts else ''}"
        remaining = f"about {format_seconds(left)} left" if left else ""
        return "   ".join(part for part in (format_seconds(self._clock() - self._started), done, remaining) if part)


class LiveScoreProgress(ScoreProgress):
    """Progress as a line on a terminal, which is removed at the end."""

    def __init__(self, total: int, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(total, clock)
        self._live = Live(
            console=console, refresh_per_second=4, get_renderable=lambda: Text(self.format_state()), transient=True
        )

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()


class JsonScoreProgress(ScoreProgress):
    """Progress as one JSON line for each score."""

    def __init__(self, total: int, out: IO[str], clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(total, clock)
        self._out = out

    def add(self, graded: PredictionScore) -> None:
        """Count a score and write its line."""
        super().add(graded)
        left, prediction = self.estimate_seconds_left(), graded.prediction
        event = {
            "event": "score",
            "instance_id": prediction.instance,
            MODEL: prediction.model,
            "value": graded.score.value,
            "done": self.n_finished,
            "total": self.total,
            "seconds_left": None if left is None else round(left, 1),
        }
        self._out.write(json.dumps(event) + "\n")
        self._out.flush()


def make_score_progress(total: int, *, as_json: bool, quiet: bool) -> ScoreProgress:
    """Return the progress that suits the streams: JSON goes to standard output if `as_json`, else to standard error."""
    if as_json:
        return JsonScoreProgress(total, sys.stdout)
    if quiet:
        return ScoreProgress(total)
    if sys.stderr.isatty():
        return LiveScoreProgress(total, Console(stderr=True))
    return JsonScoreProgress(total, sys.stderr)
