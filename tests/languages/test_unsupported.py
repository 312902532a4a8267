"""Files of languages without environments are classified: their tests belong to the test patch of a change."""

from __future__ import annotations

import pytest

from languages.paths import is_config, is_protected, is_source, is_test_path, list_protected_patterns
from languages.registry import LANGUAGES, detect_file_language, list_classified_languages
from languages.unsupported import UNSUPPORTED


@pytest.mark.parametrize(
    ("path", "language"), [("src/Shop/Till.cs", "c#"), ("lib/till.dart", "dart"), ("src/till.zig", "zig")]
)
def test_their_programs_are_no_sources(path: str, language: str) -> None:
    assert detect_file_language(path) == language
    assert not is_source(path)
    assert not is_protected(path)


@pytest.mark.parametrize("path", ["Shop.Tests/TillTests.cs", "src/TillTest.cs", "test/till_test.dart"])
def test_their_tests_are_protected(path: str) -> None:
    assert is_test_path(path)
    assert is_protected(path)


def test_their_settings_are_protected() -> None:
    assert is_protected("dart_test.yaml")
    assert is_protected("shop.runsettings")
    assert is_config("Directory.Build.props")


def test_patterns_of_scripts_keep_their_order() -> None:
    """Ids of tasks depend on it: Python first, then by name, and C++ before C#."""
    known = list_classified_languages()
    assert known[:5] == (
        LANGUAGES["python"],
        LANGUAGES["c"],
        LANGUAGES["c++"],
        UNSUPPORTED["c#"],
        UNSUPPORTED["dart"],
    )
    assert len(known) == len(LANGUAGES) + len(UNSUPPORTED)
    patterns = list_protected_patterns()
    assert patterns.index(UNSUPPORTED["c#"].test_patterns[0]) < patterns.index(UNSUPPORTED["dart"].test_patterns[0])
