"""Dart: tests of package:test by `dart test`; packages from pub.dev."""

from __future__ import annotations

from collections.abc import Sequence

from languages.base import Canary, Framework, Language, read_packaged_file
from languages.dart.plan import FRAMEWORK, PACKAGES, TEST_FILE, create_draft, list_test_files, render_plan
from languages.dart.plan import find_project_folder as _find_project_folder
from languages.dart.releases import DEFAULT, RELEASES
from languages.scripting.versions import select_next_version
from languages.source_tree import SourceTree
from taskdb.records import BuildPlan


def _name_canary(_files: Sequence[str]) -> str:
    return '"of_${word}_test.dart"'


def find_test_files(tree: SourceTree, plan: BuildPlan | None = None) -> list[str]:
    """Return files `test/**/*_test.dart`; with a plan those of its package."""
    return list_test_files(tree, plan.test.folder if plan else _find_project_folder(tree, ()))


DART = Language(
    name="dart",
    title="Dart",
    suffixes=(".dart",),
    test_patterns=(r"(^|/)(integration_)?test/.*\.dart$", r"(^|/)[^/]*_test\.dart$"),
    runner_patterns=(r"(^|/)dart_test(\.\w+)?\.yaml$",),
    test_file_pattern=TEST_FILE,
    kept_folders=(PACKAGES,),
    releases=RELEASES,
    default_version=DEFAULT,
    frameworks=(
        Framework(
            name=FRAMEWORK,
            shell=read_packaged_file("languages.dart", "dart.sh.j2"),
            report="dart",
            canary=Canary(
                name=_name_canary,
                body=r"""printf "import 'package:test/test.dart';\nvoid main() {\n  test('is %s', () {\n"""
                r"""    expect(3 * 4, %s);\n  });\n}\n" "$word" "$sum" """.rstrip(),
            ),
        ),
    ),
    fallbacks=(select_next_version,),
    create_draft=create_draft,
    render_plan=render_plan,
    find_test_files=find_test_files,
)
