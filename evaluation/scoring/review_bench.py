"""Findings of a review by class, and the columns of a review bench.

An answer counts only where every defect is found and no finding is invalid (SWE-Review). A finding that matches no
known defect need not be wrong: as in SWE-PRBench (arXiv 2603.26130), it is looked up in the material, in later fixes,
and put to a judge. Each finding has the first class that applies, in the order of `FindingClass`.
"""

from __future__ import annotations

import builtins
import keyword
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple, Protocol

from guest.scoring.findings import KnownDefect, ReviewFinding, count_lines, find_edges, is_at_defect, match_findings
from taskdb.records.oracles import LaterFix

VOTES = 3
"""Votes of judges on a finding."""


class FindingClass(StrEnum):
    """Classes of findings."""

    TARGET = "target"
    """It matches a known defect."""
    DUPLICATE = "duplicate"
    """It matches a known defect that another finding matches."""
    NONEXISTENT = "invalid:nonexistent"
    """Its file or lines do not exist, or none of the names that it refers to."""
    FIXED_LATER = "valid:fixed-later"
    """It matches lines that a later fix changes."""
    VALID = "valid"
    INVALID = "invalid"
    UNCLEAR = "unclear"
    """No majority of judges, or no judge."""


GOOD = frozenset({FindingClass.TARGET, FindingClass.FIXED_LATER, FindingClass.VALID})
BAD = frozenset({FindingClass.NONEXISTENT, FindingClass.INVALID})


class FindingVote(NamedTuple):
    """Vote of a judge on a finding; `verdict` is `void` where it has no answer, or a quote that does not occur."""

    verdict: str
    """`valid`, `invalid`, `unclear` or `void`."""
    quote: str = ""
    """Line of the material that it rests on."""
    behaviour: str = ""
    """Behaviour that this line implies."""
    problem: str = ""
    """Reason why it is void."""


class Bounds(NamedTuple):
    """Least and largest value of a column, with every unclear finding as invalid and as valid."""

    low: float
    high: float


Columns = dict[str, Bounds | None]
"""Column -> its bounds, which are equal where nothing is unclear; None where the column does not apply."""


class SurroundingTree(Protocol):
    """Tree around the files under review, which a reviewer may read."""

    def read(self, path: str) -> str | None:
        """Return the text of a file; None where there is none."""

    def has_name(self, name: str) -> bool:
        """Return whether a name occurs as a word in a file."""


@dataclass(frozen=True, kw_only=True)
class ReviewMaterial:
    """Texts under review.

    Attributes:
        files: path -> text, as the reviewer sees it.
        diff: text of the diff under review; empty where the files themselves are.
        tree: tree around them; None for tasks of earlier versions.
    """

    files: Mapping[str, str]
    diff: str = ""
    tree: SurroundingTree | None = None

    @cached_property
    def lines(self) -> dict[str, int]:
        """Number of lines of each file."""
        return count_lines(self.files)

    @cached_property
    def text(self) -> str:
        """All texts and paths."""
        return "\n".join([*self.files, *self.files.values(), self.diff])

    @cached_property
    def words(self) -> frozenset[str]:
        """All words of the texts and paths."""
        return frozenset(_WORD.findall(self.text))

    def has_lines(self, finding: ReviewFinding) -> bool:
        """Return whether the file of a finding exists, and has its lines."""
        lines = self.lines
        if finding.path not in lines and (text := self.read(finding.path)):
            lines = count_lines({finding.path: text})
        return 1 <= finding.first_line <= finding.last_line <= lines.get(finding.path, 0)

    def read(self, path: str) -> str:
        """Return the text of a file under review or around them; empty where there is none."""
        if path in self.files:
            return self.files[path]
        return (self.tree.read(path) if self.tree else None) or ""

    def has_name(self, name: str) -> bool:
        """Return whether a name occurs; of `Cart.total` the last part counts, of an expression any name in it."""
        if name in self.text:
            return True
        parts = _list_identifiers(name)
        chosen = parts[-1:] if _DOTTED.fullmatch(name) else parts
        return any(part in self.words or (self.tree is not None and self.tree.has_name(part)) for part in chosen)


_WORD = re.compile(r"\w+")
_IDENTIFIER = re.compile(r"[^\W\d]\w*")
_DOTTED = re.compile(r"[\w$]+(?:(?:\.|::|->|#)[\w$]+)*")
_SPAN = re.compile(r"(`+)([^`\n]+)\1")
_CLAUSE = re.compile(r"[.;:,!?](?=\s|$)|\n")
_ARGUMENTS = re.compile(r"\([^()]*\)$")
_NO_REFERENCE = re.compile(
    r"\b(should|could|must|may|instead|rename\w*|introduc\w*|add(?:ing)?|creat\w*|extract\w*|use|using|replac\w*|suggest\w*"
    r"|propos\w*|prefer\w*|consider\w*|call(?:ed)? it|nam(?:e|ed) it|like|missing|no|not|lack\w*|without|never"
    r"|rais\w*|throw\w*|return\w*|yield\w*|crash\w*|panic\w*|fail\w*|giv\w*|becom\w*|result\w*)"
    r"(?:\W+\w+){0,3}\W*$",
    re.IGNORECASE,
)
"""Words before a name that is proposed, absent or a result, at most three words away."""
_PROPOSED_AFTER = re.compile(r"\W*(?:would|could|should|instead|is missing|must be added|is better)\b", re.IGNORECASE)
_FAILURE = re.compile(r"(?:\w*(?:Error|Exception|Warning|Panic)|SIG[A-Z]+|NaN|Infinity)")
_LITERALS = frozenset(
    [
        *keyword.kwlist,
        *keyword.softkwlist,
        *dir(builtins),
        *("null", "undefined", "nil", "true", "false", "this", "void", "NULL", "nullptr", "string", "boolean"),
        *("number", "function", "const", "let", "var", "static", "public", "private", "protected", "new", "delete"),
        *("switch", "do", "then", "end", "fi", "done", "struct", "enum", "interface", "fn", "func", "mut", "unsafe"),
    ]
)
"""Words of languages, which need not occur in the material."""


def _list_identifiers(text: str) -> list[str]:
    return [name for name in _IDENTIFIER.findall(text) if name not in _LITERALS and not _FAILURE.fullmatch(name)]


def list_referred_names(claim: str) -> list[str]:
    """Return the names in backticks by which a claim refers to the material.

    Names that are proposed, missing, or a result such as an exception are left out, and so are words of
    languages.
    """
    names = []
    for match in _SPAN.finditer(claim):
        name = _ARGUMENTS.sub("", match[2].strip())
        before = _CLAUSE.split(claim[: match.start()])[-1]
        if not _list_identifiers(name) or _NO_REFERENCE.search(before) or _PROPOSED_AFTER.match(claim, match.end()):
            continue
        names.append(name)
    return names


def is_nonexistent(finding: ReviewFinding, material: ReviewMaterial) -> bool:
    """Return whether file or lines of a finding do not exist, or none of the names that it refers to."""
    if not material.has_lines(finding):
        return True
    names = list_referred_names(finding.claim)
    return bool(names) and not any(map(material.has_name, names))


def has_lines(defect: KnownDefect) -> bool:
    """Return whether the lines of a defect are known; they are not where the first is 0, as in golden comments."""
    return defect.first_line > 0


def list_candidates(
    defects: Sequence[KnownDefect], findings: Sequence[ReviewFinding], material: ReviewMaterial
) -> list[list[int]]:
    """Return for each defect the numbers of the findings that may describe it.

    These are the findings at its lines; where it has none, all findings of its file, or of any file where that is
    unknown, too.
    """
    edges = find_edges(defects, findings, material.lines)
    for defect, numbers in zip(defects, edges, strict=True):
        if not has_lines(defect):
            numbers += [
                n
                for n, finding in enumerate(findings)
                if finding.claim.strip() and (not defect.path or finding.path == defect.path)
            ]
    return edges


def list_fixed_later(
    findings: Sequence[ReviewFinding], others: Sequence[LaterFix], material: ReviewMaterial
) -> dict[int, list[LaterFix]]:
    """Return the number of each finding at lines that a later fix changes -> these fixes."""
    later: dict[int, list[LaterFix]] = {}
    for n, finding in enumerate(findings):
        for fix in others:
            lines = ReviewFinding(fix.path, fix.first_line, fix.last_line, fix.message)
            if is_at_defect(finding, lines, material.lines):
                later.setdefault(n, []).append(fix)
    return later


def decide_votes(votes: Sequence[FindingVote]) -> FindingClass:
    """Return the verdict of more than half of `VOTES` votes, `valid` or `invalid`; `unclear` where there is none."""
    counts = Counter(vote.verdict for vote in votes)
    for verdict in (FindingClass.VALID, FindingClass.INVALID):
        if 2 * counts[verdict.value] > VOTES:
            return verdict
    return FindingClass.UNCLEAR


def classify_findings(
    findings: Sequence[ReviewFinding],
    edges: Sequence[Collection[int]],
    material: ReviewMaterial,
    *,
    later: Collection[int] = (),
    votes: Mapping[int, Sequence[FindingVote]] | None = None,
) -> list[FindingClass]:
    """Return the class of each finding.

    Args:
        findings: findings of the review.
        edges: numbers of the findings that describe each location of a known defect.
        material: texts under review.
        later: numbers of the findings that match a later fix.
        votes: number of a finding -> votes of the judges on it; findings without votes are unclear.
    """
    matched = set(match_findings(edges).values())
    described = {n for numbers in edges for n in numbers}
    classes = []
    for n, finding in enumerate(findings):
        if n in matched:
            classes.append(FindingClass.TARGET)
        elif n in described:
            classes.append(FindingClass.DUPLICATE)
        elif is_nonexistent(finding, material):
            classes.append(FindingClass.NONEXISTENT)
        elif n in later:
            classes.append(FindingClass.FIXED_LATER)
        else:
            classes.append(decide_votes((votes or {}).get(n, ())))
    return classes


def compute_columns(
    defects: Sequence[KnownDefect], edges: Sequence[Collection[int]], classes: Sequence[FindingClass]
) -> Columns:
    """Return the columns of a review that can be read.

    `found`: whether any defect is found; `recall`: share of the defects found; `hallucination_rate`: share of invalid
    findings; `precision`: share of right findings among those that are no duplicates; `correct`: whether all defects
    are found and no finding is invalid. Controls have the last three alone.

    Args:
        defects: locations of the known defects; locations with the same claim are a defect.
        edges: numbers of the findings that describe each location.
        classes: class of each finding.
    """
    counts = Counter(classes)
    unclear, n_bad = counts[FindingClass.UNCLEAR], sum(counts[name] for name in BAD)
    n_good = sum(counts[name] for name in GOOD)
    n, n_distinct = len(classes), len(classes) - counts[FindingClass.DUPLICATE]
    claims = {defect.claim for defect in defects}
    n_found = len({defects[place].claim for place in match_findings(edges)})
    may_be_correct = n_found == len(claims) and not n_bad
    columns: Columns = {"found": None, "recall": None}
    if claims:
        share = n_found / len(claims)
        columns = {"found": Bounds(float(n_found > 0), float(n_found > 0)), "recall": Bounds(share, share)}
    return columns | {
        "hallucination_rate": Bounds(n_bad / n, (n_bad + unclear) / n) if n else Bounds(0.0, 0.0),
        "precision": Bounds(n_good / n_distinct, (n_good + unclear) / n_distinct) if n_distinct else None,
        "correct": Bounds(float(may_be_correct and not unclear), float(may_be_correct)),
    }


def make_unreadable_columns(*, is_control: bool) -> Columns:
    """Return the columns of a review that cannot be read: nothing is found, and it has no findings to count."""
    zero = Bounds(0.0, 0.0)
    shared: Columns = {"hallucination_rate": None, "precision": None, "correct": zero}
    return {"found": None, "recall": None, **shared} if is_control else {"found": zero, "recall": zero, **shared}
