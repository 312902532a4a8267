"""PHP: PHPUnit; packages by Composer, or Debian's packages of them."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources

from languages.base import Canary, Fallback, Framework
from languages.php.plan import TEST_FILE, draft, render, test_files
from languages.php.releases import DEFAULT, RELEASES
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

NAME, TITLE = "php", "PHP"
SUFFIXES = (".php",)
TEST_PATTERNS = (
    r"(^|/)([Tt]est|[Tt]ests|[Tt]est[Ff]ixtures|_?[Ff]ixtures?)/.*\.(php|phpt|inc)$",
    r"(^|/)[^/]*(Test|TestCase)\.php$",
    r"(^|/)Tests/",
    r"\.phpt$",
)
RUNNER_PATTERNS = (r"(^|/)phpunit[^/]*\.xml(\.dist)?$",)
CONFIG_PATTERNS: tuple[str, ...] = ()
KEPT_FOLDERS = ("vendor",)
PATH: tuple[str, ...] = ()
SWITCHES = {DEBIAN_PACKAGES: SWITCH}
FALLBACKS: tuple[Fallback, ...] = (next_version, debian_packages)


def _name(_files: Sequence[str]) -> str:
    return '"Of${word}Test.php"'


FRAMEWORKS = (
    Framework(
        name="phpunit",
        shell=resources.files("languages.php").joinpath("phpunit.sh.j2").read_text(encoding="utf-8"),
        report="junit",
        canary=Canary(
            name=_name,
            body=r"""printf '<?php\nclass Of%sTest extends PHPUnit\\Framework\\TestCase\n{\n"""
            r"""    public function test%s(): void { $this->assertSame(%s, 3 * 4); }\n}\n' """
            r""""$word" "$word" "$sum" """.rstrip(),
        ),
    ),
)


def defining_files(tree: Tree, plan: BuildPlan | None = None) -> list[str]:
    """Files `*Test.php` of the project that PHPUnit's configuration takes in."""
    return test_files(tree, plan.test.folder if plan else "")
