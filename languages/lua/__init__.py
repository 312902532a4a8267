"""Lua: busted and LuaUnit; rocks from LuaRocks or from Debian packages."""

from __future__ import annotations

from collections.abc import Sequence

from languages import parsing
from languages.base import Canary, Framework, Language, read_packaged_file
from languages.habits import Habits
from languages.lua.loading import HOOK
from languages.lua.plan import (
    MAKE,
    SPEC_FILE,
    TEST_FILE,
    create_draft,
    drop_make,
    list_spec_files,
    list_unit_files,
    render_plan,
)
from languages.lua.releases import DEFAULT, RELEASES
from languages.scripting.debian import DEBIAN_PACKAGES, SWITCH_DESCRIPTION, use_debian_packages
from languages.scripting.versions import select_next_version
from languages.source_tree import SourceTree
from languages.weak_tests import WeakTestSyntax
from taskdb.records import BuildPlan


def find_test_files(tree: SourceTree, plan: BuildPlan | None = None) -> list[str]:
    """Return the specs and tests of LuaUnit; with a plan those of its framework and project."""
    if plan is None:
        return sorted({*list_spec_files(tree, ""), *list_unit_files(tree, "")})
    find = list_spec_files if plan.test.framework == "busted" else list_unit_files
    return find(tree, plan.test.folder)


def _name_spec(_files: Sequence[str]) -> str:
    return '"of_${word}_spec.lua"'


def _name_unit(_files: Sequence[str]) -> str:
    return '"test_of_$word.lua"'


def _read_shell(name: str) -> str:
    return read_packaged_file("languages.lua", name)


LUA = Language(
    name="lua",
    title="Lua",
    suffixes=(".lua",),
    test_patterns=(SPEC_FILE, r"(^|/)(spec|tests?)/.*\.lua$", r"(^|/)test[_-][^/]*\.lua$"),
    runner_patterns=(r"(^|/)\.busted$",),
    test_file_pattern=TEST_FILE,
    releases=RELEASES,
    default_version=DEFAULT,
    frameworks=(
        Framework(
            name="busted",
            shell=_read_shell("busted.sh.j2"),
            report="lines",
            canary=Canary(
                name=_name_spec,
                body=r"""printf 'describe("canary", function()\n  it("is %s", function()\n"""
                r"""    assert.are.equal(%s, 3 * 4)\n  end)\nend)\n' "$word" "$sum" """.rstrip(),
            ),
        ),
        Framework(
            name="luaunit",
            shell=_read_shell("luaunit.sh.j2"),
            report="luaunit",
            canary=Canary(
                name=_name_unit,
                body=r"""printf 'local lu = require("luaunit")\nfunction test_%s()\n"""
                r"""  lu.assertEquals(3 * 4, %s)\nend\nos.exit(lu.LuaUnit.run())\n' "$word" "$sum" """.rstrip(),
            ),
        ),
    ),
    switches={
        DEBIAN_PACKAGES: SWITCH_DESCRIPTION,
        MAKE: "luarocks make installs the project's own modules before each run",
    },
    fallbacks=(use_debian_packages, drop_make, select_next_version),
    create_draft=create_draft,
    render_plan=render_plan,
    find_test_files=find_test_files,
    weak_tests=WeakTestSyntax(
        skips=r"^(pending|skip)$|\.(skip|skipIf)$",
        lookups=r"\bpcall\(\s*require\b",
    ),
    syntaxes=(parsing.LUA,),
    exploit_files={".busted": b"return { default = { list = true, pattern = 'nothing' } }\n"},
    load_hook=HOOK,
    habits=Habits(
        test_commands=r"busted|lua\S* \S*(test|spec)\S*",
        output=r"\bprint\(",
        output_example='print("here")',
    ),
)
