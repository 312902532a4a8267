"""Our lists against those a published task came with, whose ids were written by others.

Ours are `file::rest`. SWE-bench's Python lists cut an id at its first space; some hold bare function names (sympy).
Elsewhere an id is what somebody read off a runner's log: a name without its file (Go, Rust, C++), a title with its
suites joined by spaces or ` > ` (JavaScript, PHP), `pkg.Class#method` (Java), or a whole file, class or program where
the log told no more (Multi-SWE-bench). An id of theirs is looked for among the readings of ours, the strictest first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Literal

from taskdb.records import ListDifference, Published, PublishedVerdict, TestId

_JOINTS = re.compile(r"(\s+>\s+|::|#|\s)+")
"""What parts the suites and the title of a test, in ids of any style."""
_ROOTS = re.compile(r"^(.*/)?src/[^/]+/(java|kotlin|scala|groovy)/|^(.*/)?(src/test|src|tests?)/(?=[^/])")
"""Folders before a package's own in the path of a class."""


def _flat(text: str) -> str:
    """The words of a name, however they are joined."""
    return _JOINTS.sub(" ", text).strip()


def _file(test: TestId) -> str:
    return test.partition("::")[0]


def _rest(test: TestId) -> str:
    return test.partition("::")[2]


def _class(test: TestId) -> str:
    """`com.x.FooTest` of a test in `core/src/test/java/com/x/FooTest.java`."""
    stem = _ROOTS.sub("", _file(test), count=1).rpartition(".")[0]
    return stem.replace("/", ".")


def _stem(test: TestId) -> str:
    return _class(test).rpartition(".")[2]


def _parent(test: TestId) -> str:
    """`TestSum` of Go's subtest `sum_test.go::TestSum/of_two`: some lists name no subtests; empty for other tests."""
    parent, slash, _ = _rest(test).partition("/")
    return parent if slash and _file(test).endswith("_test.go") else ""


def _last(test: TestId) -> str:
    return re.split(r"::|#|\s>\s", _rest(test))[-1].strip()


_PYTHON: tuple[Callable[[TestId], str], ...] = (
    lambda test: test,
    lambda test: test.partition(" ")[0],
    lambda test: test.rpartition("::")[2].partition(" ")[0],
)
"""From the strictest reading of an id to the loosest."""
_OTHERS: tuple[Callable[[TestId], str], ...] = (
    lambda test: test,
    _rest,
    lambda test: _flat(_rest(test)),
    _flat,
    lambda test: _flat(f"{_file(test)}:{_last(test)}"),
    lambda test: _flat(f"{_class(test)} {_last(test)}"),
    lambda test: _flat(f"{_class(test).rpartition('.')[2]} {_last(test)}"),
    _last,
    lambda test: _flat(_last(test)),
    _file,
    _class,
    _stem,
)
"""The same for other languages. Their ids are read flat from the third on."""
_FLAT_FROM = 2
_WHOLE = (_file, _class, _stem)
"""Readings that stand for a whole file or class: it may be listed beside its tests, as a runner's log names both."""


def compare(published: Published, fail_to_pass: Iterable[TestId], pass_to_pass: Iterable[TestId]) -> PublishedVerdict:
    """How our lists differ; the verdict speaks of the FAIL_TO_PASS set, ours against theirs."""
    f2p = _difference(published.fail_to_pass, fail_to_pass)
    p2p = _difference(published.pass_to_pass, pass_to_pass)
    return PublishedVerdict(verdict=_verdict(f2p), fail_to_pass=f2p, pass_to_pass=p2p)


def _verdict(f2p: ListDifference) -> Literal["exact", "superset", "subset", "different"]:
    if f2p.missing:
        return "different" if f2p.extra else "subset"
    return "superset" if f2p.extra else "exact"


def _difference(theirs: Iterable[TestId], ours: Iterable[TestId]) -> ListDifference:
    listed, all_ours = frozenset(theirs), frozenset(ours)
    missing, extra = set(listed), set(all_ours)
    if all(_file(test).endswith(".py") for test in extra):
        return _python_difference(missing, extra)
    for number, reading in enumerate(_OTHERS):
        read = {test: reading(test) for test in extra}
        known = {reading(test) for test in all_ours} if reading in _WHOLE else set(read.values())
        matched = {test for test in missing if (_flat(test) if number >= _FLAT_FROM else test) in known}
        theirs_read = {_flat(test) if number >= _FLAT_FROM else test for test in matched}
        missing -= matched
        extra = {test for test, text in read.items() if text not in theirs_read}
    for test in tuple(missing):  # a title without the suites around it
        if titled := {one for one in extra if _flat(_rest(one)).endswith(f" {_flat(test)}")}:
            missing.remove(test)
            extra -= titled
    with_parts = {test.partition("/")[0] for test in listed if "/" in test}
    undivided = listed - with_parts
    extra = {test for test in extra if _parent(test) not in undivided}
    return ListDifference(missing=tuple(sorted(missing)), extra=tuple(sorted(extra)))


def _python_difference(missing: set[TestId], extra: set[TestId]) -> ListDifference:
    for number, cut in enumerate(_PYTHON):
        if number == len(_PYTHON) - 1:  # a bare name stands for a test only where they write bare names
            bare = {test for test in missing if "::" not in test}
            matched = bare & {cut(test) for test in extra}
        else:
            matched = missing & {cut(test) for test in extra}
        missing = missing - matched
        extra = {test for test in extra if cut(test) not in matched}
    return ListDifference(missing=tuple(sorted(missing)), extra=tuple(sorted(extra)))
