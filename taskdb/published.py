"""Comparison of mergemill's test lists with published ones, whose test ids have other forms.

mergemill's ids are `file::rest`. SWE-bench's Python lists cut an id at its first space; some have bare function names
(sympy), those of R2E-Gym `Class.function`. In other datasets an id comes from a runner's log: a name without its file
(Go, Rust, C++), a title with its suites joined by spaces or ` > ` (JavaScript, PHP), `pkg.Class#method` (Java), or a
whole file, class or program where the log has no more (Multi-SWE-bench). A published id is compared with the readings
of mergemill's, the strictest first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Literal

from taskdb.records import ListDifference, PublishedLists, PublishedVerdict, TestId

_JOINTS = re.compile(r"(\s+>\s+|::|#|\s)+")
"""Separators between suites and title of a test, in ids of any style."""
_ROOTS = re.compile(r"^(.*/)?src/[^/]+/(java|kotlin|scala|groovy)/|^(.*/)?(src/test|src|tests?)/(?=[^/])")
"""Folders above the package's own in the path of a class."""


def _flatten(text: str) -> str:
    """Return the words of a name, separated by single spaces."""
    return _JOINTS.sub(" ", text).strip()


def _get_file(test: TestId) -> str:
    return test.partition("::")[0]


def _get_rest(test: TestId) -> str:
    return test.partition("::")[2]


def _get_class(test: TestId) -> str:
    """Return `com.x.FooTest` for a test in `core/src/test/java/com/x/FooTest.java`."""
    stem = _ROOTS.sub("", _get_file(test), count=1).rpartition(".")[0]
    return stem.replace("/", ".")


def _get_stem(test: TestId) -> str:
    return _get_class(test).rpartition(".")[2]


def _get_parent(test: TestId) -> str:
    """Return `TestSum` for Go's subtest `sum_test.go::TestSum/of_two`, and an empty string for other tests."""
    parent, slash, _ = _get_rest(test).partition("/")
    return parent if slash and _get_file(test).endswith("_test.go") else ""


def _get_title(test: TestId) -> str:
    return re.split(r"::|#|\s>\s", _get_rest(test))[-1].strip()


_PYTHON_READINGS: tuple[Callable[[TestId], str], ...] = (
    lambda test: test,
    lambda test: test.partition(" ")[0],
    lambda test: ".".join(test.split("::")[1:]),
    lambda test: test.rpartition("::")[2].partition(" ")[0],
)
"""Readings of an id, from the strictest to the loosest."""
_OTHER_READINGS: tuple[Callable[[TestId], str], ...] = (
    lambda test: test,
    _get_rest,
    lambda test: _flatten(_get_rest(test)),
    _flatten,
    lambda test: _flatten(f"{_get_file(test)}:{_get_title(test)}"),
    lambda test: _flatten(f"{_get_class(test)} {_get_title(test)}"),
    lambda test: _flatten(f"{_get_class(test).rpartition('.')[2]} {_get_title(test)}"),
    _get_title,
    lambda test: _flatten(_get_title(test)),
    _get_file,
    _get_class,
    _get_stem,
)
"""Readings for other languages; from the third on, published ids are flattened, too."""
_FLAT_FROM = 2
_WHOLE_FILE_READINGS = (_get_file, _get_class, _get_stem)
"""Readings that stand for a whole file or class, which a published list may name beside its tests."""


def compare_lists(
    published: PublishedLists, fail_to_pass: Iterable[TestId], pass_to_pass: Iterable[TestId]
) -> PublishedVerdict:
    """Compare mergemill's lists with published ones; the verdict compares the FAIL_TO_PASS sets."""
    f2p = _compute_difference(published.FAIL_TO_PASS, fail_to_pass)
    p2p = _compute_difference(published.PASS_TO_PASS, pass_to_pass)
    return PublishedVerdict(verdict=_decide_verdict(f2p), fail_to_pass=f2p, pass_to_pass=p2p)


def _decide_verdict(f2p: ListDifference) -> Literal["exact", "superset", "subset", "different"]:
    if f2p.missing:
        return "different" if f2p.extra else "subset"
    return "superset" if f2p.extra else "exact"


def _compute_difference(theirs: Iterable[TestId], ours: Iterable[TestId]) -> ListDifference:
    listed, all_ours = frozenset(theirs), frozenset(ours)
    missing, extra = set(listed), set(all_ours)
    if all(_get_file(test).endswith(".py") for test in extra):
        return _compute_python_difference(missing, extra)
    for number, reading in enumerate(_OTHER_READINGS):
        read = {test: reading(test) for test in extra}
        known = {reading(test) for test in all_ours} if reading in _WHOLE_FILE_READINGS else set(read.values())
        matched = {test for test in missing if (_flatten(test) if number >= _FLAT_FROM else test) in known}
        theirs_read = {_flatten(test) if number >= _FLAT_FROM else test for test in matched}
        missing -= matched
        extra = {test for test, text in read.items() if text not in theirs_read}
    for test in tuple(missing):  # a title without the suites around it
        if titled := {one for one in extra if _flatten(_get_rest(one)).endswith(f" {_flatten(test)}")}:
            missing.remove(test)
            extra -= titled
    with_parts = {test.partition("/")[0] for test in listed if "/" in test}
    undivided = listed - with_parts
    extra = {test for test in extra if _get_parent(test) not in undivided}
    return ListDifference(missing=tuple(sorted(missing)), extra=tuple(sorted(extra)))


def _compute_python_difference(missing: set[TestId], extra: set[TestId]) -> ListDifference:
    for number, cut in enumerate(_PYTHON_READINGS):
        if number == len(_PYTHON_READINGS) - 1:  # a bare name stands for a test only where they write bare names
            bare = {test for test in missing if "::" not in test}
            matched = bare & {cut(test) for test in extra}
        else:
            matched = missing & {cut(test) for test in extra}
        missing = missing - matched
        extra = {test for test in extra if cut(test) not in matched}
    return ListDifference(missing=tuple(sorted(missing)), extra=tuple(sorted(extra)))
