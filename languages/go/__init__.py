"""Go: `go test`, modules pinned by go.mod and go.sum, toolchain version from CI, go.mod or the change's date."""

from __future__ import annotations

from collections.abc import Sequence

from languages import parsing
from languages.base import Canary, Framework, Language, read_packaged_file
from languages.controls import COMMON_CONDITION_REPORTS, COMMON_REPORTS, ControlSites
from languages.go.counters import COUNTERS, list_benchmarks
from languages.go.loading import HOOK
from languages.go.plan import FALLBACKS, SWITCHES, create_draft, find_test_files, render_plan
from languages.go.releases import DEFAULT, RELEASES, ROOT
from languages.habits import Habits
from languages.messages import PATTERN_CALLS, MessageChecks
from languages.repetition import TestPrograms
from languages.rewriting import SIGNS, Rewrites
from languages.weak_tests import WeakTestSyntax

_CANARY = r"""
    package="$(sed -n 's/^package \([A-Za-z0-9_]*\).*/\1/p' "$folder"/{*_test,*}.go 2>/dev/null | head -n 1)"
    printf 'package %s\n\nimport "testing"\n\nfunc Test_%s(t *testing.T) {\n' "${package:-canary}" "$word"
    printf '\tif 3*4 != %s {\n\t\tt.Fatal("it differs")\n\t}\n}\n' "$sum"
""".strip()


def _name_canary(_files: Sequence[str]) -> str:
    return '"zz_${word}_test.go"'


GO = Language(
    name="go",
    title="Go",
    suffixes=(".go",),
    imports_folders=True,
    test_patterns=(
        r"_test\.go$",
        r"(^|/)testdata/",
        r"^test/.*\.go$",  # below the top level often a package that others import
    ),
    test_file_pattern=r"_test\.go$",
    bin_folders=(f"{ROOT}/bin",),
    releases=RELEASES,
    default_version=DEFAULT,
    frameworks=(
        Framework(
            name="go-test",
            shell=read_packaged_file("languages.go", "gotest.sh.j2"),
            report="gojson",
            canary=Canary(
                name=_name_canary,
                body=_CANARY,
            ),
            programs=TestPrograms(
                tests=r".*_test\.go::Test\w*",  # subtests run with their test
                benchmark_files=r".*_test\.go",
                list_benchmarks=list_benchmarks,
            ),
        ),
    ),
    switches=SWITCHES,
    fallbacks=FALLBACKS,
    version_files=(r"(^|/)go\.mod$",),
    create_draft=create_draft,
    render_plan=render_plan,
    find_test_files=find_test_files,
    test_command="go test",
    syntaxes=(parsing.GO,),
    controls=ControlSites(
        max_instances=1000,
        kilobyte_seconds=0.008,
        test_names=r"^(Test|Benchmark|Example|Fuzz)",
        reports=rf"{COMMON_REPORTS}|^(t|b|tb)\.(Error|Fatal|Log|Skip|Run)|^fmt\.",
        silent_calls=(
            (r"^(t|b|tb|c)\.(Error|Fatal)$", r"\1.Log"),
            (r"^(t|b|tb|c)\.(Error|Fatal)f$", r"\1.Logf"),
            (r"^(t|b|tb|c)\.(Fail|FailNow)$", r"\1.Helper"),
            (
                r"^(assert|require|is|r|a|s|suite|s\.Require\(\))\.[A-Z]\w*$",
                "func(...interface{}) bool { return true }",
            ),
        ),
        # The report counts a message that begins so as a panic, as testify writes it.
        crash_guard=(
            r"\(\s*([A-Za-z]\w*)\s+\*testing\.[TBF]\s*\)",
            r' defer func() { if fault := recover(); fault != nil { \1.Fatalf("test panicked: %v", fault) } }();',
        ),
        condition_reports=rf"{COMMON_CONDITION_REPORTS}|\b(t|b|tb|c)\.(Error|Fatal|Fail)",
    ),
    weak_tests=WeakTestSyntax(
        skips=r"\.Skip(f|Now)?$",
        lookups=r"\bexec\.LookPath\(|\bplugin\.Open\(",
    ),
    messages=MessageChecks(
        pattern_calls=rf"{PATTERN_CALLS}|MatchString|MustCompile",
        literal_calls=frozenset({"QuoteMeta"}),
    ),
    rewrites=Rewrites(signs=SIGNS),
    exploit_files={"go.env": b"GOFLAGS=-run=Nothing\n"},
    exploit_programs=("go",),
    load_hook=HOOK,
    counters=COUNTERS,
    habits=Habits(
        test_commands=r"go test",
        output=r"\bfmt\.Print|\bprintln\(",
        output_example='fmt.Println("here")',
        function_example="\nfunc addedByHand(x int) int {\n{body}\n    return x\n}",
    ),
)
