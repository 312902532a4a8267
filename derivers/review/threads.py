"""What reviewers said of a pull request, as the review it is: the diff at the time, and where they were right.

A thread counts when a person began it on a line that the diff had brought, its first words say more than praise or a
matter of taste, and the lines were another when the change was merged: somebody thought it worth a change. Of several
versions of a change the one is taken of which most such threads speak.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from derivers.review.change import Under
from derivers.review.claims import claim_of
from derivers.review.control import Edit, edits_of
from derivers.review.history import History
from derivers.review.material import Reason, Unfit, added_lines, diff_review
from languages.paths import is_source
from taskdb.discussion import AuthorKind, Discussion, ReviewThread
from taskdb.oracles import Defect, Review

FEWEST_WORDS = 4
SENTENCES = 2
"""Of a first comment that are its claim."""
NEAR = 1
"""Lines beside a thread's that count as its own when they change later."""
_CHATTER = re.compile(
    r"\W*(nit\b|nitpick|typo|style\b|lgtm|nice|thanks|thank you|great|cool|love|good (catch|idea|point|job)|\+1|done\b|"
    r"fixed\b|same (here|as above)|ditto|see above|formatting|rename\b|whitespace|spelling|grammar)",
    re.IGNORECASE,
)


def threads(under: Under) -> Review:
    """The diff that reviewers saw, with what they found in it.

    Raises:
        Unfit: nobody said anything of that sort, or the commits that were spoken of are not in the clone.
    """
    history, merge = under.history, under.candidate.merge_commit
    spoken = list(_spoken(under))
    commits = Counter(thread.commit for thread in spoken if thread.commit)
    for commit, _ in commits.most_common():
        if not history.has(commit):
            continue
        base = history.fork(under.candidate.base_commit, commit)
        if base is None or base == commit:
            continue
        found = _review(under, base, commit, [thread for thread in spoken if thread.commit == commit])
        if found is not None:
            return found
    detail = f"of {len(spoken)} threads none is on a line that was changed before {merge[:10]}"
    raise Unfit(Reason.NO_THREADS, detail if spoken else "no reviewer said anything of a line of source")


def _spoken(under: Under) -> Iterator[ReviewThread]:
    """Threads on new lines of source that a person began with more than chatter."""
    if under.candidate.discussion is None:
        return
    said = Discussion.model_validate_json(under.artifacts.text(under.candidate.discussion))
    for thread in said.threads:
        first = thread.remarks[0] if thread.remarks else None
        if first is None or first.author_kind is not AuthorKind.USER or thread.original_line is None:
            continue
        words = len(re.findall(r"\w+", claim_of(first.text, SENTENCES)))
        chatter = words < FEWEST_WORDS or _CHATTER.match(first.text)
        if thread.side == "right" and is_source(thread.path) and not chatter:
            yield thread


def _review(under: Under, base: str, commit: str, spoken: Sequence[ReviewThread]) -> Review | None:
    history = under.history
    changed = history.changed_source(base, commit)
    diff = history.diff(base, commit, changed)
    files = history.texts(commit, [file.new for file in changed])
    added = {path: set(lines) for path, lines in added_lines(diff).items()}
    later = later_versions(history, commit, under.candidate.merge_commit, {thread.path for thread in spoken})
    defects: dict[tuple[str, int, int], Defect] = {}
    for thread in spoken:
        last = thread.original_line or 0
        first = min(thread.original_start_line or last, last)
        lines = set(range(first, last + 1))
        if thread.path in files and lines & added.get(thread.path, set()) and _changed(later, thread.path, first, last):
            claim = claim_of(thread.remarks[0].text, SENTENCES)
            place = (thread.path, first, last)
            defects.setdefault(place, Defect(path=thread.path, first_line=first, last_line=last, claim=claim))
    if not defects:
        return None
    found = [defects[place] for place in sorted(defects)]
    return diff_review(files, diff, found, under.artifacts, target="threads")


def later_versions(history: History, commit: str, merge: str, paths: Iterable[str]) -> Mapping[str, Sequence[Edit]]:
    """What became of files until the merge, by their name at `commit`; of one that went, every line was changed."""
    wanted = set(paths)
    changed = [file for file in history.changed_source(commit, merge) if file.old in wanted]
    edits, gone = edits_of(history.diff(commit, merge, changed, context=0))
    return {**edits, **{path: [Edit(1, 1 << 30, 0)] for path in gone}}


def _changed(later: Mapping[str, Sequence[Edit]], path: str, first: int, last: int) -> bool:
    return any(
        edit.at <= last + NEAR and edit.at + max(edit.old, 1) - 1 >= first - NEAR for edit in later.get(path, ())
    )
