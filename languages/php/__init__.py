"""PHP: PHPUnit; packages from Composer or from Debian packages."""

from __future__ import annotations

from collections.abc import Sequence

from languages import parsing
from languages.base import Canary, Framework, Language, read_packaged_file
from languages.controls import COMMON_OPPOSITES, ControlSites, pair_words
from languages.habits import Habits
from languages.messages import CONTAIN_CALLS, PATTERN_CALLS, MessageChecks
from languages.php.loading import HOOK
from languages.php.plan import TEST_FILE, create_draft, list_test_files, render_plan
from languages.php.releases import DEFAULT, RELEASES
from languages.scripting.debian import DEBIAN_PACKAGES, SWITCH_DESCRIPTION, use_debian_packages
from languages.scripting.versions import select_next_version
from languages.signatures import SignatureSyntax
from languages.source_tree import SourceTree
from languages.weak_tests import WeakTestSyntax
from taskdb.records import BuildPlan


def _name_canary(_files: Sequence[str]) -> str:
    return '"Of${word}Test.php"'


def find_test_files(tree: SourceTree, plan: BuildPlan | None = None) -> list[str]:
    """Return files `*Test.php` of the project that PHPUnit's configuration includes."""
    return list_test_files(tree, plan.test.folder if plan else "")


OPPOSITES = pair_words(
    (
        ("assertArrayHasKey", "assertArrayNotHasKey"),
        ("assertFileExists", "assertFileDoesNotExist"),
        ("assertStringContainsString", "assertStringNotContainsString"),
    )
)

PHP = Language(
    name="php",
    title="PHP",
    suffixes=(".php",),
    test_patterns=(
        r"(^|/)([Tt]est|[Tt]ests|[Tt]est[Ff]ixtures|_?[Ff]ixtures?)/.*\.(php|phpt|inc)$",
        r"(^|/)[^/]*(Test|TestCase)\.php$",
        r"(^|/)Tests/",
        r"\.phpt$",
    ),
    runner_patterns=(r"(^|/)phpunit[^/]*\.xml(\.dist)?$",),
    test_file_pattern=TEST_FILE,
    kept_folders=("vendor",),
    releases=RELEASES,
    default_version=DEFAULT,
    frameworks=(
        Framework(
            name="phpunit",
            shell=read_packaged_file("languages.php", "phpunit.sh.j2"),
            report="junit",
            canary=Canary(
                name=_name_canary,
                body=r"""printf '<?php\nclass Of%sTest extends PHPUnit\\Framework\\TestCase\n{\n"""
                r"""    public function test%s(): void { $this->assertSame(%s, 3 * 4); }\n}\n' """
                r""""$word" "$word" "$sum" """.rstrip(),
            ),
        ),
    ),
    switches={DEBIAN_PACKAGES: SWITCH_DESCRIPTION},
    fallbacks=(select_next_version, use_debian_packages),
    create_draft=create_draft,
    render_plan=render_plan,
    find_test_files=find_test_files,
    test_command="vendor/bin/phpunit",
    syntaxes=(parsing.PHP,),
    weak_tests=WeakTestSyntax(
        always=r"\bRequiresPhpExtension\b|\bRequiresFunction\b",
        skips=r"\bmarkTest(Skipped|Incomplete)\b",
        lookups=r"\b(extension_loaded|class_exists|interface_exists|function_exists)\(",
    ),
    controls=ControlSites(
        compares_any_types=True,
        empties=("[]", '""', "''", "null", "0", "false"),
        max_instances=1000,
        opposites={**COMMON_OPPOSITES, **OPPOSITES},
        exceptions=("InvalidArgumentException", "UnexpectedValueException", "DomainException", "LengthException"),
    ),
    messages=MessageChecks(
        pattern_calls=rf"{PATTERN_CALLS}|expectExceptionMessageMatches|\w*MatchesRegularExpression",
        literal_calls=frozenset({"preg_quote"}),
        contain_calls=rf"{CONTAIN_CALLS}|expectExceptionMessage",
    ),
    lexer_options={"startinline": True},
    signatures=SignatureSyntax(are_types_first=True),
    exploit_files={"phpunit.xml": b'<phpunit bootstrap="exit.php"/>\n', "exit.php": b"<?php exit(0);\n"},
    load_hook=HOOK,
    habits=Habits(
        test_commands=r"(\S*/)?(phpunit|pest)|composer (run )?\S*test\S*",
        output=r"\b(var_dump|print_r)\(",
        output_example="var_dump($this);",
    ),
)
