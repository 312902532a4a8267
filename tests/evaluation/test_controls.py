"""Sabotaged tests fail for honest code and keep their names."""

from __future__ import annotations

from pathlib import Path

import pytest

from backends.git import GitRepository
from evaluation.controls.sabotage import make_control_patch, read_patched_files, sabotage_tests, strip_test_id
from tests.helpers import TinyRepo

HONEST = {"f": lambda x: x + 1, "g": lambda x: [x, "ü"], "table": {"a": 1}}


def call(source: bytes, name: str, **arguments: object) -> None:
    space: dict[str, object] = dict(HONEST)
    exec(compile(source, "t.py", "exec"), space)  # noqa: S102 - our own text
    target = space[name]
    assert callable(target)
    target(**arguments)


@pytest.mark.parametrize(
    ("body", "arguments"),
    [
        ("assert f(1) == 2", {}),
        ("assert 2 == f(1), 'why'", {}),
        ("assert g(1) == [1, 'ü']", {}),
        ("want = {'a': -1}\n    got = {'a': -1}\n    assert got == want", {}),
        ("assert f(x) == e", {"x": 1, "e": 2}),
        ("assert g(x) == e", {"x": 1, "e": [1, "ü"]}),
        ("assert table['a'] is table['a']", {}),
        ("f(1)", {}),
        ("'''doc'''\n    for n in range(3):\n        f(n)  # the end", {}),
        ("x = f(\n        1\n    )", {}),
    ],
)
def test_a_sabotaged_test_fails_where_the_original_passes(body: str, arguments: dict[str, object]) -> None:
    parameters = ", ".join(arguments)
    source = (
        f"import os\n\ndef test_it({parameters}):\n    {body}\n\n\ndef test_other():\n    assert f(1) == 2\n".encode()
    )
    call(source, "test_it", **arguments)
    sabotaged = sabotage_tests(source, {"test_it"})
    assert sabotaged is not None
    with pytest.raises(AssertionError):
        call(sabotaged, "test_it", **arguments)
    call(sabotaged, "test_other")
    raised = sabotage_tests(source, {"test_it"}, {"test_it"})
    assert raised is not None
    with pytest.raises(AssertionError):
        call(raised, "test_it", **arguments)


def test_classes_async_and_one_liners_are_found() -> None:
    source = b"\xef\xbb\xbfclass TestX:\r\n    async def test_a(self):\r\n        assert 1 == 1\r\n"
    source += b"    def test_b(self): pass\r\n"
    sabotaged = sabotage_tests(source, {"TestX::test_a", "TestX::test_b"})
    assert sabotaged is not None
    assert b"assert 1 == 2\r\n" in sabotaged
    assert b"def test_b(self): pass; assert 0 == 1\r\n" in sabotaged


@pytest.mark.parametrize("source", [b"print 'two'\n", b"def test_b(): pass\n", b"\0"])
def test_a_file_without_the_test_or_with_a_syntax_error_is_not_changed(source: bytes) -> None:
    assert sabotage_tests(source, {"test_a"}) is None


def test_file_and_parameters_are_stripped_from_an_id() -> None:
    assert strip_test_id("tests/test_a.py::TestX::test_y[3-a::b]") == "TestX::test_y"


def test_the_control_patch_applies_to_the_base_and_does_not_change_the_repository(tmp_path: Path) -> None:
    repo = TinyRepo(tmp_path / "repo")
    base = repo.commit("Start", {"tests/test_a.py": "def test_a(): pass\n"})
    repo.commit("More", {"tests/test_a.py": "def test_a():\n    assert 1 == 1\n", "tests/data.bin": b"\0\1\xff"})
    history = GitRepository(repo.path)
    patch = history.run_git("diff-tree", "-p", "--binary", "--full-index", base, "HEAD")
    before = repo.git("count-objects", "-v")
    files = read_patched_files(history, base, patch, ["tests/test_a.py", "tests/gone.py"])
    assert list(files) == ["tests/test_a.py"]
    changed = sabotage_tests(files["tests/test_a.py"], {"test_a"})
    assert changed is not None
    sabotaged = make_control_patch(history, base, patch, {"tests/test_a.py": changed})
    assert repo.git("count-objects", "-v") == before
    repo.git("checkout", "-q", base)
    (tmp_path / "control.patch").write_bytes(sabotaged)
    repo.git("apply", str(tmp_path / "control.patch"))
    assert (repo.path / "tests/test_a.py").read_bytes() == changed
    assert (repo.path / "tests/data.bin").read_bytes() == b"\0\1\xff"
