"""Ruby: RSpec, minitest and test-unit; gems by Bundler, or Debian's packages of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib import resources
from pathlib import PurePosixPath

from languages.base import Canary, Fallback, Framework
from languages.draft import Draft
from languages.ruby import testing
from languages.ruby.plan import COMPILE, draft, render
from languages.ruby.releases import DEFAULT, RELEASES
from languages.scripting.debian import DEBIAN_PACKAGES, SWITCH, debian_packages
from languages.scripting.versions import next_version
from languages.tree import Tree
from taskdb.records import BuildPlan

__all__ = [
    "CONFIG_PATTERNS",
    "DEFAULT",
    "FALLBACKS",
    "FRAMEWORKS",
    "KEPT_FOLDERS",
    "NAME",
    "PATH",
    "RELEASES",
    "RUNNER_PATTERNS",
    "SUFFIXES",
    "SWITCHES",
    "TEST_FILE",
    "TEST_PATTERNS",
    "TITLE",
    "defining_files",
    "draft",
    "render",
]  # fmt: skip

NAME, TITLE = "ruby", "Ruby"
SUFFIXES = (".rb", ".rake", ".ru", ".gemspec")
TEST_PATTERNS = (
    r"^(spec|features)/",
    r"(^|/)(spec|test)/(.*/)?[^/]*(spec|test|helper|case)s?\.rb$",
    r"(^|/)(spec|test)/(.*/)?(fixtures|support)/.*\.(rb|yml|yaml|erb|haml|ru|txt)$",
    testing.SPEC_FILE,
    r"(^|/)([^/]*_test|test_[^/]*|tc_[^/]*)\.rb$",
)
RUNNER_PATTERNS = (r"(^|/)\.rspec(-local)?$",)
CONFIG_PATTERNS: tuple[str, ...] = ()
TEST_FILE = f"{testing.SPEC_FILE}|{testing.TEST_FILE}"
KEPT_FOLDERS: tuple[str, ...] = ()
PATH: tuple[str, ...] = ()
SWITCHES = {DEBIAN_PACKAGES: SWITCH, COMPILE: "`rake compile` builds the project's C parts in the tree"}


def without_compile(draft: Draft) -> Draft:
    """The C parts are not built: the project may do without them."""
    return replace(draft, switches=draft.switches - {COMPILE})


FALLBACKS: tuple[Fallback, ...] = (next_version, debian_packages, without_compile)


def _spec_name(_files: Sequence[str]) -> str:
    return '"${word}_spec.rb"'


def _test_name(files: Sequence[str]) -> str:
    names = [PurePosixPath(file).name for file in files]
    if any(name.endswith("_spec.rb") for name in names):
        return '"${word}_spec.rb"'
    ends = sum(name.endswith("_test.rb") for name in names)
    return '"${word}_test.rb"' if 2 * ends > len(names) else '"test_$word.rb"'


def _shell(name: str) -> str:
    return resources.files("languages.ruby").joinpath(name).read_text(encoding="utf-8")


def _class(required: str, base: str) -> str:
    """Bash that prints a test class."""
    return (
        rf"""printf 'require "{required}"\nclass TestOf%s < {base}\n  def test_%s\n    assert_equal %s, 3 * 4\n"""
        r"""  end\nend\n' "$word" "$word" "$sum" """.rstrip()
    )


FRAMEWORKS = (
    Framework(
        name="rspec", shell=_shell("rspec.sh.j2"), report="rspec",
        canary=Canary(
            name=_spec_name,
            body=r"""printf 'RSpec.describe "%s" do\n  it("is %s") { expect(3 * 4).to eq(%s) }\nend\n' """
            r""""$word" "$word" "$sum" """.rstrip(),
        ),
    ),
    Framework(
        name="minitest", shell=_shell("minitest.sh.j2"), report="minitest",
        canary=Canary(name=_test_name, body=_class("minitest/autorun", "Minitest::Test")),
    ),
    Framework(
        name="test-unit", shell=_shell("minitest.sh.j2"), report="minitest",
        canary=Canary(name=_test_name, body=_class("test/unit", "Test::Unit::TestCase")),
    ),
)  # fmt: skip


def defining_files(tree: Tree, plan: BuildPlan | None = None) -> list[str]:
    """Files that define specs or tests; with a plan those of its framework below its paths."""
    if plan is None:
        specs, tests = testing.test_files(tree, "")
        return sorted({*specs, *tests})
    specs, tests = testing.test_files(tree, plan.test.folder)
    inside = tuple(f"{path}/" for path in plan.test.paths)
    found = specs if plan.test.framework == "rspec" else sorted({*specs, *tests})
    return [path for path in found if path.startswith(inside) or path in plan.test.paths]
