"""Plan runs that are larger than any machine here: `python -m benchmarks.scale COMMAND`.

measure   read stage times, outcomes and sizes of real runs from their databases, and write a profile
simulate  simulate one plan: hours, dollars, terabytes, utilisation, bottleneck
answers   simulate the plans of docs/evidence/scale.md and write its tables
check     run changes for real with 1, 2 and 4 workers, and compare with what the simulator predicts
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import MISSING, fields
from functools import partial
from itertools import count
from pathlib import Path

from benchmarks.scale import measure
from benchmarks.scale.plan import ANY, POSTGRESQL, REPOSITORY, SQLITE, Plan
from benchmarks.scale.profile import PROFILE, MeasuredRepository, Profile, StoreTimes, load_profile
from core.errors import MergemillError
from taskdb.store import Store

CHOICES = {"placement": (ANY, REPOSITORY), "database": (SQLITE, POSTGRESQL)}
HIDDEN = {"slice_seconds", "efficiency"}
"""Parts of a plan that only `check` sets."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    _add_measure(commands.add_parser("measure", help="write a profile"))
    _add_simulate(commands.add_parser("simulate", help="simulate one plan"))
    _add_answers(commands.add_parser("answers", help="write the tables of docs/evidence/scale.md"))
    _add_check(commands.add_parser("check", help="compare with real runs"))
    options = parser.parse_args(arguments)
    try:
        code: int = options.function(options)
    except MergemillError as error:
        print(error.format_line(), file=sys.stderr)
        return error.exit_code
    return code


def _add_measure(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(function=_measure)
    parser.add_argument("--cost", type=Path, help="folder of `benchmarks.cost --work`: steps, sizes and CPU seconds")
    parser.add_argument("--db", type=Path, action="append", default=[], metavar="FILE", help="database of a run")
    parser.add_argument(
        "--mine", type=Path, nargs="*", default=[], metavar="CLONE", help="histories to mine as a whole"
    )
    parser.add_argument("--limit", type=int, default=30, help="candidates after which mining of a history ends")
    parser.add_argument(
        "--draws", type=Path, nargs="*", default=[], metavar="FILE", help="rows of benchmarks.environments"
    )
    parser.add_argument(
        "--postgresql",
        action="append",
        default=[],
        metavar="URL",
        help="empty databases, one for each round of storing",
    )
    parser.add_argument("--source", action="append", default=[], metavar="TEXT", help="line about what was measured")
    parser.add_argument("--out", type=Path, required=True)


def _measure(options: argparse.Namespace) -> int:
    if not options.cost and not options.db:
        print("name a database with --db, or a folder of benchmarks.cost with --cost", file=sys.stderr)
        return 2
    paths = [(options.cost / "cold" / "cost.db", options.cost / "warm" / "cost.db")] if options.cost else []
    paths += [(path, None) for path in options.db]
    repositories: list[MeasuredRepository] = []
    sizes: list[tuple[float, float]] = []
    store: dict[str, StoreTimes] = {}
    with tempfile.TemporaryDirectory() as folder:
        for cold_path, warm_path in paths:
            with _open(cold_path) as cold:
                warm = _open(warm_path) if warm_path else None
                repositories += measure.read_repositories(cold, warm)
                sizes.append(measure.measure_sizes(cold_path, cold))
                if not store:
                    numbers = count()
                    store[SQLITE] = measure.time_storing(
                        cold,
                        lambda: Store.open(f"sqlite:///{folder}/{next(numbers)}.db"),  # noqa: B023 - called at once
                    )
                    if options.postgresql:
                        urls = iter(options.postgresql)
                        store[POSTGRESQL] = measure.time_storing(
                            cold,
                            lambda: Store.open(next(urls)),  # noqa: B023 - called at once
                            rounds=len(options.postgresql),
                        )
        histories = measure.mine_histories(options.mine, Path(folder), options.limit)
    cpu = measure.read_cpu_seconds(options.cost / "usage.json", "warm") if options.cost else {}
    Profile(
        sources=tuple(options.source),
        repositories=tuple(repositories),
        cores=measure.compute_cores(cpu, measure.sum_step_seconds(repositories)),
        store=store,
        artifact_bytes=round(sum(size for size, _ in sizes) / len(sizes)),
        database_bytes=round(sum(size for _, size in sizes) / len(sizes)),
        mined_limit=options.limit,
        histories=histories,
        environments=measure.read_draws(options.draws) if options.draws else None,
    ).save(options.out)
    return 0


def _open(path: Path) -> Store:
    return Store.open(f"sqlite:///{path.absolute()}", create=False)


def _add_simulate(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(function=_simulate)
    parser.add_argument("--profile", type=Path, default=PROFILE)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--goal-hours", type=float, metavar="H", help="find the number of nodes that takes at most H")
    for field in fields(Plan):
        if field.name not in HIDDEN and field.default is not MISSING:
            option = f"--{field.name.replace('_', '-').replace('sandboxes-per-node', 'workers-per-node')}"
            kind = type(field.default)
            parser.add_argument(
                option, dest=field.name, type=kind, default=field.default, choices=CHOICES.get(field.name)
            )


def _simulate(options: argparse.Namespace) -> int:
    from benchmarks.scale.search import find_nodes  # noqa: PLC0415 - needed here alone
    from benchmarks.scale.simulate import simulate  # noqa: PLC0415
    from benchmarks.scale.tables import render_outcome  # noqa: PLC0415

    profile = load_profile(options.profile)
    plan = Plan(**{field.name: getattr(options, field.name) for field in fields(Plan) if field.name not in HIDDEN})
    if options.goal_hours:
        outcome = find_nodes(plan, profile, options.goal_hours, options.seed)
    else:
        outcome = simulate(plan, profile, options.seed)
    sys.stdout.write(render_outcome(outcome))
    return 0


def _add_answers(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(function=_answer)
    parser.add_argument("--profile", type=Path, default=PROFILE)
    parser.add_argument("--repositories", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--page", type=Path)


def _answer(options: argparse.Namespace) -> int:
    from benchmarks.page_table import write_table  # noqa: PLC0415
    from benchmarks.scale.tables import render_answers  # noqa: PLC0415

    show = partial(print, file=sys.stderr, flush=True)
    table = render_answers(load_profile(options.profile), options.repositories, options.seed, show)
    sys.stdout.write(table)
    if options.page:
        write_table(options.page, "benchmarks.scale answers", table)
    return 0


def _add_check(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(function=_check)
    parser.add_argument("sources", nargs="+", metavar="SOURCE")
    parser.add_argument("--limit", type=int, default=6, help="candidates of each source; half of them are run again")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--until", help="newest day of a change")
    parser.add_argument("--base", action="append", metavar="PATTERN", help="tags of the base images to begin with")
    parser.add_argument("--out", type=Path, required=True, help="folder for databases, engine and what was measured")
    parser.add_argument("--page", type=Path)


def _check(options: argparse.Namespace) -> int:
    from benchmarks.page_table import write_table  # noqa: PLC0415
    from benchmarks.scale.check import check, render_check  # noqa: PLC0415

    comparisons = check(
        options.sources,
        options.out,
        limit=options.limit,
        workers=options.workers,
        until=options.until,
        bases=options.base or ["*"],
    )
    table = render_check(comparisons)
    sys.stdout.write(table)
    if options.page:
        write_table(options.page, "benchmarks.scale check", table)
    return int(not all(comparison.holds for comparison in comparisons))


if __name__ == "__main__":
    sys.exit(main())
