"""Swift: tests of packages with XCTest and Swift Testing; dependencies from their git repositories."""

from __future__ import annotations

from languages.base import Framework, Language, read_packaged_file
from languages.habits import Habits
from languages.scripting.versions import select_next_version
from languages.swift.loading import HOOK
from languages.swift.plan import FRAMEWORK, create_draft, find_test_files, render_plan
from languages.swift.releases import DEFAULT, RELEASES
from languages.swift.tests import CANARY, TEST_FILE

SWIFT = Language(
    name="swift",
    title="Swift",
    suffixes=(".swift",),
    test_patterns=(r"(^|/)Tests/.*\.swift$", r"(^|/)[A-Z][A-Za-z0-9]*Tests/.*\.swift$"),
    config_patterns=(r"(^|/)Package(@swift-[0-9.]+)?\.swift$",),
    test_file_pattern=TEST_FILE,
    releases=RELEASES,
    default_version=DEFAULT,
    frameworks=(
        Framework(
            name=FRAMEWORK,
            shell=read_packaged_file("languages.swift", "swift.sh.j2"),
            report="swift",
            canary=CANARY,
        ),
    ),
    fallbacks=(select_next_version,),
    create_draft=create_draft,
    render_plan=render_plan,
    find_test_files=find_test_files,
    exploit_files={
        "Package@swift-6.0.swift": (
            b'// swift-tools-version:5.9\nimport PackageDescription\nlet p = Package(name: "A")\n'
        )
    },
    load_hook=HOOK,
    habits=Habits(
        test_commands=r"swift test",
        output=r"\bprint\(",
        output_example='print("here")',
    ),
)
