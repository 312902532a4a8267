"""Measure the effect of each rule on real histories: `python -m benchmarks.rules_effect REPO...`.

Every rule is applied to each of the newest changes of each REPO, whatever the others decide. Printed for each rule, in
the order of the policy:

- `alone`: changes that fail it;
- `first`: changes that fail it and pass all rules before it, which is what the funnel counts;
- `only`: changes that fail it and pass all other rules: what would become a candidate without it;
- `left`: changes that are left after it.

Rules that need patches are not applied to changes that touch more than `max_files` files, nor to the first commit:
these are counted under the rules with these reasons. Rules that need the reader of the source, tags or a database are
left out. `--sample N` prints N changes that each rule rejects first, for review.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import Counter, defaultdict
from itertools import islice
from pathlib import Path

from backends.git import GitRepository
from core.config import Settings
from core.settings.mining import MiningSettings
from miner.changes import Change, Reason, UnparsablePatchError
from miner.git.clone import open_reader
from miner.git.history import find_repo_name, read_pull_requests
from miner.rules import RULES, RuleInput

WITHOUT_PATCHES = {Reason.NO_BASE, Reason.EMPTY, Reason.SUBMODULE, Reason.TOO_MANY_FILES}
"""Reasons of changes whose patches cannot be made, or not in reasonable time."""
MEASURED_RULES = tuple(rule for rule in RULES if rule.needs in (RuleInput.RECORD, RuleInput.CLONE, RuleInput.PATCHES))


def find_all_rejections(change: Change, mining: MiningSettings) -> dict[Reason, str]:
    """Return reason and detail of every rule that a change fails, in the order of the policy."""
    rejections: dict[Reason, str] = {}
    for rule in MEASURED_RULES:
        if rule.reason is Reason.UNPARSABLE and WITHOUT_PATCHES & rejections.keys():
            return rejections
        try:
            detail = rule.check(change, mining)
        except UnparsablePatchError as error:
            detail = str(error)
        if detail:
            rejections[rule.reason] = detail
        if rule.reason is Reason.UNPARSABLE and detail:
            return rejections
    return rejections


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("repos", type=Path, nargs="+", metavar="REPO")
    parser.add_argument("--newest", type=int, default=400, help="changes of each REPO (default 400)")
    parser.add_argument("--sample", type=int, default=0, help="rejections of each rule to print")
    parser.add_argument("--json", action="store_true", help="print one object per rule")
    options = parser.parse_args()
    settings = Settings()
    results: list[tuple[str, dict[Reason, str]]] = []
    for path in options.repos:
        repository = GitRepository(path)
        with open_reader(repository) as clone:
            changes = read_pull_requests(repository, f"git:{path}", find_repo_name(repository, str(path)))
            for request, files, is_branch_merge in islice(changes, options.newest):
                if not is_branch_merge:
                    name = f"{request.name} {request.merge_commit[:10]} {request.title[:70]!r}"
                    results.append((name, find_all_rejections(clone.build_change(request, files), settings.mining)))
        print(f"{path.name}: {len(results)} changes so far", file=sys.stderr)
    print_table([rejections for _, rejections in results], as_json=options.json)
    if options.sample:
        print_samples(results, options.sample)
    return 0


def print_table(results: list[dict[Reason, str]], *, as_json: bool) -> None:
    """Print one row per rule."""
    alone = Counter(reason for rejections in results for reason in rejections)
    first = Counter(next(iter(rejections)) for rejections in results if rejections)
    only = Counter(next(iter(rejections)) for rejections in results if len(rejections) == 1)
    left = len(results)
    if not as_json:
        print(f"| rule ({left} changes) | alone | first | only | left |\n|---|---|---|---|---|")
    for rule in MEASURED_RULES:
        left -= first[rule.reason]
        counts = {"alone": alone[rule.reason], "first": first[rule.reason], "only": only[rule.reason], "left": left}
        row = {"rule": rule.reason.value, **counts}
        print(json.dumps(row) if as_json else "| `{rule}` | {alone} | {first} | {only} | {left} |".format(**row))


def print_samples(results: list[tuple[str, dict[Reason, str]]], n: int) -> None:
    """Print samples of what each rule rejected first."""
    rng = random.Random(1)  # noqa: S311 - a fixed seed, no secret
    groups: dict[Reason, list[str]] = defaultdict(list)
    for name, rejections in results:
        for reason, detail in islice(rejections.items(), 1):
            groups[reason].append(f"{name}: {detail}")
    for reason, lines in groups.items():
        print(f"\n## {reason.value}")
        print("\n".join(rng.sample(lines, min(n, len(lines)))))


if __name__ == "__main__":
    sys.exit(main())
