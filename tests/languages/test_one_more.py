"""One more language is one module: the one that CONTRIBUTING.md walks through, taken from there."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import languages
from backends.git import Repository
from builders.build import build
from languages import paths, registry
from languages.base import Language
from taskdb.lineage import Lineage
from taskdb.records import Environment, Verification
from tests import records
from tests.boxes import make_services
from tests.helpers import TinyRepo
from verifiers.verify import verify

ROOT = Path(__file__).parents[2]
TEST = (
    '. ./greet.sh\necho 1..{n}\n[ "$(greet Ada)" = "Hello Ada" ] && echo "ok 1 - a name" || echo "not ok 1 - a name"\n'
)
MORE = '[ "$(greet)" = "Hello you" ] && echo "ok 2 - nobody" || echo "not ok 2 - nobody"\n'
BEFORE = {"greet.sh": 'greet() { echo "Hello $1"; }\n', "t/greet.t.sh": TEST.format(n=1)}
AFTER = {"greet.sh": 'greet() { echo "Hello ${1:-you}"; }\n', "t/greet.t.sh": TEST.format(n=2) + MORE}


def forget() -> None:
    for module in (registry, paths):
        for function in vars(module).values():
            getattr(function, "cache_clear", lambda: None)()


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The module of CONTRIBUTING.md beside the others."""
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "shell.py").write_text(code)
    monkeypatch.setattr(languages, "__path__", [*languages.__path__, str(tmp_path / "more")])
    forget()
    yield
    sys.modules.pop("languages.shell", None)
    monkeypatch.undo()
    forget()


@pytest.mark.usefixtures("shell")
def test_files_of_one_more_language_are_told_apart_everywhere() -> None:
    assert registry.language_of(["a.sh", "b.sh", "c.py"]) == "shell"
    assert paths.is_test_file("t/greet.t.sh")
    assert paths.is_protected("t/greet.t.sh")
    assert paths.is_source("greet.sh")
    assert not paths.is_source("t/greet.t.sh")


@pytest.mark.docker
@pytest.mark.usefixtures("shell")
def test_a_change_in_one_more_language_is_built_and_verified(tmp_path: Path) -> None:
    repo = TinyRepo(tmp_path / "repo")
    base, merge = repo.commit("Start", BEFORE), repo.commit("Greet whoever there is", AFTER)
    services = make_services(tmp_path)
    patches = [
        services.artifacts.put(Repository(repo.path).git("diff-tree", "-p", "--full-index", base, merge, "--", path))
        for path in ("greet.sh", "t/greet.t.sh")
    ]
    candidate = records.candidate(
        records.pull_request(source=f"git:{repo.path}", base_commit=base, merge_commit=merge), language="shell",
        gold_patch=patches[0], test_patch=patches[1], gold_files=("greet.sh",), test_files=("t/greet.t.sh",),
    )  # fmt: skip
    environment = build(candidate, services)
    assert isinstance(environment, Environment), environment
    verification = verify(Lineage(candidate=candidate, environment=environment), services)
    assert isinstance(verification, Verification), verification
    assert [test for test, _ in verification.FAIL_TO_PASS] == ["t/greet.t.sh::nobody"]
    assert verification.PASS_TO_PASS == ("t/greet.t.sh::a name",)


@pytest.mark.parametrize("name", sorted(registry.all_languages()))
def test_a_language_has_all_names_and_a_row_in_the_docs(name: str) -> None:
    known = registry.language(name)
    wanted = (*Language.__annotations__, "draft", "render", "defining_files")
    missing = [one for one in wanted if not hasattr(known, one)]
    assert not missing
    assert f"| {known.TITLE} |" in (ROOT / "docs" / "languages.md").read_text(encoding="utf-8")


def test_no_two_languages_share_a_name_of_a_file_or_mean_different_things_by_a_framework() -> None:
    known = registry.all_languages().values()
    ends = [end for one in known for end in one.SUFFIXES]
    assert sorted(ends) == sorted(set(ends))
    for one in known:
        assert all(registry.frameworks()[framework.name] == framework for framework in one.FRAMEWORKS)
        assert one.DEFAULT in {release.version for release in one.RELEASES}
