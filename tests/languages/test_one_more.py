"""A new language is one module and one line of the registry: the module in CONTRIBUTING.md, taken from that page."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from backends.git import GitRepository
from builders.build import build
from derivers.review.locations import list_patched_sources
from evaluation.controls.blocks import find_blocks, parse_test_file
from evaluation.controls.sites import list_sites
from languages import paths, registry
from languages.registry import LANGUAGES
from taskdb.records import Environment, Verification
from taskdb.records.lineage import Lineage
from tests import records
from tests.containers import make_services
from tests.helpers import TinyRepo
from tests.verifiers.judge.test_rules import make_case, make_patch
from verifiers.judge.assess import assess
from verifiers.judge.completion import complete_by_rules
from verifiers.verify import verify

ROOT = Path(__file__).parents[2]
TEST = (
    '. ./greet.sh\necho 1..{n}\n[ "$(greet Ada)" = "Hello Ada" ] && echo "ok 1 - a name" || echo "not ok 1 - a name"\n'
)
SECOND_TEST = '[ "$(greet)" = "Hello you" ] && echo "ok 2 - nobody" || echo "not ok 2 - nobody"\n'
BEFORE = {"greet.sh": 'greet() { echo "Hello $1"; }\n', "t/greet.t.sh": TEST.format(n=1)}
AFTER = {"greet.sh": 'greet() { echo "Hello ${1:-you}"; }\n', "t/greet.t.sh": TEST.format(n=2) + SECOND_TEST}


def clear_caches() -> None:
    for module in (registry, paths):
        for function in vars(module).values():
            getattr(function, "cache_clear", lambda: None)()


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The language in CONTRIBUTING.md, registered."""
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), re.DOTALL)
    file = tmp_path / "shell.py"
    file.write_text(code)
    spec = importlib.util.spec_from_file_location("languages.shell", file)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "languages.shell", module)
    spec.loader.exec_module(module)
    monkeypatch.setitem(LANGUAGES, "shell", module.SHELL)
    clear_caches()
    yield
    monkeypatch.undo()
    clear_caches()


@pytest.mark.usefixtures("shell")
def test_files_of_a_new_language_are_classified_everywhere() -> None:
    assert registry.detect_language(["a.sh", "b.sh", "c.py"]) == "shell"
    assert paths.is_test_file("t/greet.t.sh")
    assert paths.is_protected("t/greet.t.sh")
    assert paths.is_source("greet.sh")
    assert not paths.is_source("t/greet.t.sh")


@pytest.mark.usefixtures("shell")
def test_tests_of_a_new_language_are_sabotaged() -> None:
    file = parse_test_file("t/greet.t.sh", BEFORE["t/greet.t.sh"].encode())
    assert file is not None
    (block,) = find_blocks(file)
    sites = list_sites(file, block, frozenset(), Random(1))
    places = [[file.source[start:end].decode() for start, end in site.spans] for site in sites]
    assert places[-1] == [" = "]
    assert sites[-1].texts == (" != ",)
    assert {site.literal for site in sites[:-1]} == {'"Hello Ada"'}, "titles of tests are no values"


@pytest.mark.usefixtures("shell")
@pytest.mark.parametrize(("call", "comparison"), [("grep -q", "contain"), ("egrep -q", "match the regular expression")])
def test_the_judge_reads_the_messages_that_tests_of_a_new_language_expect(call: str, comparison: str) -> None:
    text = "nobody of that .* is here" if call == "egrep -q" else "nobody of that name is here"
    case = make_case(
        gold=make_patch("greet.sh", "greet() {", f'+  echo "{text}" >&2'),
        tests=make_patch("t/greet.t.sh", f'+greet 2>&1 | {call} "{text}" && echo "ok 2 - nobody"'),
    )
    completion = complete_by_rules(case, assess(case))
    assert f"- A message must {comparison} `{text}`." in completion.addition.splitlines()


@pytest.mark.usefixtures("shell")
def test_a_review_places_faults_in_lines_of_a_new_language() -> None:
    old = ["#!/bin/sh", "# Greet.", ". ./words.sh", "greet() {", '  echo "Hello $1"', "}"]
    patch = make_patch("greet.sh", *[f"-{line}" for line in old[:5]], '+  echo "Hello ${1:-you}"', old[5])
    (source,) = list_patched_sources(patch)
    (location,) = source.find_locations("\n".join(old) + "\n")
    assert location.lines == (1, 4, 5), "neither the comment nor the file that is read"
    patch = make_patch("greet.sh", old[5], "+leave() {", '+  echo "Bye"', "+}")
    (source,) = list_patched_sources(patch)
    assert not source.find_locations("}\n"), "an added function is no fault of the old lines"


@pytest.mark.usefixtures("shell")
def test_a_language_has_a_timeout_of_its_own(tmp_path: Path) -> None:
    services = make_services(tmp_path, test_timeout=100)
    assert [services.test_limits(name).seconds for name in ("shell", "python", "")] == [300, 100, 100]


@pytest.mark.docker
@pytest.mark.usefixtures("shell")
def test_a_change_in_a_new_language_is_built_and_verified(tmp_path: Path) -> None:
    repo = TinyRepo(tmp_path / "repo")
    base, merge = repo.commit("Start", BEFORE), repo.commit("Greet without a name", AFTER)
    services = make_services(tmp_path, repeats=2)
    patches = [
        services.artifacts.put(
            GitRepository(repo.path).run_git("diff-tree", "-p", "--full-index", base, merge, "--", path)
        )
        for path in ("greet.sh", "t/greet.t.sh")
    ]
    candidate = records.make_candidate(
        records.make_pull_request(source=f"git:{repo.path}", base_commit=base, merge_commit=merge),
        language="shell",
        gold_patch=patches[0],
        test_patch=patches[1],
        gold_files=("greet.sh",),
        test_files=("t/greet.t.sh",),
    )
    environment = build(candidate, services)
    assert isinstance(environment, Environment), environment
    verification = verify(Lineage(candidate=candidate, environment=environment), services)
    assert isinstance(verification, Verification), verification
    assert [test for test, _ in verification.FAIL_TO_PASS] == ["t/greet.t.sh::nobody"]
    assert verification.PASS_TO_PASS == ("t/greet.t.sh::a name",)
    assert verification.controls == ("t/greet.t.sh::nobody",)


@pytest.mark.parametrize("name", sorted(LANGUAGES))
def test_a_language_is_registered_under_its_name_and_has_a_row_in_the_docs(name: str) -> None:
    language = registry.get_language(name)
    assert language.name == name
    assert f"| {language.title} |" in (ROOT / "docs/guide/mine/languages.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", sorted(LANGUAGES))
def test_languages_without_a_grammar_have_no_controls_in_the_docs(name: str) -> None:
    language = registry.get_language(name)
    page = (ROOT / "docs/guide/mine/languages.md").read_text(encoding="utf-8")
    row = page[page.index(f"| {language.title} |") :].partition("\n")[0]
    assert ("no controls" in row) == (not language.syntaxes)


def test_suffixes_and_framework_names_are_unique() -> None:
    suffixes = [suffix for language in LANGUAGES.values() for suffix in language.suffixes]
    assert sorted(suffixes) == sorted(set(suffixes))
    for language in LANGUAGES.values():
        assert all(registry.frameworks_by_name()[framework.name] == framework for framework in language.frameworks)
        assert language.default_version in {release.version for release in language.releases}
