"""Ruby: RSpec, minitest and test-unit; gems from Bundler or from Debian packages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from languages import parsing
from languages.base import Canary, Framework, Language, read_packaged_file
from languages.controls import COMMON_OPPOSITES, ControlSites, pair_words
from languages.draft import PlanDraft
from languages.habits import Habits
from languages.loading import LoadHook, append_code, quote_single
from languages.messages import PATTERN_CALLS, MessageChecks
from languages.ruby import testing
from languages.ruby.plan import COMPILE, create_draft, render_plan
from languages.ruby.releases import DEFAULT, RELEASES
from languages.scripting.debian import DEBIAN_PACKAGES, SWITCH_DESCRIPTION, use_debian_packages
from languages.scripting.versions import select_next_version
from languages.source_tree import SourceTree
from languages.weak_tests import WeakTestSyntax
from taskdb.records import BuildPlan


def drop_compile(draft: PlanDraft) -> PlanDraft:
    """Do not build the C extension: the project may work without it."""
    return replace(draft, switches=draft.switches - {COMPILE})


def _name_spec_canary(_files: Sequence[str]) -> str:
    return '"${word}_spec.rb"'


def _name_test_canary(files: Sequence[str]) -> str:
    names = [PurePosixPath(file).name for file in files]
    if any(name.endswith("_spec.rb") for name in names):
        return '"${word}_spec.rb"'
    ends = sum(name.endswith("_test.rb") for name in names)
    return '"${word}_test.rb"' if 2 * ends > len(names) else '"test_$word.rb"'


def _read_template(name: str) -> str:
    return read_packaged_file("languages.ruby", name)


def _render_test_class(required: str, base: str) -> str:
    """Return Bash that prints a test class."""
    return (
        rf"""printf 'require "{required}"\nclass TestOf%s < {base}\n  def test_%s\n    assert_equal %s, 3 * 4\n"""
        r"""  end\nend\n' "$word" "$word" "$sum" """.rstrip()
    )


def find_test_files(tree: SourceTree, plan: BuildPlan | None = None) -> list[str]:
    """Return files that define specs or tests; with a plan those of its framework below its paths."""
    if plan is None:
        specs, tests = testing.list_test_files(tree, "")
        return sorted({*specs, *tests})
    specs, tests = testing.list_test_files(tree, plan.test.folder)
    inside = tuple(f"{path}/" for path in plan.test.paths)
    files = specs if plan.test.framework == "rspec" else sorted({*specs, *tests})
    return [path for path in files if path.startswith(inside) or path in plan.test.paths]


RUBY = Language(
    name="ruby",
    title="Ruby",
    suffixes=(".rb", ".rake", ".ru", ".gemspec"),
    test_patterns=(
        r"^(spec|features)/",
        r"(^|/)(spec|test)/(.*/)?[^/]*(spec|test|helper|case)s?\.rb$",
        r"(^|/)(spec|test)/(.*/)?(fixtures|support)/.*\.(rb|yml|yaml|erb|haml|ru|txt)$",
        testing.SPEC_FILE,
        r"(^|/)([^/]*_test|test_[^/]*|tc_[^/]*)\.rb$",
    ),
    runner_patterns=(r"(^|/)\.rspec(-local)?$",),
    test_file_pattern=f"{testing.SPEC_FILE}|{testing.TEST_FILE}",
    releases=RELEASES,
    default_version=DEFAULT,
    frameworks=(
        Framework(
            name="rspec",
            shell=_read_template("rspec.sh.j2"),
            report="rspec",
            canary=Canary(
                name=_name_spec_canary,
                body=r"""printf 'RSpec.describe "%s" do\n  it("is %s") { expect(3 * 4).to eq(%s) }\nend\n' """
                r""""$word" "$word" "$sum" """.rstrip(),
            ),
        ),
        Framework(
            name="minitest",
            shell=_read_template("minitest.sh.j2"),
            report="minitest",
            canary=Canary(name=_name_test_canary, body=_render_test_class("minitest/autorun", "Minitest::Test")),
        ),
        Framework(
            name="test-unit",
            shell=_read_template("minitest.sh.j2"),
            report="minitest",
            canary=Canary(name=_name_test_canary, body=_render_test_class("test/unit", "Test::Unit::TestCase")),
        ),
    ),
    switches={
        DEBIAN_PACKAGES: SWITCH_DESCRIPTION,
        COMPILE: "`rake compile` builds the C extension in the tree",
    },
    fallbacks=(select_next_version, use_debian_packages, drop_compile),
    create_draft=create_draft,
    render_plan=render_plan,
    find_test_files=find_test_files,
    test_command="bundle exec rspec",
    syntaxes=(parsing.RUBY,),
    weak_tests=WeakTestSyntax(
        skips=r"^(skip|pending|omit)\b",
        lookups=r"\bdefined\?|\bGem::Specification\b|\bwhich\b|\bcommand_exists",
        missing=r"\bLoadError\b",
    ),
    controls=ControlSites(
        compares_any_types=True,
        empties=("[]", "{}", '""', "''", "nil", "0", "false"),
        max_instances=1000,
        opposites={**COMMON_OPPOSITES, **pair_words((("assert", "refute"), ("to", "not_to")))},
        exceptions=("ArgumentError", "TypeError", "KeyError", "IndexError", "NameError"),
    ),
    messages=MessageChecks(pattern_calls=rf"{PATTERN_CALLS}|match_regex"),
    exploit_files={".rspec": b"--dry-run\n"},
    load_hook=LoadHook(suffixes=(".rb",), write=append_code("\nsystem({})\n", quote_single)),
    habits=Habits(
        test_commands=r"(bundle exec )?(rake|rspec|ruby \S*(test|spec)\S*)",
        output=r"^\s*(puts|pp?)\b",
        output_example="puts 'here'",
    ),
)
