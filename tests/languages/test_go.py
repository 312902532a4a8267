from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from languages import go
from languages.draft import Context, Draft, NoPlanError
from languages.go.sources import applies, defines_tests, imports
from tests.languages.trees import tree_of

TEST = 'package a\n\nimport "testing"\n\nfunc TestIt(t *testing.T) {}\n'
FOREIGN = 'package a\n\nimport (\n\t"fmt"\n\n\tx "github.com/some/where/x"\n)\n'


def drafted(tmp_path: Path, files: Mapping[str, str], day: str = "2025-06-15", *touched: str) -> Draft:
    versions = [release.version for release in go.RELEASES]
    context = Context(available=lambda: versions, day=date.fromisoformat(day), touched=touched)
    return go.draft(tree_of(tmp_path, files), context)


def test_without_word_on_the_version_the_newest_settled_one_of_the_day_is_taken(tmp_path: Path) -> None:
    made = drafted(tmp_path, {"go.mod": "module example.org/a\n\ngo 1.18\n", "a_test.go": TEST}, "2025-03-01")
    assert [one.value for one in made.versions] == ["1.23", "1.18"]  # 1.24 is 18 days old


def test_a_toolchain_line_is_what_the_module_is_built_with(tmp_path: Path) -> None:
    text = "module example.org/a\n\ngo 1.21.0\n\ntoolchain go1.22.4\n"
    made = drafted(tmp_path, {"go.mod": text, "a_test.go": TEST})
    assert (made.versions[0].value, made.versions[0].path, made.versions[0].line) == ("1.22", "go.mod", 5)


def test_a_version_below_what_go_mod_asks_for_is_never_taken(tmp_path: Path) -> None:
    ci = "jobs:\n  test:\n    steps:\n      - with: {go-version: '1.19'}\n      - run: go test ./...\n"
    files = {"go.mod": "module example.org/a\n\ngo 1.22\n", "a_test.go": TEST, ".github/workflows/a.yml": ci}
    assert "1.19" not in [one.value for one in drafted(tmp_path, files).versions]


def test_flags_are_those_that_the_version_knows(tmp_path: Path) -> None:
    made = drafted(tmp_path, {"go.mod": "module example.org/a\n\ngo 1.12\n", "a_test.go": TEST})
    by_version = {one.value: go.render(replace(made, versions=(one,))).env for one in made.versions}
    assert dict(by_version["1.24"])["GOFLAGS"] == "-mod=mod -buildvcs=false"
    assert dict(by_version["1.12"])["GOFLAGS"] == ""


def test_vendored_packages_need_no_download(tmp_path: Path) -> None:
    files = {"go.mod": "module example.org/a\n\ngo 1.22\n", "a_test.go": TEST, "a.go": FOREIGN}
    plan = go.render(drafted(tmp_path, files | {"vendor/modules.txt": "# github.com/some/where v1.0.0\n"}))
    assert (plan.dependency_steps, plan.manifests) == ((), ())
    assert dict(plan.env)["GOFLAGS"].startswith("-mod=vendor")


def test_a_tree_without_go_mod_is_refused_when_it_needs_packages_that_nothing_pins(tmp_path: Path) -> None:
    with pytest.raises(NoPlanError, match=r"nothing says which github\.com/some/where/x"):
        drafted(tmp_path, {"a.go": FOREIGN, "a_test.go": TEST})


def test_a_tree_without_go_mod_stands_below_gopath_where_its_files_call_it(tmp_path: Path) -> None:
    own = 'package a\n\nimport "testing"\nimport "github.com/old/one/deep"\n\nfunc TestIt(t *testing.T) { deep.It() }\n'
    plan = go.render(drafted(tmp_path, {"a_test.go": own, "deep/deep.go": "package deep\n\nfunc It() {}\n"}))
    assert dict(plan.env)["GO111MODULE"] == "off"
    assert "/opt/go/src/github.com/old/one" in plan.source_steps[0]


def test_of_several_modules_the_one_that_the_change_touches_is_tested(tmp_path: Path) -> None:
    mod = "module example.org/{}\n\ngo 1.22\n"
    files = {"go.mod": mod.format("a"), "a_test.go": TEST, "b/go.mod": mod.format("b"), "b/b_test.go": TEST}
    made = drafted(tmp_path, files, "2025-06-15", "b/b.go", "b/b_test.go", "README.md")
    assert made.test.folder == "b"
    assert go.defining_files(tree_of(tmp_path / "again", files), go.render(made)) == ["b/b_test.go"]


@pytest.mark.parametrize(
    ("path", "head", "taken"),
    [
        ("a_windows_test.go", "", False),
        ("a_linux_amd64.go", "", True),
        ("linux.go", "", True),
        ("a_arm64.go", "", False),
        ("a.go", "//go:build (linux || darwin) && !race\n", True),
        ("a.go", "//go:build integration\n", False),
        ("a.go", "//go:build checked\n", True),
        ("a.go", "//go:build go1.23\n", False),
        ("a.go", "// +build linux,checked darwin\n// +build !windows\n", True),
        ("a.go", "// +build ignore\n", False),
    ],
)
def test_constraints_say_whether_a_file_is_compiled(path: str, head: str, *, taken: bool) -> None:
    assert applies(path, f"{head}\npackage a\n", {"checked"}, 22) is taken


def test_functions_that_go_test_runs_define_tests() -> None:
    assert defines_tests(TEST)
    assert defines_tests("package a\n\nfunc ExampleIt() {\n\tfmt.Println(1)\n\t// Output: 1\n}\n")
    assert not defines_tests("package a\n\nfunc TestMain(m *testing.M) {}\n\nfunc BenchmarkIt(b *testing.B) {}\n")
    assert not defines_tests("package a\n\nfunc Testify() {}\n")


def test_imports_have_their_lines() -> None:
    assert [(one.text, one.line) for one in imports("a.go", FOREIGN)] == [("fmt", 4), ("github.com/some/where/x", 6)]
