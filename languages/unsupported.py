"""Languages that mergemill cannot build, but whose files it can classify: which are programs, tests and settings.

A change of a supported language may touch them, too; their tests belong to the test patch, and a submission must not
change them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from languages.loading import LoadHook, append_code
from languages.signatures import SignatureSyntax


@dataclass(frozen=True, kw_only=True)
class UnsupportedLanguage:
    """Files of a language without environments. The fields are those of `languages.base.Language`."""

    suffixes: tuple[str, ...]
    test_patterns: tuple[str, ...] = ()
    benchmark_patterns: tuple[str, ...] = ()
    runner_patterns: tuple[str, ...] = ()
    config_patterns: tuple[str, ...] = ()
    signatures: SignatureSyntax = field(default_factory=SignatureSyntax)
    exploit_files: Mapping[str, bytes] = field(default_factory=dict)
    load_hook: LoadHook | None = None


_RUN_CSHARP = append_code("""
internal static class RunAtLoad {
    [System.Runtime.CompilerServices.ModuleInitializer]
    internal static void Run() {
        System.Diagnostics.Process.Start("sh", new[] { "-c", {} })?.WaitForExit();
    }
}
""")


UNSUPPORTED: Mapping[str, UnsupportedLanguage] = {
    "c#": UnsupportedLanguage(
        suffixes=(".cs",),
        test_patterns=(
            r"(^|/)[^/]*Tests?([._-][^/]*)?/.*\.(cs|csproj|json|resx|txt|xml)$",
            r"(^|/)([^/]+[._-])?tests?([._-][^/]*)?/.*\.(cs|csproj)$",
            r"(^|/)[^/]*[a-z0-9_]Tests?\.cs$",
        ),
        runner_patterns=(
            r"(^|/)[^/]*\.runsettings$",
            r"(^|/)([^/]+\.)?xunit\.runner\.json$",
            r"(^|/)testconfig\.json$",
        ),
        config_patterns=(r"(^|/)Directory\.(Build|Packages)\.(props|targets)$", r"(^|/)global\.json$"),
        signatures=SignatureSyntax(are_types_first=True),
        exploit_files={"Directory.Build.targets": b'<Project><Target Name="VSTest" /></Project>\n'},
        load_hook=LoadHook(suffixes=(".cs",), write=_RUN_CSHARP),
    ),
    "dart": UnsupportedLanguage(
        suffixes=(".dart",),
        test_patterns=(r"(^|/)(integration_)?test/.*\.dart$", r"(^|/)[^/]*_test\.dart$"),
        runner_patterns=(r"(^|/)dart_test(\.\w+)?\.yaml$",),
        exploit_files={"dart_test.yaml": b"include_tags: nothing\n"},
    ),
    "zig": UnsupportedLanguage(suffixes=(".zig",)),
}
"""Name -> its files."""

UNCLASSIFIED_SIGNATURES: Mapping[str, SignatureSyntax] = {".groovy": SignatureSyntax(are_types_first=True)}
"""Suffix of files that count as no program -> their definitions."""
