from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from builders.layers import can_install_offline
from languages.draft import NoPlanError, PlanDraft, PlanningContext
from languages.go import GO
from languages.go.sources import defines_tests, is_compiled, parse_imports
from tests.languages.trees import build_tree

TEST = 'package a\n\nimport "testing"\n\nfunc TestIt(t *testing.T) {}\n'
FOREIGN = 'package a\n\nimport (\n\t"fmt"\n\n\tx "github.com/some/where/x"\n)\n'


def build_draft(tmp_path: Path, files: Mapping[str, str], day: str = "2025-06-15", *changed_paths: str) -> PlanDraft:
    versions = [release.version for release in GO.releases]
    context = PlanningContext(list_available=lambda: versions, day=date.fromisoformat(day), changed_paths=changed_paths)
    return GO.create_draft(build_tree(tmp_path, files), context)


def test_without_a_declared_version_the_newest_mature_version_at_the_date_is_selected(tmp_path: Path) -> None:
    draft = build_draft(tmp_path, {"go.mod": "module example.org/a\n\ngo 1.18\n", "a_test.go": TEST}, "2025-03-01")
    assert [version.value for version in draft.versions] == ["1.23", "1.18"]  # 1.24 was released 18 days before


def test_a_toolchain_directive_selects_the_go_version(tmp_path: Path) -> None:
    text = "module example.org/a\n\ngo 1.21.0\n\ntoolchain go1.22.4\n"
    draft = build_draft(tmp_path, {"go.mod": text, "a_test.go": TEST})
    assert (draft.versions[0].value, draft.versions[0].path, draft.versions[0].line) == ("1.22", "go.mod", 5)


def test_a_version_below_the_minimum_in_go_mod_is_never_selected(tmp_path: Path) -> None:
    ci = "jobs:\n  test:\n    steps:\n      - with: {go-version: '1.19'}\n      - run: go test ./...\n"
    files = {"go.mod": "module example.org/a\n\ngo 1.22\n", "a_test.go": TEST, ".github/workflows/a.yml": ci}
    assert "1.19" not in [version.value for version in build_draft(tmp_path, files).versions]


def test_only_flags_that_the_go_version_supports_are_set(tmp_path: Path) -> None:
    draft = build_draft(tmp_path, {"go.mod": "module example.org/a\n\ngo 1.12\n", "a_test.go": TEST})
    by_version = {version.value: GO.render_plan(replace(draft, versions=(version,))).env for version in draft.versions}
    assert dict(by_version["1.24"])["GOFLAGS"] == "-mod=mod -buildvcs=false"
    assert dict(by_version["1.12"])["GOFLAGS"] == ""


def test_vendored_packages_need_no_download(tmp_path: Path) -> None:
    files = {"go.mod": "module example.org/a\n\ngo 1.22\n", "a_test.go": TEST, "a.go": FOREIGN}
    plan = GO.render_plan(build_draft(tmp_path, files | {"vendor/modules.txt": "# github.com/some/where v1.0.0\n"}))
    assert (plan.dependency_steps, plan.manifests) == ((), ())
    assert dict(plan.env)["GOFLAGS"].startswith("-mod=vendor")


def test_the_tree_is_compiled_without_running_its_tests(tmp_path: Path) -> None:
    plan = GO.render_plan(build_draft(tmp_path, {"go.mod": "module example.org/a\n\ngo 1.22\n", "a_test.go": TEST}))
    (step,) = plan.source_steps
    assert " ".join(plan.test.argv) + " -exec true -count=1 ./... " in step
    assert can_install_offline(plan)


def test_a_tree_without_go_mod_is_rejected_if_its_external_packages_are_not_pinned(tmp_path: Path) -> None:
    with pytest.raises(NoPlanError, match=r"the version of github\.com/some/where/x is not pinned"):
        build_draft(tmp_path, {"a.go": FOREIGN, "a_test.go": TEST})


def test_a_tree_without_go_mod_is_placed_below_gopath_at_its_import_path(tmp_path: Path) -> None:
    own = 'package a\n\nimport "testing"\nimport "github.com/old/one/deep"\n\nfunc TestIt(t *testing.T) { deep.It() }\n'
    plan = GO.render_plan(build_draft(tmp_path, {"a_test.go": own, "deep/deep.go": "package deep\n\nfunc It() {}\n"}))
    assert dict(plan.env)["GO111MODULE"] == "off"
    assert "/opt/go/src/github.com/old/one" in plan.source_steps[0]


def test_of_several_modules_the_changed_one_is_tested(tmp_path: Path) -> None:
    mod = "module example.org/{}\n\ngo 1.22\n"
    files = {"go.mod": mod.format("a"), "a_test.go": TEST, "b/go.mod": mod.format("b"), "b/b_test.go": TEST}
    draft = build_draft(tmp_path, files, "2025-06-15", "b/b.go", "b/b_test.go", "README.md")
    assert draft.test.folder == "b"
    assert GO.find_test_files(build_tree(tmp_path / "again", files), GO.render_plan(draft)) == ["b/b_test.go"]


@pytest.mark.parametrize(
    ("path", "head", "is_included"),
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
def test_build_constraints_decide_whether_a_file_is_compiled(path: str, head: str, *, is_included: bool) -> None:
    assert is_compiled(path, f"{head}\npackage a\n", {"checked"}, 22) is is_included


def test_functions_that_go_test_runs_define_tests() -> None:
    assert defines_tests(TEST)
    assert defines_tests("package a\n\nfunc ExampleIt() {\n\tfmt.Println(1)\n\t// Output: 1\n}\n")
    assert not defines_tests("package a\n\nfunc TestMain(m *testing.M) {}\n\nfunc BenchmarkIt(b *testing.B) {}\n")
    assert not defines_tests("package a\n\nfunc Testify() {}\n")


def test_imports_have_their_lines() -> None:
    assert [(source_import.text, source_import.line) for source_import in parse_imports("a.go", FOREIGN)] == [
        ("fmt", 4),
        ("github.com/some/where/x", 6),
    ]
