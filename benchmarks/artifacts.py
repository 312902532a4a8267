"""Measure artifacts in a folder and in an S3 store: `python -m benchmarks.artifacts [--artifacts URL] [--page FILE]`.

The same artifacts are put and read in a folder and below a URL, in turn, round by round, by the same number of threads.
Their sizes are drawn as those of a run over real repositories were: median 6 kB, 90 % below 56 kB, 99 % below 350 kB.
Reading is measured twice: on a machine that has no copies, and again, from the copies. Of each figure the table has the
median over the rounds, and as a ratio the median of the ratios to the folder of the same round and number of threads.

Without `--artifacts` a server of the tests is started on this machine, so that its network costs nothing.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.page_table import write_table
from taskdb.artifacts import Artifacts
from taskdb.artifacts.shared import SharedArtifacts

MODULE = "benchmarks.artifacts"
MEDIAN_BYTES, SPREAD = 5_900, 1.75
"""Of the logarithmic normal distribution of sizes."""
MOST_BYTES = 4_000_000
FOLDER, S3 = NAMES = ("folder", "S3")
OPERATIONS = ("put", "get", "get again")


@dataclass(frozen=True)
class Row:
    """Figures of one place with one number of threads; `seconds`: operation -> seconds of each round."""

    place: str
    threads: int
    seconds: dict[str, list[float]]


def draw_contents(count: int, seed: int) -> list[bytes]:
    """Return texts that compress as logs do, no two alike."""
    drawn = random.Random(seed)  # noqa: S311 - sizes and words
    words = [f"{drawn.choice(('tests', 'src', 'FAILED', 'assert', 'line'))}_{number}" for number in range(3000)]
    contents = []
    for number in range(count):
        size = min(MOST_BYTES, int(drawn.lognormvariate(0, SPREAD) * MEDIAN_BYTES))
        text = f"{seed}/{number} " + " ".join(drawn.choices(words, k=size // 9 + 1))
        contents.append(text.encode()[: max(size, 16)])
    return contents


def measure_round(
    make_places: Callable[[Path], Iterable[tuple[str, Artifacts, Artifacts]]], contents: Sequence[bytes], threads: int
) -> dict[str, dict[str, float]]:
    """Return place -> operation -> seconds; `make_places` returns a writer and a reader for each place."""
    durations = {}
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(threads) as pool:
        for name, writer, reader in make_places(Path(folder)):
            started = time.perf_counter()
            digests = list(pool.map(writer.put, contents))
            seconds = {"put": time.perf_counter() - started}
            for operation in OPERATIONS[1:]:
                started = time.perf_counter()
                if list(pool.map(reader.get, digests)) != contents:
                    raise SystemExit(f"{name} returned other contents")
                seconds[operation] = time.perf_counter() - started
            durations[name] = seconds
    return durations


def measure(url: str, *, count: int, rounds: int, threads: Sequence[int]) -> list[Row]:
    """Measure the folder and the URL with each number of threads; each round has a prefix and contents of its own."""

    def make_places(folder: Path) -> Iterator[tuple[str, Artifacts, Artifacts]]:
        yield FOLDER, Artifacts(folder / "plain"), Artifacts(folder / "plain")
        prefix = f"{url}/{uuid.uuid4().hex}"
        yield S3, SharedArtifacts(prefix, folder / "writer"), SharedArtifacts(prefix, folder / "reader")

    rows = {(name, number): Row(name, number, {key: [] for key in OPERATIONS}) for number in threads for name in NAMES}
    for turn in range(rounds):
        contents = draw_contents(count, turn)
        for number in threads:
            for name, seconds in measure_round(make_places, contents, number).items():
                for key, value in seconds.items():
                    rows[name, number].seconds[key].append(value)
    return list(rows.values())


def render_table(rows: Sequence[Row], count: int) -> str:
    """Return a Markdown table: milliseconds per artifact, and in brackets the ratio to the folder."""
    columns = ("put", "get, no copies here", "get, from copies")
    lines = [f"| place | threads | {', ms | '.join(columns)}, ms |", "|---|---:|---:|---:|---:|"]
    folders = {row.threads: row for row in rows if row.place == FOLDER}
    for row in rows:
        cells = []
        for key in OPERATIONS:
            shown = f"{statistics.median(row.seconds[key]) / count * 1000:.2f}"
            if row.place != FOLDER:
                pairs = zip(row.seconds[key], folders[row.threads].seconds[key], strict=True)
                shown += f" ({statistics.median(mine / plain for mine, plain in pairs):.1f}x)"
            cells.append(shown)
        lines.append(f"| {row.place} | {row.threads} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


@contextmanager
def open_server(url: str | None) -> Iterator[str]:
    """Yield the URL, or that of a server of the tests."""
    if url is not None:
        yield url.rstrip("/")
        return
    from tests.s3_server import BUCKET, S3Server  # noqa: PLC0415 - the server of the tests

    with tempfile.TemporaryDirectory() as folder:
        server = S3Server(Path(folder))
        server.start()
        try:
            server.make_bucket()
            os.environ.update(server.make_environment())
            yield f"s3://{BUCKET}/benchmark"
        finally:
            server.stop()


def main(arguments: list[str]) -> None:
    """Measure and print the table, or write it into a page."""
    parser = argparse.ArgumentParser(description="Measure artifacts in a folder and in an S3 store.")
    parser.add_argument(
        "--artifacts", metavar="URL", help="s3://BUCKET/PREFIX to write to; default: a server on this machine"
    )
    parser.add_argument("--count", type=int, default=1000, help="artifacts")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--page", type=Path, help="write the table into this page")
    options = parser.parse_args(arguments)
    with open_server(options.artifacts) as url:
        rows = measure(url, count=options.count, rounds=options.rounds, threads=options.threads)
    table = render_table(rows, options.count)
    if options.page:
        write_table(options.page, MODULE, table)
    else:
        print(table, end="")


if __name__ == "__main__":
    main(sys.argv[1:])
