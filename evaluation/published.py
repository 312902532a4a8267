"""Comparison of mergemill's test lists with published lists, whose test ids have other forms.

mergemill's ids are `file::rest`. SWE-bench's Python lists cut an id at its first space; some have bare function names
(sympy), those of R2E-Gym `Class.function`. In other datasets an id comes from a runner's log: a name without its file
(Go, Rust, C++), a title with its suites joined by spaces or ` > ` (JavaScript, PHP), `pkg.Class#method` (Java), or a
whole file, class or program where the log has no more (Multi-SWE-bench). A published id is compared with the readings
of mergemill's, the strictest first. The verdict names the readings that were needed and keeps ids apart that stand for
several test.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from taskdb.records import ListDifference, PublishedGroup, PublishedLists, PublishedVerdict, TestId

_JOINTS = re.compile(r"(\s+>\s+|::|#|\s)+")
"""Separators between suites and title of a test, in ids of any style."""
_ROOTS = re.compile(r"^(.*/)?src/[^/]+/(java|kotlin|scala|groovy)/|^(.*/)?(src/test|src|tests?)/(?=[^/])")
"""Folders above the package's own in the path of a class."""


def flatten(text: str) -> str:
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


@dataclass(frozen=True, kw_only=True)
class Reading:
    """A way to read our ids, so that they equal published ids."""

    name: str
    read: Callable[[TestId], str]
    is_flat: bool = False
    """Whether separators count as spaces, in published ids as well."""

    def read_published(self, test: TestId) -> str:
        """Return a published id as it is compared with the id that `read` returns."""
        return flatten(test) if self.is_flat else test


_AS_WRITTEN = Reading(name="as written", read=lambda test: test)
_PYTHON_READINGS = (
    _AS_WRITTEN,
    Reading(name="cut at the first space", read=lambda test: test.partition(" ")[0]),
    Reading(name="without the file", read=lambda test: ".".join(test.split("::")[1:])),
)
"""Readings of an id, from the strictest to the loosest."""
_BARE_NAME = Reading(name="bare name", read=lambda test: test.rpartition("::")[2].partition(" ")[0])
"""Last reading in Python, for published ids that are not paths."""
_OTHER_READINGS = (
    _AS_WRITTEN,
    Reading(name="without the file", read=_get_rest),
    Reading(name="without the file, flat", read=lambda test: flatten(_get_rest(test)), is_flat=True),
    Reading(name="flat", read=flatten, is_flat=True),
    Reading(name="file and title", read=lambda test: flatten(f"{_get_file(test)}:{_get_title(test)}"), is_flat=True),
    Reading(name="class and title", read=lambda test: flatten(f"{_get_class(test)} {_get_title(test)}"), is_flat=True),
    Reading(
        name="short class and title",
        read=lambda test: flatten(f"{_get_stem(test)} {_get_title(test)}"),
        is_flat=True,
    ),
    Reading(name="title", read=lambda test: flatten(_get_title(test)), is_flat=True),
)
_FILE_READINGS = (
    Reading(name="file", read=_get_file, is_flat=True),
    Reading(name="class", read=_get_class, is_flat=True),
    Reading(name="short class", read=_get_stem, is_flat=True),
)
"""Readings that stand for a whole file, class or program."""
_PART_MARKS = tuple(":#> .")
"""Part that follows the name of a file or class in the id of any of its tests."""


def compare_lists(
    published: PublishedLists, fail_to_pass: Iterable[TestId], pass_to_pass: Iterable[TestId]
) -> PublishedVerdict:
    """Compare mergemill's lists with published lists; the verdict compares the FAIL_TO_PASS sets."""
    f2p = _match_lists("FAIL_TO_PASS", published.FAIL_TO_PASS, fail_to_pass)
    p2p = _match_lists("PASS_TO_PASS", published.PASS_TO_PASS, pass_to_pass)
    return PublishedVerdict(
        verdict=_decide_verdict(f2p),
        fail_to_pass=f2p.make_difference(),
        pass_to_pass=p2p.make_difference(),
        readings=tuple(f2p.readings),
        groups=(*f2p.groups, *p2p.groups),
    )


def list_readings(test: TestId) -> Iterator[str]:
    """Yield the flat forms (`flatten`) of the ids by which any of our tests may be published; whole files excluded."""
    readings = (*_PYTHON_READINGS, _BARE_NAME) if _get_file(test).endswith(".py") else _OTHER_READINGS
    yield from (flatten(reading.read(test)) for reading in readings)


def index_files(files: Iterable[str]) -> dict[str, str]:
    """Return path, class and stem of test files -> path; a name of two files belongs to the first of them."""
    paths = sorted(files)
    index: dict[str, str] = {}
    for reading in _FILE_READINGS:
        for path in paths:
            # Paths are sorted, so the owner of a name that two files share does not depend on the order of the reports.
            index.setdefault(reading.read(f"{path}::"), path)
    return index


def find_file(test: TestId, index: Mapping[str, str]) -> str | None:
    """Return the file that a published id names, alone or with any of its tests; None where it names none.

    Args:
        test: the published id.
        index: the files, from `index_files`.
    """
    ends = [place for place, mark in enumerate(test) if mark in _PART_MARKS]
    return next((index[test[:end]] for end in (len(test), *reversed(ends)) if test[:end] in index), None)


@dataclass(kw_only=True)
class _Matching:
    """Published ids and our tests, of which those that match are removed."""

    name: Literal["FAIL_TO_PASS", "PASS_TO_PASS"]
    listed: frozenset[TestId]
    ours: frozenset[TestId]
    missing: set[TestId]
    extra: set[TestId]
    readings: dict[str, None] = field(default_factory=dict)
    """Names of the readings that were needed, in order."""
    groups: list[PublishedGroup] = field(default_factory=list)

    def make_difference(self) -> ListDifference:
        """Return the rest on both sides."""
        return ListDifference(missing=tuple(sorted(self.missing)), extra=tuple(sorted(self.extra)))

    def match(self, reading: Reading, candidates: Collection[TestId]) -> None:
        """Match published ids among `candidates` by a reading; ids or tests that it merges become groups."""
        theirs: dict[str, list[TestId]] = defaultdict(list)
        ours: dict[str, list[TestId]] = defaultdict(list)
        for test in candidates:
            theirs[reading.read_published(test)].append(test)
        for test in self.extra:
            ours[reading.read(test)].append(test)
        for text in theirs.keys() & ours.keys():
            self._accept(reading.name, theirs[text], ours[text])

    def match_titles(self) -> None:
        """Match titles without the suites around them."""
        for title in sorted(self.missing):
            if titled := [test for test in self.extra if flatten(_get_rest(test)).endswith(f" {flatten(title)}")]:
                self._accept("end of the title", [title], titled)

    def match_files(self, reading: Reading) -> None:
        """Match whole files; where a list names single tests of a file, too, the file stands for no other test."""
        members = defaultdict(list)
        for test in self.ours:
            members[reading.read(test)].append(test)
        for name in sorted(self.missing):
            if tests := members.get(reading.read_published(name)):
                self.missing.remove(name)
                self.readings[reading.name] = None
                is_divided = any(
                    listed_name.startswith(name) and listed_name[len(name) :].startswith(_PART_MARKS)
                    for listed_name in self.listed
                )
                if not is_divided:
                    self.extra.difference_update(tests)
                self._add_group(name, "file", len(tests))

    def match_subtests(self) -> None:
        """Match subtests of Go by their parent, where it is matched and no subtest of it is published."""
        divided = {test.partition("/")[0] for test in self.listed if "/" in test}
        subtests = defaultdict(list)
        for test in self.extra:
            if parent := _get_parent(test):
                subtests[parent].append(test)
        for parent, tests in sorted(subtests.items()):
            # Where any subtest of it is published, the list names subtests, and the parent stands for none of them.
            if parent in self.listed - self.missing - divided:
                self.extra.difference_update(tests)
                self.readings["parent"] = None
                self._add_group(parent, "parent", 1 + len(tests))

    def _accept(self, reading: str, theirs: Collection[TestId], ours: Collection[TestId]) -> None:
        self.missing.difference_update(theirs)
        self.extra.difference_update(ours)
        if reading != _AS_WRITTEN.name:
            self.readings[reading] = None
        if len(theirs) > 1 or len(ours) > 1:
            for test in sorted(theirs):
                self._add_group(test, "name", len(ours))

    def _add_group(self, published: TestId, level: Literal["name", "parent", "file"], tests: int) -> None:
        self.groups.append(PublishedGroup(list_name=self.name, published=published, level=level, tests=tests))


def _decide_verdict(
    f2p: _Matching,
) -> Literal["exact", "exact-by-name", "exact-by-parent", "exact-by-file", "superset", "subset", "different"]:
    if f2p.missing:
        return "different" if f2p.extra else "subset"
    if f2p.extra:
        return "superset"
    levels = {group.level for group in f2p.groups}
    if "file" in levels:
        return "exact-by-file"
    if "parent" in levels:
        return "exact-by-parent"
    return "exact-by-name" if levels else "exact"


def _match_lists(
    name: Literal["FAIL_TO_PASS", "PASS_TO_PASS"], theirs: Iterable[TestId], ours: Iterable[TestId]
) -> _Matching:
    listed, tests = frozenset(theirs), frozenset(ours)
    matching = _Matching(name=name, listed=listed, ours=tests, missing=set(listed), extra=set(tests))
    if all(_get_file(test).endswith(".py") for test in tests):
        for reading in _PYTHON_READINGS:
            matching.match(reading, matching.missing)
        # An id with a separator is a path; its last part alone would match tests of other files.
        matching.match(_BARE_NAME, {test for test in matching.missing if "::" not in test})
        return matching
    for reading in _OTHER_READINGS:
        matching.match(reading, matching.missing)
    for reading in _FILE_READINGS:
        matching.match_files(reading)
    matching.match_titles()
    matching.match_subtests()
    return matching
