"""Run the benchmark: `python -m benchmarks.environments --clones DIR [--half tune] [--language python]`.

DIR holds clones as OWNER__NAME.git of the repositories of `chosen.toml`. Each repository's row is appended to
FOLDER/rows.jsonl as soon as it is known; started again, the rest is done. `--again NAME` does one anew, `--again
REASON` all that ended so; the newest row counts. Logs and plans are kept beside it. No model takes part.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock

from backends.services import Services
from benchmarks.environments.choose import Chosen, chosen
from benchmarks.environments.measure import Row, measure, read, revision, write
from benchmarks.environments.tables import markdown
from mergemill.config import Settings
from mergemill.errors import MergemillError
from mergemill.services import make_services


def wanted(options: argparse.Namespace, known: dict[str, Row]) -> list[Chosen]:
    """The repositories still to do, in the order of the list."""
    again = set(options.again)
    return [
        one
        for one in chosen()
        if (options.half in (one.half, "both"))
        and (not options.language or options.language in (one.group, one.language))
        and (not options.only or one.repo in options.only)
        and (one.repo not in known or again & {one.repo, known[one.repo].reason, "all"})
    ]


def work(todo: Sequence[Chosen], options: argparse.Namespace, services: Services) -> int:
    """Measure and write; the number of repositories for which engine, network or disk failed."""
    lock, failed = Lock(), []

    def one(repository: Chosen) -> None:
        try:
            row = measure(repository, options.clones.resolve(), services, options.out / "logs")
        except MergemillError as error:
            failed.append(repository.repo)
            print(f"{repository.repo}: {error}", flush=True)
            return
        with lock:
            write(row, options.out / "rows.jsonl")
            print(f"{row.repo}: {row.reason or 'accepted'} {row.detail} ({row.seconds:.0f} s)", flush=True)

    with ThreadPoolExecutor(options.workers) as pool:
        list(pool.map(one, todo))
    return len(failed)


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clones", type=Path, required=True, metavar="DIR")
    parser.add_argument("--out", type=Path, default=Path("environments-benchmark"), metavar="FOLDER")
    parser.add_argument("--half", choices=("tune", "held", "both"), default="both")
    parser.add_argument("--language", help="a language or a group of them as the tables name it")
    parser.add_argument("--only", action="append", default=[], metavar="OWNER/NAME")
    parser.add_argument("--again", action="append", default=[], metavar="OWNER/NAME|REASON|all")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--test-timeout", type=float, metavar="SECONDS", help="for a machine that others use, too")
    parser.add_argument("--table", action="store_true", help="build nothing, print what is known")
    return parser.parse_args()


def main() -> int:
    """Do what is left and print the tables."""
    options = arguments()
    (options.out / "logs").mkdir(parents=True, exist_ok=True)
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(message)s")
    logging.getLogger("builders").setLevel(logging.INFO)
    failed = 0
    if not options.table:
        todo = wanted(options, read(options.out / "rows.jsonl"))
        print(f"{len(todo)} repositories to do, mergemill {revision()}", flush=True)
        db = f"sqlite:///{options.out.resolve()}/bench.db"
        limits = {} if options.test_timeout is None else {"test_timeout": options.test_timeout}
        settings = Settings(db=db, workers=options.workers, **limits)
        failed = work(todo, options, make_services(settings, engine=True))
    known = read(options.out / "rows.jsonl")
    rows = [known[one.repo] for one in chosen() if one.repo in known and options.half in (one.half, "both")]
    print(markdown(rows))
    return 75 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
