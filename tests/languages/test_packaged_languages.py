"""Lua, R, Haskell and Scala: metadata files, test files, and packages of Debian instead of the registries."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from languages.base import Language
from languages.draft import NoPlanError, PlanDraft, PlanningContext
from languages.haskell import HASKELL
from languages.lua import LUA, rocks
from languages.lua.plan import MAKE
from languages.paths import is_config, is_protected, is_source
from languages.r import R
from languages.r.description import list_debian_names
from languages.registry import get_language
from languages.scala import SCALA
from languages.scala.plan import HOME
from languages.scripting.debian import DEBIAN_PACKAGES
from tests.languages.trees import build_tree

ROCKSPEC = """rockspec_format = "3.0"
package = "kettle"
source = { url = "https://example.org/kettle.lua", tag = "rocks/kettle.lua" }
dependencies = {
  "lua >= 5.2, < 5.4",  -- "commented"
  "penlight == 1.13",
  "lpeg",
}
build = { type = "builtin", modules = {
  ["kettle.core"] = "source/kettle/core.lua", kettle = "source/kettle/init.lua"
} }
"""
LUA_VERSIONS = ("5.1", "5.2", "5.3", "5.4")


def build_context(*changed_paths: str, versions: tuple[str, ...] = ()) -> PlanningContext:
    return PlanningContext(list_available=lambda: versions, day=date(2024, 6, 1), changed_paths=changed_paths)


def apply_switch(draft: PlanDraft) -> str:
    """Return the dependency steps of the draft with Debian packages."""
    plan = get_language(draft.language).render_plan(replace(draft, switches=draft.switches | {DEBIAN_PACKAGES}))
    return "\n".join(plan.dependency_steps)


def test_rocks_are_read_from_rockspec_ci_and_loaded_modules(tmp_path: Path) -> None:
    files = {
        "kettle-1.0-1.rockspec": "",
        "kettle-dev-1.rockspec": ROCKSPEC,
        "source/kettle/core.lua": "",
        "source/inspect.lua": "return require('inspect')\n",
        "source/kettle/init.lua": "local lfs = require 'lfs'\nlocal own = require('kettle.core')\n",
        "spec/kettle_spec.lua": "describe('a', function() end)\n",
        ".github/workflows/test.yml": "on: push\njobs:\n  test:\n    steps:\n"
        "      - run: luarocks install luacheck\n      - run: luarocks --local install say 1.4\n",
    }
    draft = LUA.create_draft(build_tree(tmp_path, files), build_context(versions=LUA_VERSIONS))
    assert [(d.source.text, d.role.value) for d in draft.dependencies] == [
        ("busted", "test"),
        ("penlight == 1.13", "runtime"),
        ("lpeg", "runtime"),
        ("say", "optional"),
        ("luafilesystem", "optional"),
    ]
    assert [version.value for version in draft.versions] == ["5.3", "5.2"]
    assert MAKE not in draft.switches
    assert dict(draft.env)["LUA_PATH"].startswith("./source/?.lua;./source/?/init.lua;./?.lua;")
    assert "'luafilesystem=lua-filesystem lua-luafilesystem'" in apply_switch(draft)
    assert "luarocks --lua-version 5.3 install penlight 1.13 " in LUA.render_plan(draft).dependency_steps[1]


@pytest.mark.parametrize("modules", ['kettle = "source/main.lua"', 'kettle = { "source/kettle.c" }'])
def test_luarocks_installs_modules_that_no_path_finds(modules: str, tmp_path: Path) -> None:
    files = {
        "kettle-scm-1.rockspec": f'package = "kettle"\nbuild = {{ type = "builtin", modules = {{ {modules} }} }}\n',
        "source/main.lua": "",
        "spec/a_spec.lua": "",
    }
    draft = LUA.create_draft(build_tree(tmp_path, files), build_context(versions=LUA_VERSIONS))
    assert draft.switches == {MAKE}
    assert draft.test.argv == ("luarocks", "make", "kettle-scm-1.rockspec")
    for fallback in LUA.fallbacks:
        draft = fallback(draft)
    assert (draft.test.argv, draft.switches) == ((), {DEBIAN_PACKAGES})


def test_luajit_is_replaced_by_the_version_that_it_implements(tmp_path: Path) -> None:
    files = {
        "spec/a_spec.lua": "",
        ".github/workflows/test.yml": "on: push\njobs:\n  test:\n    strategy:\n      matrix:\n"
        "        luaVersion: [luajit-2.1]\n    steps:\n      - run: busted\n",
    }
    draft = LUA.create_draft(build_tree(tmp_path, files), build_context(versions=LUA_VERSIONS))
    assert (draft.versions[0].value, draft.versions[0].line) == ("5.1", 6)


def test_lua_test_files_are_those_in_the_folders_of_busted_or_those_that_load_luaunit(tmp_path: Path) -> None:
    files = {
        ".busted": 'return { default = { ROOT = { "checks" } } }',
        "checks/a_spec.lua": "",
        "spec/b_spec.lua": "",
        "test/test_c.lua": "local lu = require('luaunit')\n",
        "test/test_helper.lua": "return {}\n",
    }
    tree = build_tree(tmp_path, files)
    plan = LUA.render_plan(LUA.create_draft(tree, build_context(versions=LUA_VERSIONS)))
    assert (plan.test.framework, LUA.find_test_files(tree, plan)) == ("busted", ["checks/a_spec.lua"])
    units = build_tree(tmp_path / "units", {path: text for path, text in files.items() if "spec" not in path})
    plan = LUA.render_plan(LUA.create_draft(units, build_context(versions=LUA_VERSIONS)))
    assert (plan.test.framework, LUA.find_test_files(units, plan)) == ("luaunit", ["test/test_c.lua"])


DESCRIPTION = """Package: kettle
Depends: R (>= 4.1.0), methods
Imports:
    glue (>= 1.0),
    R6, data.table
LinkingTo: cpp11
Suggests: covr, knitr, withr, testthat
"""


def test_r_packages_are_read_from_description(tmp_path: Path) -> None:
    files = {
        "DESCRIPTION": DESCRIPTION,
        "src/a.cpp": "",
        "R/a.R": "a <- function() 1\n",
        "tests/testthat/test-a.R": "withr::local_options(a = 1)\n",
        "tests/testthat/helper.R": "",
        "tests/testthat/sub/test-b.R": "",
    }
    tree = build_tree(tmp_path, files)
    draft = R.create_draft(tree, build_context(versions=("4.0", "4.2", "4.5")))
    assert [(d.source.text, d.source.line, d.role.value) for d in draft.dependencies] == [
        ("testthat", 0, "test"),
        ("pkgbuild", 0, "test"),
        ("glue", 4, "runtime"),
        ("R6", 5, "runtime"),
        ("data.table", 5, "runtime"),
        ("cpp11", 6, "runtime"),
        ("withr", 7, "optional"),
    ]
    assert [version.value for version in draft.versions] == ["4.2", "4.5"]
    plan = R.render_plan(draft)
    assert R.find_test_files(tree, plan) == ["tests/testthat/test-a.R"]
    assert "cran/2024-06-02" in plan.dependency_steps[1]
    assert plan.source_steps == ("cd /testbed && Rscript --vanilla -e 'pkgbuild::compile_dll()'",)
    assert "data.table=r-cran-data.table r-bioc-data.table" in apply_switch(draft)
    assert list_debian_names("R6")[0] == "r-cran-r6"


CABAL = """name: kettle
tested-with: GHC ==9.0.2
library
  build-depends: base <5, split
    , text >=1.2
test-suite Spec
  type: exitcode-stdio-1.0
  main-is: Spec.hs
  hs-source-dirs: test
  -- build-depends: commented
  build-depends: base, kettle, cup, hspec
  build-tool-depends: hspec-discover:hspec-discover
test-suite lib
  type: detailed-0.9
  test-module: A
benchmark speed
  main-is: Speed.hs
  build-depends: criterion
"""


def test_haskell_suites_and_libraries_are_read_from_cabal_files(tmp_path: Path) -> None:
    files = {
        "kettle/kettle.cabal": CABAL,
        ".github/workflows/haskell-ci.yml": "on: push\njobs:\n  linux:\n    steps:\n"
        "      - run: apt-get install -y --no-install-recommends curl libtinfo5 libpq-dev\n",
        "kettle/test/Spec.hs": "{-# OPTIONS_GHC -F -pgmF hspec-discover #-}\n",
        "kettle/test/Data/CupSpec.hs": "",
        "cup/cup.cabal": "name: cup\nlibrary\n  build-depends: base, vector\n",
        "other/other.cabal": "name: other\nlibrary\n  build-depends: base, lens\n",
    }
    tree = build_tree(tmp_path, files)
    draft = HASKELL.create_draft(tree, build_context("kettle/test/Data/CupSpec.hs", versions=("9.0", "9.6")))
    assert [(d.source.text, d.role.value) for d in draft.dependencies] == [
        ("split", "runtime"),
        ("hspec", "runtime"),
        ("vector", "runtime"),
        ("hspec-discover", "build"),
    ]
    assert draft.versions[0].value == "9.0"
    assert [package.text for package in draft.system_packages] == ["libpq-dev"]
    plan = HASKELL.render_plan(draft)
    assert plan.test.argv == ("kettle", "Spec:hspec:kettle/test/Spec.hs")
    assert HASKELL.find_test_files(tree, plan) == ["kettle/test/Data/CupSpec.hs"]
    assert "index-state: 2024-06-02T00:00:00Z" in "\n".join(plan.dependency_steps)
    steps = apply_switch(draft)
    assert "vector=libghc-vector-dev libghc-vector2-dev" in steps  # as QuickCheck's, which has the number
    assert "/testbed/cup/cup.cabal" in steps
    assert "/testbed/other/other.cabal" not in steps


@pytest.mark.parametrize(
    ("changed", "suite"),
    [
        pytest.param((), "checks/test/Spec.hs", id="no-change"),
        pytest.param(("cup/src/Cup.hs",), "tests/all/Spec.hs", id="tested-by-another-package"),
        pytest.param(("checks/src/Check.hs",), "checks/test/Spec.hs", id="tested-by-itself"),
    ],
)
def test_haskell_packages_without_suites_are_tested_by_those_that_require_them(
    changed: tuple[str, ...], suite: str, tmp_path: Path
) -> None:
    with_suite = "name: {}\n\ntest-suite spec\n  type: exitcode-stdio-1.0\n  main-is: Spec.hs\n  hs-source-dirs: {}\n"
    files = {
        "cabal.project": "packages: checks\n  cup\npackages:\n  tests/all/all.cabal\n\ntests: True\n",
        "bowl/bowl.cabal": "name: bowl\nlibrary\n  build-depends: base\n",
        "cup/cup.cabal": "name: cup\nlibrary\n  build-depends: base\n",
        "checks/checks.cabal": with_suite.format("checks", "test") + "  build-depends: base\n",
        "checks/test/Spec.hs": "",
        "tests/all/all.cabal": with_suite.format("all", ".") + "  build-depends: base, cup\n",
        "tests/all/Spec.hs": "",
        "tests/unlisted/unlisted.cabal": with_suite.format("unlisted", ".") + "  build-depends: cup\n",
        "tests/unlisted/Spec.hs": "",
    }
    tree = build_tree(tmp_path, files)
    plan = HASKELL.render_plan(HASKELL.create_draft(tree, build_context(*changed, versions=("9.6",))))
    assert HASKELL.find_test_files(tree, plan) == [suite]


@pytest.mark.parametrize("language", [LUA, R, HASKELL])
def test_a_registry_that_does_not_answer_is_reported(language: Language, tmp_path: Path) -> None:
    files = {
        "DESCRIPTION": DESCRIPTION,
        "tests/testthat/test-a.R": "",
        "spec/a_spec.lua": "",
        "kettle.cabal": CABAL,
        "test/Spec.hs": "",
    }
    versions = tuple(release.version for release in language.releases)
    plan = language.render_plan(language.create_draft(build_tree(tmp_path, files), build_context(versions=versions)))
    assert re.search(r"""[:"] ?could not reach host""", "\n".join(plan.dependency_steps))
    for step in (*plan.dependency_steps, *plan.source_steps):
        subprocess.run(["bash", "-n", "-c", step], check=True)


SBT_FILES = {
    "build.sbt": "",
    "core/build.sbt": "",
    "project/build.properties": "# comment\nsbt.version = 1.9.7\n",
    "project/Versions.scala": "object Versions\n",
    "project/plugins.sbt": "",
    "core/src/main/scala/Cup.scala": "class CupSpec\n",
    "core/src/test/scala/CupSpec.scala": "final class CupSpec extends AnyFlatSpec with Matchers {\n}\n",
    "core/src/test/scala/CupCheck.scala": 'object CupCheck extends Properties("Cup")\n',
    "core/src/test/scala/Cups.scala": "object Cups { val all = 1 }\n",
    "core/src/it/scala/SlowSpec.scala": "class SlowSpec extends AnyFlatSpec\n",
    ".github/workflows/ci.yml": "on: push\njobs:\n  test:\n    strategy:\n      matrix:\n        java: [11]\n"
    "    steps:\n      - run: sbt test\n",
}


def test_scala_builds_are_read_from_the_files_of_sbt(tmp_path: Path) -> None:
    tree = build_tree(tmp_path, SBT_FILES)
    draft = SCALA.create_draft(tree, build_context(versions=("8", "11", "17")))
    assert [version.value for version in draft.versions] == ["11", "17", "8"]
    assert [path for path, _ in draft.manifests] == [
        "build.sbt",
        "project/Versions.scala",
        "project/build.properties",
        "project/plugins.sbt",
    ]
    assert [(evidence.value, evidence.line) for evidence in draft.evidence if evidence.choice == "test"] == [
        ("sbt 1.9.7", 2)
    ]
    plan = SCALA.render_plan(draft)
    assert SCALA.find_test_files(tree, plan) == [
        "core/src/test/scala/CupCheck.scala",
        "core/src/test/scala/CupSpec.scala",
    ]
    assert f"'[repositories]' local maven-central > {HOME}/repositories" in plan.dependency_steps[0]


@pytest.mark.parametrize("version", ["sbt.version=0.13.18\n", ""])
def test_old_releases_of_sbt_are_rejected(version: str, tmp_path: Path) -> None:
    tree = build_tree(tmp_path, {**SBT_FILES, "project/build.properties": version})
    with pytest.raises(NoPlanError, match="only sbt 1"):
        SCALA.create_draft(tree, build_context(versions=("11",)))


@pytest.mark.parametrize("language", [LUA, R, HASKELL, SCALA])
def test_a_tree_without_tests_is_not_a_project(language: Language, tmp_path: Path) -> None:
    tree = build_tree(tmp_path, {"DESCRIPTION": DESCRIPTION, "a.cabal": "name: a\n", "a.lua": "", "package.yaml": ""})
    with pytest.raises(NoPlanError):
        language.create_draft(tree, build_context(versions=("9.6",)))


def test_debian_names_of_rocks_follow_their_rule() -> None:
    assert rocks.list_debian_names("luasocket")[0] == "lua-socket"
    assert rocks.list_debian_names("lua-cjson")[0] == "lua-cjson"
    assert rocks.list_debian_names("lua_cliargs") == ("lua-cliargs",)
    assert all(re.fullmatch(r"lua-[a-z0-9.-]+", name) for name in rocks.list_debian_names("LuaFileSystem"))


@pytest.mark.parametrize(
    "path",
    [
        "spec/a_spec.lua",
        "tests/test_a.lua",
        ".busted",
        "pkg/tests/testthat/test-a.R",
        "core/test/Data/Cup.hs",
        "src/CupSpec.hs",
        "core/src/test/scala/Cup.scala",
        "app/test/CupSpec.scala",
    ],
)
def test_tests_and_their_configuration_are_protected(path: str) -> None:
    assert is_protected(path)
    assert not is_source(path)


def test_builds_of_sbt_may_contain_configuration_of_tests() -> None:
    assert all(is_config(path) for path in ("build.sbt", "project/plugins.sbt", "core/project/Build.scala"))
    assert not is_config("src/main/scala/project/Build.scala")


@pytest.mark.parametrize(
    "path", ["src/special/a.lua", "R/test.R", "src/Test/Cup.hs", "core/src/main/scala/zio/test/Cup.scala"]
)
def test_sources_of_new_languages_are_no_tests(path: str) -> None:
    assert is_source(path)
