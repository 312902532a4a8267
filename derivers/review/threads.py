"""Reviews built from the review threads of a pull request: the diff at that time, and its confirmed defects.

A thread is a defect when a person started it on a line that the diff adds, its first comment is more than praise or a
matter of style, and the lines were changed before the merge. Of several versions of a change, the one with most such
threads is reviewed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from derivers.review.claims import extract_claim
from derivers.review.clean import LineEdit, parse_edits
from derivers.review.construction import NotReviewableError, Reason, build_diff_review, list_added_lines
from derivers.review.history import ReviewHistory
from derivers.review.subject import ReviewSubject
from languages.paths import is_source
from taskdb.records.discussion import AuthorKind, Discussion, ReviewThread
from taskdb.records.oracles import Defect, ReviewOracle

MIN_WORDS = 4
MAX_CLAIM_SENTENCES = 2
"""Sentences of the first comment that are quoted as the claim."""
NEAR_LINES = 1
"""Lines next to a thread's lines whose later change counts, too."""
_CHATTER = re.compile(
    r"\W*(nit\b|nitpick|typo|style\b|lgtm|nice|thanks|thank you|great|cool|love|good (catch|idea|point|job)|\+1|done\b|"
    r"fixed\b|same (here|as above)|ditto|see above|formatting|rename\b|whitespace|spelling|grammar)",
    re.IGNORECASE,
)


def review_threads(subject: ReviewSubject) -> ReviewOracle:
    """Return the review of the diff that reviewers commented on, with their confirmed findings as defects.

    Raises:
        NotReviewableError: there is no such thread, or the clone lacks the commits.
    """
    history, merge = subject.history, subject.candidate.merge_commit
    threads = list(_list_relevant_threads(subject))
    commits = Counter(thread.commit for thread in threads if thread.commit)
    for commit, _ in commits.most_common():
        if not history.has_commit(commit):
            continue
        base = history.find_merge_base(subject.candidate.base_commit, commit)
        # Of a version after the merge, tree and files would show what the merged change is.
        if base is None or base == commit or history.is_ancestor(merge, commit):
            continue
        review = _build_review(subject, base, commit, [thread for thread in threads if thread.commit == commit])
        if review is not None:
            return review
    detail = f"none of {len(threads)} threads is on a line that was changed before {merge[:10]}"
    raise NotReviewableError(Reason.NO_THREADS, detail if threads else "no reviewer commented on a source line")


def _list_relevant_threads(subject: ReviewSubject) -> Iterator[ReviewThread]:
    """Yield threads on added source lines that a person started with a substantial comment."""
    if subject.candidate.discussion is None:
        return
    discussion = Discussion.model_validate_json(subject.artifacts.get_text(subject.candidate.discussion))
    for thread in discussion.threads:
        first = thread.remarks[0] if thread.remarks else None
        if first is None or first.author_kind is not AuthorKind.USER or thread.original_line is None:
            continue
        words = len(re.findall(r"\w+", extract_claim(first.text, MAX_CLAIM_SENTENCES)))
        is_chatter = words < MIN_WORDS or _CHATTER.match(first.text)
        if thread.side == "right" and is_source(thread.path) and not is_chatter:
            yield thread


def _build_review(
    subject: ReviewSubject, base: str, commit: str, threads: Sequence[ReviewThread]
) -> ReviewOracle | None:
    history = subject.history
    changed = history.list_changed_sources(base, commit)
    diff = history.diff(base, commit, changed)
    files = history.read_texts(commit, [file.new for file in changed])
    added = {path: set(lines) for path, lines in list_added_lines(diff).items()}
    later = read_later_edits(history, commit, subject.candidate.merge_commit, {thread.path for thread in threads})
    defects: dict[tuple[str, int, int], Defect] = {}
    for thread in threads:
        last = thread.original_line or 0
        first = min(thread.original_start_line or last, last)
        lines = set(range(first, last + 1))
        if (
            thread.path in files
            and lines & added.get(thread.path, set())
            and _is_changed(later, thread.path, first, last)
        ):
            claim = extract_claim(thread.remarks[0].text, MAX_CLAIM_SENTENCES)
            location = (thread.path, first, last)
            defects.setdefault(location, Defect(path=thread.path, first_line=first, last_line=last, claim=claim))
    if not defects:
        return None
    ordered = [defects[location] for location in sorted(defects)]
    return build_diff_review(files, diff, ordered, subject.artifacts, target="threads", tree=commit)


def read_later_edits(
    history: ReviewHistory, commit: str, merge: str, paths: Iterable[str]
) -> Mapping[str, Sequence[LineEdit]]:
    """Return the edits of some files from `commit` until the merge; in a deleted file, every line is edited."""
    wanted = set(paths)
    changed = [file for file in history.list_changed_sources(commit, merge) if file.old in wanted]
    edits, gone = parse_edits(history.diff(commit, merge, changed, context=0))
    return {**edits, **{path: [LineEdit(1, 1 << 30, 0)] for path in gone}}


def _is_changed(later: Mapping[str, Sequence[LineEdit]], path: str, first: int, last: int) -> bool:
    return any(
        edit.at <= last + NEAR_LINES and edit.at + max(edit.old, 1) - 1 >= first - NEAR_LINES
        for edit in later.get(path, ())
    )
