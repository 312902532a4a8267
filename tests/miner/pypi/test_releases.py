from __future__ import annotations

import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.version import Version

from core.errors import InputError, Transient
from miner import changelog
from miner.pypi import sdists
from taskdb.records import Candidate, Shape
from tests.miner.conftest import FIX, MIT, START, MinerHarness
from tests.miner.pypi.index import LocalIndex, build_archive, run_index

CHANGES = "Changes\n=======\n\n"
BACK = {
    "CHANGES.rst": CHANGES + "1.2\n---\n\n- Back to two.\n",
    "tests/test_core.py": "from pkg.core import one\n\n\ndef test_one():\n    assert one() == 2\n",
}
ENTRY = "1.1 (2024-02-01)\n----------------\n\n- ``one()`` returns one.\n\n"


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalIndex]:
    for name in ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("tenacity.nap.time.sleep", lambda _: None)
    with run_index() as index:
        monkeypatch.setenv("PIP_INDEX_URL", index.url)
        yield index


@pytest.fixture
def widget(index: LocalIndex) -> LocalIndex:
    index.add_release("widget", "1.0", "2024-01-01", START | {"CHANGES.rst": CHANGES, "PKG-INFO": "1.0"})
    index.add_release(
        "widget",
        "1.1",
        "2024-02-01",
        FIX | {"LICENSE": MIT, "CHANGES.rst": CHANGES + ENTRY, "PKG-INFO": "1.1", "widget.egg-info/SOURCES.txt": "x\n"},
    )
    return index


def test_a_release_is_a_change_against_the_one_before(widget: LocalIndex, harness: MinerHarness) -> None:
    newest, first = harness.mine("pypi:widget")
    request, candidate = newest.pull_request, newest.result
    assert isinstance(candidate, Candidate)
    assert (request.shape, request.name, request.repo) == (Shape.RELEASE, "widget__widget-1.1", "widget/widget")
    assert candidate.problem_statement == "- ``one()`` returns one."
    assert (candidate.created_at, candidate.version) == ("2024-02-01T12:00:00+00:00", "1.0")
    assert candidate.gold_files == ("CHANGES.rst", "pkg/core.py")
    assert candidate.test_files == ("tests/test_core.py",)
    assert getattr(first.result, "reason", "") == "no-base"
    tree = harness.open_services().clones.open("pypi:widget").ls_tree(candidate.merge_commit)
    assert {entry.path for entry in tree} == {*FIX, "LICENSE", "CHANGES.rst"}


def test_commits_are_the_same_on_every_machine(widget: LocalIndex, tmp_path: Path) -> None:
    here, there = (MinerHarness(tmp_path / name).mine("pypi:widget") for name in ("here", "there"))
    assert [m.result.id for m in here] == [m.result.id for m in there]


def test_only_what_is_needed_is_downloaded_and_only_once(widget: LocalIndex, harness: MinerHarness) -> None:
    widget.add_release("widget", "1.2", "2024-03-01", START | BACK)
    harness.mine("pypi:widget", limit=1)
    assert widget.downloads() == ["widget-1.1.tar.gz", "widget-1.2.tar.gz"]
    harness.mine("pypi:widget")
    assert widget.downloads() == ["widget-1.1.tar.gz", "widget-1.2.tar.gz", "widget-1.0.tar.gz"]


def test_the_base_is_the_highest_lower_version_of_that_day(index: LocalIndex, harness: MinerHarness) -> None:
    for version, day in (("1.9", "2024-01-01"), ("2.0", "2024-02-01"), ("1.9.1", "2024-03-01"), ("2.1", "2024-04-01")):
        index.add_release("widget", version, day, START | {"v.py": version})
    index.add_release("widget", "2.2rc1", "2024-05-01", START)
    index.add_release("widget", "2.2", "2024-05-02", START, yanked="broken")
    requests = [m.pull_request for m in harness.mine("pypi:widget")]
    assert [(r.title, r.version) for r in requests] == [
        ("widget 2.1", "2.0"),
        ("widget 1.9.1", "1.9"),
        ("widget 2.0", "1.9"),
        ("widget 1.9", ""),
    ]


def test_a_release_without_an_entry_is_rejected(widget: LocalIndex, harness: MinerHarness) -> None:
    widget.add_release("widget", "1.2", "2024-03-01", START | {"CHANGES.rst": CHANGES + ENTRY})
    assert getattr(harness.mine("pypi:widget")[0].result, "reason", "") == "no-statement"


def test_a_transient_failure_is_retried(widget: LocalIndex, harness: MinerHarness) -> None:
    widget.failures = 2
    assert len(harness.mine("pypi:widget")) == 2


def test_an_index_that_does_not_answer_is_transient(harness: MinerHarness, index: LocalIndex) -> None:
    index.failures = 100
    with pytest.raises(Transient):
        harness.mine("pypi:widget")


def test_an_unknown_package_is_unusable_input(harness: MinerHarness, index: LocalIndex) -> None:
    with pytest.raises(InputError, match="no package gadget"):
        harness.mine("pypi:gadget")


def link(target: str, kind: bytes = tarfile.SYMTYPE) -> tarfile.TarInfo:
    info = tarfile.TarInfo()
    info.type, info.linkname = kind, target
    return info


@pytest.mark.parametrize(
    "content",
    [
        b"no archive at all",
        build_archive("widget-1.2", START)[:-200],
        build_archive("", {"widget-1.2/a.py": "x", "../evil.py": "x"}, plain=True),
        build_archive("", {"widget-1.2/a.py": "x", "/etc/evil": "x"}, plain=True),
        build_archive("", {"a/x": "x", "b/y": "y"}, plain=True),
        build_archive("widget-1.2", {"a.py": "x", "link": link("../../etc/passwd")}),
        build_archive("widget-1.2", {"a.py": "x", "link": link("/etc/passwd")}),
        build_archive("widget-1.2", {"a.py": "x", "link": link("/etc/passwd", tarfile.LNKTYPE)}),
        build_archive("widget-1.2", {"a.py": "x", "pipe": link("", tarfile.FIFOTYPE)}),
        build_archive("widget-1.2", {}),
    ],
    ids=["garbage", "cut", "above", "absolute", "two-tops", "link", "absolute-link", "hard-link", "pipe", "empty"],
)
def test_an_unsafe_archive_is_rejected_and_the_others_are_mined(
    content: bytes, widget: LocalIndex, harness: MinerHarness
) -> None:
    widget.add("widget", "widget-1.2.tar.gz", "2024-03-01", content)
    reasons = [getattr(m.result, "reason", "candidate") for m in harness.mine("pypi:widget")]
    assert reasons == ["unreadable-sdist", "candidate", "no-base"]


def test_a_file_that_does_not_match_its_digest_is_rejected(widget: LocalIndex, harness: MinerHarness) -> None:
    widget.files["widget-1.1.tar.gz"] = build_archive("widget-1.1", START)
    assert getattr(harness.mine("pypi:widget")[0].result, "reason", "") == "unreadable-sdist"


def test_an_archive_bomb_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "widget-1.tar.gz"
    path.write_bytes(build_archive("widget-1", {"a": b"\0" * 5000, "b": b"\0" * 5000}))
    monkeypatch.setattr(sdists, "MAX_BYTES", 8000)
    with pytest.raises(sdists.UnsafeSdistError):
        sdists.read_sdist(path)


def test_modes_and_inner_links_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "widget-1.tar.gz"
    path.write_bytes(build_archive("widget-1", {"run.sh": "x", "sub/link": link("../run.sh"), "a.pyc": "x"}))
    assert {name: file.mode for name, file in sdists.read_sdist(path).items()} == {
        "run.sh": "100755",
        "sub/link": "120000",
    }


MARKDOWN = (
    "# Changelog\n\n## [1.10.0] - 2024-02-01\n\n### Added\n- Ten.\n\n## [1.1.0] - 2023-01-01\n- One.\n\n## Older\n"
)
PLAIN = "1.1.0 (2023-01-01)\n\n  * One, as 1.10.0 will.\n\n1.0.0\n\n  * Nought.\n"
RST = (
    "History\n=======\n\nVersion 1.1.0\n~~~~~~~~~~~~~\n\nReleased 2023-01-01\n\n-   One in 1.0.0 style.\n\n.. _x:\n\n"
    "Version 1.0\n~~~~~\n\n-  N\n"
)


@pytest.mark.parametrize(
    ("text", "version", "expected"),
    [
        (MARKDOWN, "1.10", "### Added\n- Ten."),
        (MARKDOWN, "1.1.0", "- One."),
        (MARKDOWN, "1.2", ""),
        (PLAIN, "1.1", "  * One, as 1.10.0 will."),
        (PLAIN, "1.0.0", "  * Nought."),
        (RST, "1.1.0", "-   One in 1.0.0 style."),
        ("## widget 1.1.0 / 2023-01-01\n\ntext\n", "1.1", "text"),
        ("1.1.0\n-----\n\nReleased 2023-01-01\n\n1.0\n---\n\n- x\n", "1.1", ""),
    ],
)
def test_the_entry_of_a_version_is_found(text: str, version: str, expected: str) -> None:
    assert changelog.find_section(text, "widget", Version(version)) == expected


def test_a_changelog_comes_before_the_readme() -> None:
    files = {"README.md": b"## 1.0\nfrom the readme\n", "docs/changelog.md": b"## 1.0\nfrom the changelog\n"}
    assert changelog.find_entry(files, "widget", Version("1.0")) == "from the changelog"
    assert changelog.find_entry({"README.md": files["README.md"]}, "widget", Version("1.0")) == "from the readme"
