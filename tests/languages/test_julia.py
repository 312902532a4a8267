"""Julia: metadata files, versions, test files, and packages of registries that are out of reach."""

from __future__ import annotations

import subprocess
from datetime import date
from pathlib import Path

import pytest

from languages.draft import NoPlanError, PlanDraft, PlanningContext
from languages.julia import JULIA
from languages.julia.project import convert_range
from languages.paths import is_protected, is_source
from languages.scripting.versions import parse_constraint
from tests.languages.trees import build_tree

JULIA_VERSIONS = tuple(release.version for release in JULIA.releases)
PROJECT = """name = "Kettle"
uuid = "6f5f3d3c-53a7-4c52-8a3f-0e0f2b6f7a11"

[deps]
Cup = "0b6f3a52-9d2c-4c1e-bb1f-2f2a64a1c7d9"
Dates = "ade2ca70-3891-5945-98fb-dc099432e06a"
JSON = "682c06a0-de6a-54ab-a142-c8b1cf79cde6"
TOML = "fa267f1f-6049-4f14-aa54-33bafae1ed76"

[weakdeps]
Plots = "91a5bcdd-55d7-5caf-9e0b-520d859cae80"

[compat]
JSON = "0.20, 0.21"
julia = "1.5"

[extras]
Aqua = "4c88cf16-eb10-579e-8560-4a9242c79595"
Documenter = "e30172f5-a6a5-5a46-863b-614d45cd2de4"
Test = "8dfed614-e22c-5e08-85e1-65c5234f0b40"

[targets]
test = ["Aqua", "Test"]
"""
CUP = """name = "Cup"
uuid = "0b6f3a52-9d2c-4c1e-bb1f-2f2a64a1c7d9"

[deps]
Rope = "1276af07-990d-54b4-ab0e-23690620f79a"

[extras]
Unused = "1276af07-990d-54b4-ab0e-23690620f79b"

[targets]
test = ["Unused"]
"""
PACKAGE = {
    "Project.toml": PROJECT,
    "lib/Cup/Project.toml": CUP,
    "lib/Cup/deps/build.jl": "",
    "src/Kettle.jl": "",
    "test/Project.toml": '[deps]\nSpoon = "3276af07-990d-54b4-ab0e-23690620f79a"\n',
    "test/runtests.jl": "using Test\n@test true\n",
}


def build_context(*changed_paths: str, versions: tuple[str, ...] = (), day: date = date(2024, 6, 1)) -> PlanningContext:
    return PlanningContext(list_available=lambda: versions, day=day, changed_paths=changed_paths)


def draft_julia(tmp_path: Path, files: dict[str, str], *changed_paths: str) -> PlanDraft:
    return JULIA.create_draft(build_tree(tmp_path, files), build_context(*changed_paths, versions=JULIA_VERSIONS))


def test_packages_of_julia_are_those_of_the_project_its_tests_and_local_packages(tmp_path: Path) -> None:
    draft = draft_julia(tmp_path, PACKAGE)
    assert [
        (d.source.text.partition(" [")[0], d.source.path, d.source.line, d.role.value) for d in draft.dependencies
    ] == [
        ("JSON 0.20, 0.21", "Project.toml", 7, "runtime"),
        ("TOML", "Project.toml", 8, "runtime"),
        ("Aqua", "Project.toml", 18, "test"),
        ("Spoon", "test/Project.toml", 2, "test"),
        ("Rope", "lib/Cup/Project.toml", 5, "runtime"),
    ]
    assert dict(draft.env)["JULIA_LOAD_PATH"] == "@stdlib:/opt/julia/env:/testbed:/testbed/lib/Cup"
    plan = JULIA.render_plan(draft)
    assert """'JSON = "682c06a0-de6a-54ab-a142-c8b1cf79cde6"'""" in plan.dependency_steps[0]
    assert """'[compat]' 'JSON = "0.20, 0.21"' >""" in plan.dependency_steps[0]
    assert "TOML = " not in plan.dependency_steps[0]
    assert "--before=2024-06-02T00:00:00Z" in plan.dependency_steps[0]
    assert plan.source_steps[0] == "(cd /testbed/lib/Cup/deps && julia --startup-file=no build.jl)"
    old = JULIA.create_draft(build_tree(tmp_path / "old", PACKAGE), build_context(versions=("1.5",)))
    assert "'TOML = " in JULIA.render_plan(old).dependency_steps[0]


def test_a_package_of_the_standard_library_alone_needs_no_registry(tmp_path: Path) -> None:
    project = 'name = "Kettle"\nuuid = "6f5f3d3c-53a7-4c52-8a3f-0e0f2b6f7a11"\n[deps]\nDates = "ade2ca70"\n'
    files = {"Project.toml": project, "Manifest.toml": "", "test/runtests.jl": "@test 1\n"}
    plan = JULIA.render_plan(draft_julia(tmp_path, files))
    assert (plan.dependency_steps, plan.manifests) == ((), ())
    assert "pin" not in {evidence.choice for evidence in plan.evidence}


def test_a_manifest_pins_packages_and_the_version_of_julia(tmp_path: Path) -> None:
    draft = draft_julia(tmp_path, {**PACKAGE, "Manifest.toml": '# made by Julia\njulia_version = "1.8.5"\n'})
    assert (draft.versions[0].value, draft.versions[0].path, draft.versions[0].line) == ("1.8", "Manifest.toml", 2)
    assert [path for path, _ in draft.manifests] == ["Manifest.toml"]
    assert [(evidence.value, evidence.path) for evidence in draft.evidence if evidence.choice == "pin"] == [
        ("lock file", "Manifest.toml")
    ]
    step = JULIA.render_plan(draft).dependency_steps[0]
    assert "cp /testbed/Manifest.toml /opt/julia/env/Manifest.toml && git clone" in step


def test_a_package_without_identity_is_added_by_name(tmp_path: Path) -> None:
    draft = draft_julia(tmp_path, PACKAGE)
    (first, *_) = draft.dependencies
    named = first.__class__(role=first.role, source=first.source.__class__(text="Example", path="(skill)"))
    plan = JULIA.render_plan(draft.__class__(**{**vars(draft), "dependencies": (named,)}))
    assert """using Pkg; Pkg.add("Example"); Pkg.resolve()""" in plan.dependency_steps[0]


@pytest.mark.parametrize(
    ("workflow", "expected"),
    [
        (
            "      - uses: julia-actions/setup-julia@v2\n        with:\n          version: ${{ matrix.version }}\n",
            "1.7",
        ),
        ("      - uses: actions/setup-node@v2\n        with:\n          version: 1.6\n", "1.9"),
    ],
)
def test_versions_of_julia_are_those_of_its_set_up(workflow: str, expected: str, tmp_path: Path) -> None:
    text = (
        "on: push\njobs:\n  test:\n    strategy:\n      matrix:\n        version: ['1.0', '1.7', '1', nightly]\n"
        f"    steps:\n{workflow}"
    )
    draft = draft_julia(tmp_path, {**PACKAGE, ".github/workflows/ci.yml": text})
    assert draft.versions[0].value == expected


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ("1", "1.5 1.6 1.9 1.10"),
        ("1.6", "1.6 1.9 1.10"),
        ("~1.6.3", "1.6"),
        ("=1.9.2", "1.9"),
        ("~1.5, 1.9", "1.5 1.9 1.10"),
        ("1.6 - 1.9", "1.6 1.9"),
        ("1.9 - 1", "1.9 1.10"),
        ("≥1.9", "1.9 1.10"),
        ("0.7, 1.10", "1.10"),
        ("0.7", ""),
    ],
)
def test_ranges_of_compat_are_those_of_pkg(text: str, allowed: str) -> None:
    allows = parse_constraint(convert_range(text))
    assert " ".join(version for version in ("1.5", "1.6", "1.9", "1.10") if allows(version)) == allowed


def test_test_files_of_julia_are_those_that_runtests_includes(tmp_path: Path) -> None:
    files = {
        "Project.toml": PROJECT,
        "test/runtests.jl": '@testset "all" begin\n    include("a.jl")\n    # include("out.jl")\n'
        '    for name in ["b", "sub/c"]\n        include("$name.jl")\n    end\n'
        '    for name in ("e", :f)\n        include(joinpath(@__DIR__, "test_$(name).jl"))\n    end\n'
        '    include(joinpath("deep", "all.jl"))\nend\n',
        "test/a.jl": '@test_throws ErrorException f()\ninclude("helpers.jl")\n',
        "test/helpers.jl": "check(x) = @test x\n\nfunction check(x, y)\n    if x\n        @test y\n    end\nend\n"
        "macro again(x)\n    :(@test $x)\nend\n",
        "test/out.jl": "@test true\n",
        "test/b.jl": "@test true\n",
        **dict.fromkeys(("test/test_e.jl", "test/test_f.jl", "test/test_g.jl"), "@test true\n"),
        "test/sub/c.jl": "#=\n@test false\n=#\n@testset begin\n    @test true\nend\n",
        "test/sub/b2.jl": "@test true\n",
        "test/deep/all.jl": "for (root, _, files) in walkdir(@__DIR__)\nend\n",
        "test/deep/more/d.jl": "@test true\n",
    }
    tree = build_tree(tmp_path, files)
    plan = JULIA.render_plan(JULIA.create_draft(tree, build_context(versions=JULIA_VERSIONS)))
    expected = ["test/a.jl", "test/b.jl", "test/deep/more/d.jl", "test/sub/c.jl", "test/test_e.jl", "test/test_f.jl"]
    assert JULIA.find_test_files(tree, plan) == JULIA.find_test_files(tree) == expected


def test_tests_in_functions_alone_are_tests(tmp_path: Path) -> None:
    main = "using Test\nfunction run()\n    @testset begin\n        @test true\n    end\nend\nrun()\n"
    tree = build_tree(tmp_path, {"Project.toml": PROJECT, "test/runtests.jl": main})
    assert JULIA.find_test_files(tree) == ["test/runtests.jl"]


def test_the_package_of_julia_is_the_one_of_the_change(tmp_path: Path) -> None:
    files = {**PACKAGE, "lib/Cup/test/runtests.jl": "@test 1 == 1\n", "lib/Cup/src/Cup.jl": ""}
    draft = draft_julia(tmp_path, files, "lib/Cup/src/Cup.jl", "lib/Cup/test/runtests.jl", "README.md")
    assert (draft.name, draft.test.folder, draft.test.paths) == ("Cup", "lib/Cup", ("lib/Cup/test",))
    draft = draft_julia(tmp_path / "both", files, "lib/Cup/src/Cup.jl", "src/Kettle.jl")
    assert (draft.name, draft.test.folder) == ("Kettle", "")


def test_a_registry_out_of_reach_is_the_reason(tmp_path: Path) -> None:
    plan = JULIA.render_plan(JULIA.create_draft(build_tree(tmp_path, PACKAGE), build_context(versions=JULIA_VERSIONS)))
    assert "General is out of reach from here, Debian has no" in plan.dependency_steps[0]
    for step in (*plan.dependency_steps, *plan.source_steps):
        subprocess.run(["bash", "-n", "-c", step], check=True)


def test_a_tree_without_tests_is_not_a_project(tmp_path: Path) -> None:
    files = {"Project.toml": PROJECT, "test/runtests.jl": "using Kettle\n"}
    with pytest.raises(NoPlanError, match="no file"):
        JULIA.create_draft(build_tree(tmp_path, files), build_context(versions=JULIA_VERSIONS))


@pytest.mark.parametrize(
    "path",
    [
        "test/runtests.jl",
        "lib/Cup/test/sub/a.jl",
        "test/Project.toml",
    ],
)
def test_tests_and_their_configuration_are_protected(path: str) -> None:
    assert is_protected(path)
    assert not is_source(path)


@pytest.mark.parametrize("path", ["src/test.jl", "src/Test/a.jl"])
def test_sources_of_julia_are_no_tests(path: str) -> None:
    assert is_source(path)
