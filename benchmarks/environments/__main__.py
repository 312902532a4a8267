"""Run the benchmark: `python -m benchmarks.environments --clones DIR [--part tune] [--language python]`.

DIR holds bare clones OWNER__NAME.git of the repositories of `chosen.toml`, or for the part `frozen` of
`draws/COMMIT.toml`, which are drawn by the hash of the commit of mergemill that is measured, and only by that one. The
result of each repository is appended to FOLDER/rows.jsonl; a restart processes the remaining ones. `--again NAME`
repeats one repository, `--again REASON` all that ended with this reason; the newest row counts. Logs and plans are
stored in the folder. No model takes part.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock

from backends.services import Services
from benchmarks.environments.choose import DRAWS, BenchmarkRepository, load_chosen, read_frozen_commit
from benchmarks.environments.measure import EnvironmentResult, append_result, measure, read_results, read_revision
from benchmarks.environments.tables import render_markdown
from core.config import Settings
from core.errors import MergemillError
from mergemill.execution.services import make_services


def load_part(part: str, drawn: Path | None, revision: str) -> list[BenchmarkRepository]:
    """Read the repositories of a part: `tune`, `held`, `both` of these, or `frozen`.

    Args:
        part: name of the part.
        drawn: file with the draw of the part `frozen`; by default that of `revision` in `draws/`.
        revision: commit of mergemill that measures, as `read_revision` returns it.

    Raises:
        SystemExit: the part `frozen` is not drawn, or it was drawn for another commit of mergemill.
    """
    if part != "frozen":
        return [repository for repository in load_chosen() if part in (repository.half, "both")]
    drawn = drawn or DRAWS / f"{revision}.toml"
    if not drawn.exists():
        raise SystemExit(f"{drawn} does not exist: python -m benchmarks.environments.choose --frozen COMMIT")
    commit = read_frozen_commit(drawn)
    if not commit.startswith(revision):
        raise SystemExit(f"{drawn.name} was drawn for commit {commit}, this is {revision}: check that commit out")
    return load_chosen(drawn)


def select_pending(options: argparse.Namespace, known: dict[str, EnvironmentResult]) -> list[BenchmarkRepository]:
    """Return the remaining repositories in the order of the list."""
    again = set(options.again)
    return [
        measure_one
        for measure_one in load_part(options.part, options.drawn, read_revision())
        if (not options.language or options.language in (measure_one.group, measure_one.language))
        and (not options.only or measure_one.repo in options.only)
        and (measure_one.repo not in known or again & {measure_one.repo, known[measure_one.repo].reason, "all"})
    ]


def measure_all(todo: Sequence[BenchmarkRepository], options: argparse.Namespace, services: Services) -> int:
    """Measure repositories and write results; return how many failed because of engine, network or disk."""
    lock, failed = Lock(), []

    def measure_one(repository: BenchmarkRepository) -> None:
        try:
            row = measure(repository, options.clones.resolve(), services, options.out / "logs")
        except MergemillError as error:
            failed.append(repository.repo)
            print(f"{repository.repo}: {error}", flush=True)
            return
        with lock:
            append_result(row, options.out / "rows.jsonl")
            print(f"{row.repo}: {row.reason or 'accepted'} {row.detail} ({row.seconds:.0f} s)", flush=True)

    with ThreadPoolExecutor(options.workers) as pool:
        list(pool.map(measure_one, todo))
    return len(failed)


def parse_arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clones", type=Path, required=True, metavar="DIR")
    parser.add_argument("--out", type=Path, default=Path("environments-benchmark"), metavar="FOLDER")
    parser.add_argument("--part", choices=("tune", "held", "both", "frozen"), default="both")
    parser.add_argument("--drawn", type=Path, metavar="FILE", help="draw of the part `frozen`; else draws/COMMIT.toml")
    parser.add_argument("--language", help="a language or a group of them as the tables name it")
    parser.add_argument("--only", action="append", default=[], metavar="OWNER/NAME")
    parser.add_argument("--again", action="append", default=[], metavar="OWNER/NAME|REASON|all")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--test-timeout", type=float, metavar="SECONDS", help="for a machine that others use, too")
    parser.add_argument("--table", action="store_true", help="build nothing, print what is known")
    return parser.parse_args()


def main() -> int:
    """Measure the remaining repositories and print the tables."""
    options = parse_arguments()
    (options.out / "logs").mkdir(parents=True, exist_ok=True)
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(message)s")
    logging.getLogger("builders").setLevel(logging.INFO)
    failed = 0
    if not options.table:
        todo = select_pending(options, read_results(options.out / "rows.jsonl"))
        print(f"{len(todo)} repositories to do, mergemill {read_revision()}", flush=True)
        db = f"sqlite:///{options.out.resolve()}/bench.db"
        limits = {} if options.test_timeout is None else {"test_timeout": options.test_timeout}
        settings = Settings(db=db, workers=options.workers, **limits)
        failed = measure_all(todo, options, make_services(settings, engine=True))
    known = read_results(options.out / "rows.jsonl")
    part = load_part(options.part, options.drawn, read_revision())
    rows = [known[measure_one.repo] for measure_one in part if measure_one.repo in known]
    print(render_markdown(rows))
    return 75 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
