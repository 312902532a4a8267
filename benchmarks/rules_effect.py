"""What each rule does to real histories: `python -m benchmarks.rules_effect REPO...`.

Every rule is asked of each of the newest changes of each REPO, whatever the others said. Printed for each rule, in the
order of the policy:

- `alone`: changes it speaks against;
- `first`: those against which no rule before it speaks, which is what the funnel counts;
- `only`: those against which no other rule speaks: what would be let through without it;
- `left`: changes that are left after it.

Rules that need patches are not asked of changes that touch more than `max_files` files, nor of the first commit: these
are counted under the rules that say so. `--sample N` prints N changes that each rule rejects first, to be looked at.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import Counter, defaultdict
from itertools import islice
from pathlib import Path

from backends.git import Repository
from mergemill.config import Settings
from miner.changes import Change, Reason, Unparsable
from miner.git.clone import reading
from miner.git.history import pull_requests, repo_name
from miner.rules import RULES

UNMEASURABLE = {Reason.NO_BASE, Reason.EMPTY, Reason.SUBMODULE, Reason.TOO_MANY_FILES, Reason.UNPARSABLE}
"""Where one of these speaks, no patch can be made, or not in reasonable time."""


def spoken(change: Change, settings: Settings) -> dict[Reason, str]:
    """All rules that speak against a change, in the order of the policy."""
    found: dict[Reason, str] = {}
    for rule in RULES:
        if rule.reason is Reason.UNPARSABLE and UNMEASURABLE & found.keys():
            return found
        try:
            said = rule.check(change, settings)
        except Unparsable as fault:  # asked in spite of the rule that says so
            said = str(fault)
        if said:
            found[rule.reason] = said
        if rule.reason is Reason.UNPARSABLE and said:
            return found
    return found


def main() -> int:
    """Ask and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("repos", type=Path, nargs="+", metavar="REPO")
    parser.add_argument("--newest", type=int, default=400, help="changes of each REPO (default 400)")
    parser.add_argument("--sample", type=int, default=0, help="rejections of each rule to print")
    parser.add_argument("--json", action="store_true", help="print one object a rule")
    options = parser.parse_args()
    settings = Settings()
    told: list[tuple[str, dict[Reason, str]]] = []
    for path in options.repos:
        repository = Repository(path)
        with reading(repository) as clone:
            found = pull_requests(repository, f"git:{path}", repo_name(repository, str(path)))
            for request, files, whole_branch in islice(found, options.newest):
                if not whole_branch:
                    name = f"{request.name} {request.merge_commit[:10]} {request.title[:70]!r}"
                    told.append((name, spoken(clone.change(request, files), settings)))
        print(f"{path.name}: {len(told)} changes so far", file=sys.stderr)
    tell([said for _, said in told], as_json=options.json)
    if options.sample:
        show(told, options.sample)
    return 0


def tell(told: list[dict[Reason, str]], *, as_json: bool) -> None:
    """Print the table."""
    alone = Counter(reason for said in told for reason in said)
    first = Counter(next(iter(said)) for said in told if said)
    only = Counter(next(iter(said)) for said in told if len(said) == 1)
    left = len(told)
    if not as_json:
        print(f"| rule ({left} changes) | alone | first | only | left |\n|---|---|---|---|---|")
    for rule in RULES:
        left -= first[rule.reason]
        row = {"rule": rule.reason.value, "alone": alone[rule.reason], "first": first[rule.reason],
               "only": only[rule.reason], "left": left}  # fmt: skip
        print(json.dumps(row) if as_json else "| `{rule}` | {alone} | {first} | {only} | {left} |".format(**row))


def show(told: list[tuple[str, dict[Reason, str]]], n: int) -> None:
    """Print samples of what each rule rejected first."""
    chance = random.Random(1)  # noqa: S311 - a fixed seed, no secret
    groups: dict[Reason, list[str]] = defaultdict(list)
    for name, said in told:
        for reason, detail in islice(said.items(), 1):
            groups[reason].append(f"{name}: {detail}")
    for reason, lines in groups.items():
        print(f"\n## {reason.value}")
        print("\n".join(chance.sample(lines, min(n, len(lines)))))


if __name__ == "__main__":
    sys.exit(main())
