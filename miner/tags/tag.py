"""Entry point: tag a change, or a text alone."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache

from languages.paths import is_part_of_tests, is_source
from languages.registry import detect_file_language
from miner.changes import Change
from miner.tags.diffs import differ_only_in_annotations, find_line_signs, list_source_lines
from miner.tags.evidence import KindEvidence
from miner.tags.paths import find_path_signs
from miner.tags.routes import Route, find_route
from miner.tags.weights import load_model
from miner.tags.words import extract_features
from taskdb.records.discussion import AuthorKind, LinkedIssue
from taskdb.records.tags import Activity, ChangeKind, LanguageShare, Size, Tag, Tags

MIN_ODDS = -1.5
"""Log odds below which a kind is not even a guess; above 0 it is assigned, in between only as the single best guess."""
LINES_PER_FILE = 10
SIZES = ((10, Size.XS), (50, Size.S), (200, Size.M), (1000, Size.L))
MAX_AREAS = 5
MAX_KINDS = 6
BOT = 1.5
"""Weight of a bot's authorship for `dependency`."""


def tag_change(
    change: Change, rejection: tuple[str, str] | None = None, issues: Sequence[LinkedIssue] = (), *, bot: bool = False
) -> Tags:
    """Return the tags of a change. Patches are read only if the rules have made them already.

    Args:
        change: the change.
        rejection: reason and detail of its rejection; None for a candidate.
        issues: linked issues.
        bot: whether the rules found the author to be a bot.
    """
    request, gold = change.pull_request, _find_gold_patch(change)
    features = extract_features(request.title, request.body or request.problem_statement)
    evidence = _collect_evidence(change, features, rejection, issues, bot=bot)
    lines = [] if gold is None else list_source_lines(gold)
    evidence.add_signs([] if gold is None else find_line_signs(lines))
    if same := gold is not None and differ_only_in_annotations(lines):
        evidence.add(ChangeKind.TYPING, "diff:annotations-only", f"{len(lines)} lines", 6.0)
    kinds = decide_kinds(evidence)
    route = _find_change_route(change, kinds, same_program=same)
    lines_changed = None if gold is None else change.split.gold.line_count + change.split.test.line_count
    return Tags(
        parent=request.id,
        name=request.name,
        change_kinds=kinds,
        activities=classify_activities(features, kinds),
        languages=measure_language_shares(change, by_lines=gold is not None),
        size=classify_size(lines_changed, len(change.files)),
        changed_files=len(change.files),
        changed_lines=lines_changed,
        areas=find_areas(change.paths),
        route=route.tasks,
        stop_reason=route.rejection,
    )


def _collect_evidence(
    change: Change,
    features: Mapping[str, str],
    rejection: tuple[str, str] | None,
    issues: Sequence[LinkedIssue],
    *,
    bot: bool,
) -> KindEvidence:
    """Collect the evidence outside the diff."""
    request, evidence = change.pull_request, KindEvidence()
    evidence.add_words(features)
    evidence.add_title(request.title)
    evidence.add_labels(request.labels)
    evidence.add_issues(issues)
    evidence.add_signs(find_path_signs(change.paths))
    if rejection:
        evidence.add_reason(*rejection)
    if bot or request.author_kind is AuthorKind.BOT:
        evidence.add(ChangeKind.DEPENDENCY, "author", request.author, BOT)
    return evidence


def _find_change_route(change: Change, kinds: Sequence[Tag], *, same_program: bool) -> Route:
    has_source, has_tests = any(map(is_source, change.paths)), any(map(is_part_of_tests, change.paths))
    return find_route(
        [tag.change_kind for tag in kinds],
        source_and_tests=has_source and (has_tests or change.awaits_tests),
        same_program=same_program,
        source_alone=has_source and not has_tests,
    )


def tag_text(title: str, body: str, labels: Sequence[str] = ()) -> tuple[tuple[Tag, ...], tuple[Activity, ...]]:
    """Return kinds and activities by title, text and labels: of a commit message, or a pull request without diff."""
    evidence, features = KindEvidence(), extract_features(title, body)
    evidence.add_words(features)
    evidence.add_title(title)
    evidence.add_labels(labels)
    kinds = decide_kinds(evidence)
    return kinds, classify_activities(features, kinds)


def is_primarily_performance(kinds: Sequence[Tag]) -> bool:
    """Return whether performance is the primary kind, and more than a guess."""
    return kinds[0].change_kind is ChangeKind.PERFORMANCE and kinds[0].confidence > 0.5


def decide_kinds(evidence: KindEvidence) -> tuple[Tag, ...]:
    """Return the kinds with positive odds, the primary kind first."""
    ranked = sorted(evidence.odds.items(), key=lambda item: (-item[1], item[0]))
    chosen = [(kind, odds) for kind, odds in ranked if odds > 0][:MAX_KINDS] or [
        (kind, odds) for kind, odds in ranked[:1] if odds > MIN_ODDS
    ]
    if not chosen:
        return (Tag(change_kind=ChangeKind.OTHER, confidence=0.0, evidence=()),)
    return tuple(
        Tag(change_kind=kind, confidence=round(1 / (1 + math.exp(-odds)), 3), evidence=evidence.list_strongest(kind))
        for kind, odds in chosen
    )


def classify_activities(features: Mapping[str, str], kinds: Sequence[Tag]) -> tuple[Activity, ...]:
    """Return corrective for a bug fix; adaptive and perfective by words, the likelier kind if none is likely."""
    corrective = any(kind.change_kind is ChangeKind.BUGFIX and kind.confidence > 0.5 for kind in kinds)
    odds = {
        which: load_model(which.value).compute_log_odds(features) for which in (Activity.ADAPTIVE, Activity.PERFECTIVE)
    }
    chosen = [which for which, value in odds.items() if value > 0]
    if not corrective and not chosen:
        chosen = [max(odds, key=lambda which: odds[which])]
    return (*((Activity.CORRECTIVE,) if corrective else ()), *chosen)


def classify_size(lines: int | None, files: int) -> Size:
    """Return the size for a number of changed lines, or of files where the lines are unknown."""
    n = files * LINES_PER_FILE if lines is None else lines
    return next((size for limit, size in SIZES if n < limit), Size.XL)


def measure_language_shares(change: Change, *, by_lines: bool) -> tuple[LanguageShare, ...]:
    """Return the shares of the program files' languages, the largest first."""
    files = Counter(_find_language(path) for path in change.paths)
    counted = files
    if by_lines:
        counted = Counter(
            _find_language(p) for side in (change.split.gold, change.split.test) for p, *_ in side.changed_lines
        )
    total = sum(n for language, n in counted.items() if language) or 1
    shares = [
        LanguageShare(language=language, files=n, share=round(counted[language] / total, 3))
        for language, n in files.items()
        if language
    ]
    return tuple(sorted(shares, key=lambda share: (-share.share, share.language)))


def find_areas(paths: Sequence[str]) -> tuple[str, ...]:
    """Return the touched folders, at most two levels deep and without `src` and `lib`; the most touched first."""
    counted = Counter(_find_area(path) for path in paths)
    return tuple(sorted(counted, key=lambda area: (-counted[area], area))[:MAX_AREAS])


def _find_area(path: str) -> str:
    folders = [part for part in path.split("/")[:-1] if part not in ("src", "lib")]
    return "/".join(folders[:2]) or "."


@lru_cache(maxsize=50_000)
def _find_language(path: str) -> str:
    return detect_file_language(path)


def _find_gold_patch(change: Change) -> str | None:
    """Return the gold patch if it has been made already: making it costs git processes."""
    return change.split.gold.text if "split" in change.__dict__ else None
