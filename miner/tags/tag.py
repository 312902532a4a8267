"""The way in: the tags of a change, or of a text alone."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache

from languages.paths import is_protected, is_source
from languages.registry import language_of_file
from miner.changes import Change
from miner.tags.diffs import lines_of, same_but_for_annotations, signs_of_lines
from miner.tags.evidence import Evidence
from miner.tags.paths import signs_of_paths
from miner.tags.routes import route_of
from miner.tags.weights import learned
from miner.tags.words import features
from taskdb.discussion import AuthorKind, LinkedIssue
from taskdb.tags import Activity, ChangeKind, LanguageShare, Size, Tag, Tags

WEAKEST = -1.5
"""Odds below which a kind is not even a guess; above 0 it is told, in between only if nothing better is there."""
LINES_A_FILE = 10
SIZES = ((10, Size.XS), (50, Size.S), (200, Size.M), (1000, Size.L))
MOST_AREAS = 5
MOST_KINDS = 6
BOT = 1.5
"""What a bot's authorship adds to `dependency`."""


def tag(
    change: Change, verdict: tuple[str, str] | None = None, issues: Sequence[LinkedIssue] = (), *, bot: bool = False
) -> Tags:
    """The tags of a change. Patches are looked at only where the rules have made them already.

    Args:
        change: the change.
        verdict: reason and detail of the rule that rejected it; None for what passed them all.
        issues: issues that the change speaks of.
        bot: whether the rules took its author for a bot.
    """
    request, evidence = change.pull_request, Evidence()
    found = features(request.title, request.body or request.problem_statement)
    evidence.of_words(found)
    evidence.of_title(request.title)
    evidence.of_labels(request.labels)
    evidence.of_issues(issues)
    evidence.of_signs(signs_of_paths(change.paths))
    if verdict:
        evidence.of_reason(*verdict)
    if bot or request.author_kind is AuthorKind.BOT:
        evidence.add(ChangeKind.DEPENDENCY, "author", request.author, BOT)
    gold = _gold(change)
    same = False
    if gold is not None:
        lines = lines_of(gold)
        evidence.of_signs(signs_of_lines(lines))
        if same := same_but_for_annotations(lines):
            evidence.add(ChangeKind.TYPING, "diff:annotations-only", f"{len(lines)} lines", 6.0)
    kinds = decided(evidence)
    sides = {is_protected(path) for path in change.paths if is_protected(path) or is_source(path)}
    route = route_of(
        [one.kind for one in kinds], source_and_tests=len(sides) == 2, same_program=same, source_alone=sides == {False}
    )
    lines_changed = None if gold is None else change.split.gold.lines + change.split.test.lines
    return Tags(
        parent=request.id, name=request.name, kinds=kinds, activities=activities(found, kinds),
        languages=languages(change, by_lines=gold is not None), size=size_of(lines_changed, len(change.files)),
        changed_files=len(change.files), changed_lines=lines_changed, areas=areas(change.paths),
        route=route.tasks, stops=route.stops,
    )  # fmt: skip


def tag_text(title: str, body: str, labels: Sequence[str] = ()) -> tuple[tuple[Tag, ...], tuple[Activity, ...]]:
    """Kinds and activities by title, text and labels alone: a commit message, a pull request without its diff."""
    evidence, found = Evidence(), features(title, body)
    evidence.of_words(found)
    evidence.of_title(title)
    evidence.of_labels(labels)
    kinds = decided(evidence)
    return kinds, activities(found, kinds)


def is_above_all_for_speed(kinds: Sequence[Tag]) -> bool:
    """Whether speed is the first of these kinds, and more than a guess."""
    return kinds[0].kind is ChangeKind.PERFORMANCE and kinds[0].confidence > 0.5


def decided(evidence: Evidence) -> tuple[Tag, ...]:
    """The kinds that the evidence speaks for, the primary one first."""
    ranked = sorted(evidence.odds.items(), key=lambda item: (-item[1], item[0]))
    told = [(kind, odds) for kind, odds in ranked if odds > 0][:MOST_KINDS] or [
        (kind, odds) for kind, odds in ranked[:1] if odds > WEAKEST
    ]
    if not told:
        return (Tag(kind=ChangeKind.OTHER, confidence=0.0, signs=()),)
    return tuple(
        Tag(kind=kind, confidence=round(1 / (1 + math.exp(-odds)), 3), signs=evidence.strongest(kind))
        for kind, odds in told
    )


def activities(found: Mapping[str, str], kinds: Sequence[Tag]) -> tuple[Activity, ...]:
    """Corrective when it is a bug fix; adaptive and perfective by its words, the likelier where neither is likely."""
    corrective = any(one.kind is ChangeKind.BUGFIX and one.confidence > 0.5 for one in kinds)
    odds = {which: learned(which.value).odds(found) for which in (Activity.ADAPTIVE, Activity.PERFECTIVE)}
    told = [which for which, one in odds.items() if one > 0]
    if not corrective and not told:
        told = [max(odds, key=lambda which: odds[which])]
    return (*((Activity.CORRECTIVE,) if corrective else ()), *told)


def size_of(lines: int | None, files: int) -> Size:
    """The size of so many changed lines; of so many files where the lines are not known."""
    n = files * LINES_A_FILE if lines is None else lines
    return next((size for limit, size in SIZES if n < limit), Size.XL)


def languages(change: Change, *, by_lines: bool) -> tuple[LanguageShare, ...]:
    """Shares of the program files' languages, the largest first."""
    files = Counter(_language(path) for path in change.paths)
    counted = files
    if by_lines:
        counted = Counter(_language(p) for side in (change.split.gold, change.split.test) for p, *_ in side.changed)
    total = sum(n for language, n in counted.items() if language) or 1
    shares = [
        LanguageShare(language=language, files=n, share=round(counted[language] / total, 3))
        for language, n in files.items() if language
    ]  # fmt: skip
    return tuple(sorted(shares, key=lambda one: (-one.share, one.language)))


def areas(paths: Sequence[str]) -> tuple[str, ...]:
    """Folders touched, two levels deep at most, `src` and `lib` not counted; the most touched first."""
    counted = Counter(_area(path) for path in paths)
    return tuple(sorted(counted, key=lambda area: (-counted[area], area))[:MOST_AREAS])


def _area(path: str) -> str:
    folders = [part for part in path.split("/")[:-1] if part not in ("src", "lib")]
    return "/".join(folders[:2]) or "."


@lru_cache(maxsize=50_000)
def _language(path: str) -> str:
    return language_of_file(path)


def _gold(change: Change) -> str | None:
    """The gold patch where it was made already: making it costs git processes."""
    return change.split.gold.text if "split" in change.__dict__ else None
