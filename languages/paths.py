"""Classification of repository paths: test, test configuration or source. The only place where this is decided.

The miner splits a change by these patterns, and the evaluation script restores files of a submission by the same
patterns. Therefore a gold patch may change exactly the files that a submission may change. Patterns of all languages
apply to every path, so a repository in several languages is split the same way for each of them.
"""

from __future__ import annotations

import re
from functools import cache

from languages.base import COMMON_TEST_PATTERNS
from languages.registry import LANGUAGES, detect_file_language, get_language, list_classified_languages

_NOT_SOURCE = re.compile(
    r"(^|/)(docs?|documentation|examples?|benchmarks?|asv_bench|\.github)/|(^|/)(setup|conf)\.py$|(^|/)_version\.py$"
)

_AGENT_FILE = (
    r"(^|/)((?-i:(AGENTS?|CLAUDE|GEMINI|QWEN|CODEX|WARP)(\.local|\.override)?\.md)|agents\.md|\.cursorrules|\.cursorignore|"
    r"\.windsurfrules|\.clinerules|\.roorules|\.goosehints|\.mcp\.json|\.aider[^/]*|\.github/copilot-[^/]*\.(md|yml))$|"
    r"(^|/)(\.(cursor|claude|codex|gemini|windsurf|roo|clinerules|junie|kiro|agents?|opencode|serena|amazonq|qwen)|"
    r"\.github/(instructions|prompts|chatmodes|agents))/"
)
_LOCK_FILE = (
    r"(^|/)([^/]*\.lock(b|file)?|[^/]*[.-]lock\.(json|ya?ml|toml|hcl)|npm-shrinkwrap\.json|go\.(work\.)?sum|"
    r"Package\.resolved|cabal\.project\.freeze|gradle/verification-metadata\.xml)$"
)
_CHANGELOG = (
    r"(^|/)((change[_-]?logs?|changes|history|news|release[_-]?notes|whats[_-]?new)([._-]?v?\d[\w.-]*)?"
    r"(\.(md|mkd|markdown|rst|txt|adoc|org))?|releases\.(md|rst|txt))$|"
    r"(^|/)((changelogs?|changes|news)\.d|changelogs|\.changes?|\.changesets?|\.changelog|newsfragments?|releasenotes/notes)/|"
    r"(^|/)(news|changelog)/([^/]+\.(md|rst|txt)|\+?[\w-]+\.(feature|bugfix|fix|doc|docs|removal|misc|breaking))$"
)
_INCIDENTAL = re.compile(f"{_AGENT_FILE}|{_LOCK_FILE}|{_CHANGELOG}", re.IGNORECASE)


@cache
def list_test_patterns() -> tuple[str, ...]:
    """Return the patterns of test files, fixtures and snapshots of all languages."""
    return tuple(
        dict.fromkeys(
            [*COMMON_TEST_PATTERNS, *(p for language in list_classified_languages() for p in language.test_patterns)]
        )
    )


@cache
def list_protected_patterns() -> tuple[str, ...]:
    """Return the patterns of the test half of a change: test files, benchmarks and test runner configuration.

    Each is valid both as POSIX-extended (grep -E) and as Python regex: the evaluation script uses them verbatim.
    """
    return tuple(dict.fromkeys([*list_test_patterns(), *list_benchmark_patterns(), *list_runner_patterns()]))


@cache
def list_benchmark_patterns() -> tuple[str, ...]:
    """Return the patterns of files of benchmarks alone, of all languages."""
    return tuple(
        dict.fromkeys(pattern for language in list_classified_languages() for pattern in language.benchmark_patterns)
    )


@cache
def list_runner_patterns() -> tuple[str, ...]:
    """Return the patterns of test runner configuration of all languages."""
    return tuple(
        dict.fromkeys(pattern for language in list_classified_languages() for pattern in language.runner_patterns)
    )


@cache
def list_config_patterns() -> tuple[str, ...]:
    """Return the patterns of files that may contain test runner configuration among other settings.

    A submission's edits of these files are reverted too; if the gold patch changes such a file, its version belongs to
    the test patch.
    """
    return tuple(
        dict.fromkeys(pattern for language in list_classified_languages() for pattern in language.config_patterns)
    )


@cache
def _join_patterns(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(patterns))


@cache
def _compile_test_file(name: str) -> re.Pattern[str]:
    return re.compile(get_language(name).test_file_pattern)


def is_protected(path: str) -> bool:
    """Return whether `path` (posix, relative to the repository root) belongs to the test half of a change."""
    return _join_patterns(list_protected_patterns()).search(path) is not None


def is_benchmark(path: str) -> bool:
    """Return whether `path` is a file of benchmarks alone, which no run of tests collects."""
    return not is_test_path(path) and _join_patterns(list_benchmark_patterns()).search(path) is not None


def is_part_of_tests(path: str) -> bool:
    """Return whether `path` belongs to the test half of a change and is not a file of benchmarks alone."""
    return is_protected(path) and not is_benchmark(path)


def is_incidental(path: str) -> bool:
    """Return whether `path` is a file that a fix takes along: instructions for agents, a lock file or a changelog."""
    return _INCIDENTAL.search(path) is not None and not is_source(path)


def is_config(path: str) -> bool:
    """Return whether `path` may contain test runner configuration among other settings."""
    return _join_patterns(list_config_patterns()).search(path) is not None


def is_runner_config(path: str) -> bool:
    """Return whether `path` is, or may contain, test runner configuration."""
    return _join_patterns(list_runner_patterns() + list_config_patterns()).search(path) is not None


def is_test_file(path: str, in_language: str | None = None) -> bool:
    """Return whether a test framework of the file's own (or the given) language collects tests from `path`."""
    name = in_language or detect_file_language(path)
    return name in LANGUAGES and _compile_test_file(name).search(path) is not None


def is_test_path(path: str) -> bool:
    """Return whether `path` is a test file, a fixture or a snapshot."""
    return _join_patterns(list_test_patterns()).search(path) is not None


def is_source(path: str) -> bool:
    """Return whether `path` is source that a gold patch may change (not documentation or packaging)."""
    return detect_file_language(path) in LANGUAGES and not is_protected(path) and not _NOT_SOURCE.search(path)
