from __future__ import annotations

import os
from pathlib import Path

import pytest

from miner.changes import UnparsablePatchError
from miner.patches import parse_published_patches, split_sections
from taskdb.records import Candidate
from tests.helpers import TinyRepo
from tests.miner.conftest import FIX, MinerHarness

NUL = bytes(range(256)) * 4
CASES: dict[str, tuple[dict[str, str | bytes | None], dict[str, str | bytes | None]]] = {
    "a binary file": ({"pkg/logo.png": NUL}, {"pkg/logo.png": NUL[::-1], "tests/data.bin": NUL}),
    "a binary file that goes": ({"tests/data.bin": NUL}, {"tests/data.bin": None}),
    "a rename": ({"pkg/a.py": "x = 1\n" * 20}, {"pkg/a.py": None, "pkg/b.py": "x = 1\n" * 20 + "y = 2\n"}),
    "a rename into the tests": ({"pkg/u.py": "x = 1\n" * 20}, {"pkg/u.py": None, "tests/u.py": "x = 1\n" * 20}),
    "a rename out of the tests": (
        {"tests/util.py": "x = 1\n" * 20},
        {"tests/util.py": None, "pkg/util.py": "x = 1\n" * 20 + "y = 1\n"},
    ),
    "a Latin-1 file renamed into the tests": (
        {"pkg/l.py": b"# caf\xe9\n" * 20},
        {"pkg/l.py": None, "tests/l.py": b"# caf\xe9\n" * 20},
    ),
    "CRLF": ({"pkg/c.py": b"a = 1\r\nb = 2\r\n"}, {"pkg/c.py": b"a = 1\r\nb = 3\r\n", "tests/c.txt": b"x\r\ny\n"}),
    "CRLF that becomes LF": ({"pkg/crlf.py": b"a = 1\r\nb = 2\r\n"}, {"pkg/crlf.py": b"a = 1\nb = 2\n"}),
    "no newline at the end": ({"pkg/n.py": "a = 1"}, {"pkg/n.py": "a = 2", "tests/n.txt": "x"}),
    "a newline at the end that goes": ({"pkg/n.py": "a = 1\n"}, {"pkg/n.py": "a = 1"}),
    "Latin-1": ({"pkg/l.py": b"# caf\xe9\n"}, {"pkg/l.py": b"# th\xe9\n", "tests/l.txt": b"\xff\xfe\n"}),
    "Latin-1 that becomes UTF-8": ({"pkg/l.py": b"# caf\xe9\n"}, {"pkg/l.py": "# café\n"}),
    "separators that are no line ends": (
        {"pkg/s.py": "a\u2028b\x85c\x0cd\x0be\x1cf\n"},
        {"pkg/s.py": "a\u2028b\x85c\x0cd\n\x0c\ne\x1e\n"},
    ),
    "lone carriage returns": ({"pkg/r.py": b"a\rb\rc\n"}, {"pkg/r.py": b"a\rB\rc\n"}),
    "a huge line": ({"pkg/h.py": "x = '" + "a" * 300_000 + "'\n"}, {"pkg/h.py": "x = '" + "b" * 300_000 + "'\n"}),
    "lines that look like headers": (
        {"pkg/d.py": "-- a/pkg/d.py\n++ x\nsame\n"},
        {"pkg/d.py": "++ b/x\n-- y\nsame\n@@ -1 +1 @@\ndiff --git a/x b/x\n"},
    ),
    "names with spaces and quotes": (
        {},
        {'pkg/a "b" c.txt': "x\n", "tests/with space.txt": "y\n", "pkg/tab\there": "z\n"},
    ),
    "names with the separator of a header": (
        {"pkg/x b/m.py": "a = 1\n", "pkg/x b/g.py": "g = 1\n", "pkg/x b/d.bin": NUL, "x b/r.py": "x = 1\n" * 20},
        {
            "pkg/x b/m.py": "a = 2\n",
            "pkg/x b/g.py": None,
            "pkg/x b/d.bin": NUL[::-1],
            "x b/r.py": None,
            "x b/to b/x": "x = 1\n" * 20,
            "tests/x b/größe b/n.txt": "1\n",
            "x b/empty.txt": "",
        },
    ),
    "names in UTF-8": ({"tests/größe.txt": "1\n"}, {"tests/größe.txt": "2\n", "pkg/naïve.py": "x = 1\n"}),
    "an empty file": ({"pkg/gone.py": ""}, {"pkg/gone.py": None, "pkg/py.typed": "", "tests/__init__.py": ""}),
    "a file that becomes a folder": ({"pkg/thing": "x\n"}, {"pkg/thing": None, "pkg/thing/inner.py": "x = 1\n"}),
    "trailing blanks": ({"pkg/w.py": "a \n\n\n"}, {"pkg/w.py": "a\t \n \n\n\n\n"}),
}


def make(tiny: TinyRepo) -> tuple[str, str]:
    return tiny.git("rev-parse", "HEAD^"), tiny.git("rev-parse", "HEAD")


def assert_round_trip(tiny: TinyRepo, harness: MinerHarness, folder: Path) -> tuple[str, str]:
    """Check that the newest change is a candidate whose patches give the merged tree with plain git."""
    newest = harness.mine(f"git:{tiny.path}", limit=1)[0]
    assert isinstance(newest.result, Candidate), newest.result
    gold, test = harness.read_patches(newest)
    base, head = make(tiny)
    for side in (gold, test):
        side.encode()
    for patches in ((test, gold), (gold, test)):
        env = {"GIT_INDEX_FILE": str(folder / "index")}
        tiny.git("read-tree", base, env=env)
        for n, patch in enumerate(patches):
            (folder / f"{n}.patch").write_bytes(patch.encode())
            tiny.git("apply", "--cached", "--whitespace=nowarn", str(folder / f"{n}.patch"), env=env)
        assert tiny.git("write-tree", env=env) == tiny.git("rev-parse", f"{head}^{{tree}}")
    return gold, test


@pytest.mark.parametrize("case", CASES)
def test_every_byte_survives(case: str, tiny: TinyRepo, harness: MinerHarness, tmp_path: Path) -> None:
    before, after = CASES[case]
    tiny.commit("Prepare the files", before)
    tiny.minute += 1
    for path in [name for name, content in after.items() if content is None]:
        tiny.git("rm", "-q", "--cached", path)
        (tiny.path / path).unlink()
    tiny.commit("Change them as the case says", {k: v for k, v in after.items() if v is not None} | FIX)
    assert_round_trip(tiny, harness, tmp_path)


def test_a_rename_between_the_patches_is_a_deletion_and_an_addition(
    tiny: TinyRepo, harness: MinerHarness, tmp_path: Path
) -> None:
    tiny.commit("Prepare the files", {"pkg/util.py": "x = 1\n" * 20})
    tiny.commit("Move it into the tests", {"pkg/util.py": None, "tests/util.py": "x = 1\n" * 20} | FIX)
    gold, test = assert_round_trip(tiny, harness, tmp_path)
    assert "deleted file mode" in gold
    assert "new file mode" in test
    assert "tests/" not in gold
    assert "pkg/" not in test


def test_modes_and_links_survive(tiny: TinyRepo, harness: MinerHarness, tmp_path: Path) -> None:
    tiny.commit("Prepare the files", {"run.sh": "#!/bin/sh\n", "pkg/data": "x\n"})
    (tiny.path / "run.sh").chmod(0o755)
    (tiny.path / "tests" / "link").symlink_to("../pkg/core.py")
    (tiny.path / "pkg" / "data").unlink()
    (tiny.path / "pkg" / "data").symlink_to("core.py")
    tiny.commit("Change modes and make links", FIX)
    gold, test = assert_round_trip(tiny, harness, tmp_path)
    assert "new mode 100755" in gold
    assert "new file mode 120000" in test


def test_a_name_that_is_not_utf8_survives(tiny: TinyRepo, harness: MinerHarness, tmp_path: Path) -> None:
    with open(os.fsencode(tiny.path / "tests") + b"/caf\xe9.txt", "wb") as file:  # noqa: PTH123 - a name in bytes
        file.write(b"x\n")
    tiny.commit("Add a file with an old name", FIX)
    assert_round_trip(tiny, harness, tmp_path)
    candidate = harness.mine(f"git:{tiny.path}")[0].result
    assert isinstance(candidate, Candidate)
    assert "tests/caf\\xe9.txt" in candidate.test_files


def test_test_files_that_are_deleted_are_not_among_the_test_files(tiny: TinyRepo, harness: MinerHarness) -> None:
    tiny.commit("Prepare the files", {"tests/test_old.py": "x = 1\n"})
    tiny.commit("Replace the old test file", {"tests/test_old.py": None} | FIX)
    candidate = harness.mine(f"git:{tiny.path}")[0].result
    assert isinstance(candidate, Candidate)
    assert candidate.test_files == ("tests/test_core.py",)


def test_sections_name_both_sides() -> None:
    diff = (
        b"diff --git a/old name.py b/new.py\nsimilarity index 90%\nrename from old name.py\nrename to new.py\n"
        b'diff --git "a/caf\\303\\251" "b/caf\\303\\251"\nold mode 100644\nnew mode 100755\n'
        b"diff --git a/x b/y b/x b/y\nnew file mode 100644\nindex 000..e69\n"
    )
    assert [(s.old, s.new) for s in split_sections(diff)] == [
        ("old name.py", "new.py"),
        ("café", "café"),
        (None, "x b/y"),
    ]


@pytest.mark.parametrize("text", ["no patch at all\n", "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,3 +1 @@\n-a\n"])
def test_what_is_no_patch_is_not_taken_for_one(text: str) -> None:
    with pytest.raises(UnparsablePatchError):
        parse_published_patches(None, "0" * 40, text, "")
