"""The interface of a programming language: a `Language` value holds everything that is specific to it.

`languages.registry` lists all languages. No other part of the system refers to a language by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from importlib import resources
from typing import Protocol

from languages.code import CodeDifference
from languages.controls import ControlSites
from languages.draft import Dependency, PlanDraft, PlanningContext
from languages.facts import strip_version
from languages.habits import Habits
from languages.lines import LineSyntax
from languages.loading import LoadHook
from languages.messages import MessageChecks
from languages.modules import ModuleReader
from languages.parsing import Syntax
from languages.probes import Probe
from languages.repetition import RoundsPlugin, TestPrograms
from languages.rewriting import Rewrites
from languages.signatures import SignatureSyntax
from languages.source_tree import SourceTree
from languages.test_faults import FindTestFault
from languages.test_faults.text import find_test_fault
from languages.weak_tests import WeakTestSyntax
from languages.work import WorkCounters
from taskdb.records import BuildPlan

COMMON_TEST_PATTERNS: tuple[str, ...] = (r"(^|/)(tests|unit_?tests?|_tests?|testsuite|test_suite)/",)
"""Test folders in every language. `test` and `spec` are missing because they are often source below the top level
(django/test, numpy/testing); each language has its own patterns for them."""

Fallback = Callable[[PlanDraft], PlanDraft]
"""Relaxes a choice of a draft that could not be built or tested; returns the same draft if there is none to relax."""


DEFAULT_TEST_COMMAND = "make test"
"""Command that runs the tests of a project in a language of which no more is known."""
NARROWING = "select_changed_packages"
"""Name of the fallback that restricts a draft to the packages of a monorepo that the change touches and their
dependencies; tests of the others do not run."""


@dataclass(frozen=True, kw_only=True)
class Release:
    """A version of a language and the sources of its base image."""

    version: str
    """Version as projects specify it, such as `3.11`, `1.22` or `17`."""
    official: str
    """Name of the official image, such as `golang:1.22-bookworm`; dockerfiles/catalog.toml may pin its digest."""
    released: date | None = None
    """Date of the first final release, for the selection by date."""
    suite: str | None = None
    """Debian release from which a base can be made: its `packages` are this version, or it runs `toolchain`."""
    packages: tuple[str, ...] = ()
    """Debian packages in addition to those of every base."""
    toolchain: str = ""
    """Shell commands that install the toolchain from a package registry; run as root, with network."""
    probe: str = "true"
    """Shell command that fails unless the language works in the base, such as `go version`."""


@dataclass(frozen=True, kw_only=True)
class Canary:
    """Template of a test that passes or fails as required, in a file with an unpredictable name."""

    name: Callable[[Sequence[str]], str]
    """Returns a Bash word for the file's name, given the test files of the run; it has their form, so that the runner
    collects it. The word may use $word, 32 hexadecimal digits."""
    body: str
    """Bash that prints the file: a test whose name contains $word and that asserts 3 * 4 == $sum ($sum is 12 or 13). It
    may also use $folder (relative to the tree, `.` for the root) and $file (including the folder)."""


def read_packaged_file(package: str, name: str) -> str:
    """Return the text of a file that a package such as `languages.go` has: a shell template, a canary, a program."""
    return resources.files(package).joinpath(name).read_text(encoding="utf-8")


@dataclass(frozen=True, kw_only=True)
class Framework:
    """Test framework: how its command is built, and the format of its report."""

    name: str
    """Value of `TestCommand.framework`; unique among all languages."""
    shell: str
    """Jinja2 template of Bash that sets the array `command`. Template variables: argv, paths and folder of the
    TestCommand, and `harness(NAME)` (base64 of a file of evaluation/harness). Bash variables: $out (folder for reports,
    owned by the tests' user), `reports` (`"${reports[@]}" asset NAME` prints a reporter of the harness), $report (owned
    by root), $workdir, $seed and the array `arguments` (test files to run, relative to the tree; empty for all). The
    command runs in `folder`."""
    report: str | None = None
    """Format in which `guest/harness/reports` reads the files in $out; None if the runner itself writes
    $out/junit.xml in the form of pytest."""
    canary: Canary | None = None
    """None if the framework does not collect added test files."""
    reports_load_errors: bool = False
    """Whether its report lists files that cannot be loaded: a run without a report did not end by itself."""
    usage_error_code: int | None = None
    """Exit code of a run that ends before any test, without a report; such a run has not died."""
    interrupted_code: int | None = None
    """Exit code of a run that a test ended, with a report of the tests before it."""
    version_lines: tuple[str, ...] = ()
    """Regexes of the lines of a run's log that name the versions of the runner (the first) and of its plug-ins."""
    programs: TestPrograms | None = None
    """Tests that are compiled into programs, which can be run many times; None for other frameworks."""
    rounds_plugin: RoundsPlugin | None = None
    """Plug-in that runs tests many times. With neither this nor programs, there are no performance tasks."""

    @property
    def selects_files(self) -> bool:
        """Whether it can run some test files alone. Others run the whole suite, whatever files are given."""
        return "arguments" in self.shell

    @property
    def takes_paths(self) -> bool:
        """Whether it runs the plan's paths, as if they were given as test files, where none are given."""
        return "|| arguments=({% for path in paths %}" in self.shell


class TestFileFinder(Protocol):
    """Signature of `Language.find_test_files`."""

    def __call__(self, tree: SourceTree, plan: BuildPlan | None = None) -> list[str]:
        """Return the sorted files that define tests: those that a full run of the plan collects, or all without a plan.

        Empty for a plan whose reports cannot be attributed to files.
        """


@dataclass(frozen=True, kw_only=True)
class Language:
    """A programming language."""

    name: str
    """Identifier in plans, records and on the command line: `go`."""
    title: str
    """Display name: `Go`."""
    suffixes: tuple[str, ...]
    """Suffixes of program files, such as `.go`."""
    test_patterns: tuple[str, ...]
    """Patterns of test files, fixtures and snapshots, relative to the root of the tree; valid both as POSIX-extended
    (grep -E) and as Python regex. They must not match sources of other languages: end them with a suffix if needed."""
    benchmark_patterns: tuple[str, ...] = ()
    """Patterns of files of benchmarks alone, which a submission must not change and no run of tests collects."""
    runner_patterns: tuple[str, ...] = ()
    """Patterns of test runner configuration, which a submission must not change."""
    config_patterns: tuple[str, ...] = ()
    """Patterns of files that may contain test runner configuration among other settings (package.json): edits of a
    submission are reverted, and the gold patch's version belongs to the test patch."""
    test_file_pattern: str
    """Regex of paths in which a framework looks for tests."""
    kept_folders: tuple[str, ...] = ()
    """Names of folders in the tree that dependency steps fill and tests use (`node_modules`)."""
    bin_folders: tuple[str, ...] = ()
    """Folders at the front of PATH."""
    releases: tuple[Release, ...]
    """Supported versions, oldest first."""
    default_version: str
    """Version of the base image that is built if none is given."""
    frameworks: tuple[Framework, ...]
    switches: Mapping[str, str] = field(default_factory=dict)
    """Switch of a draft -> one-line description."""
    fallbacks: tuple[Fallback, ...] = ()
    """Fallbacks for a plan that fails for an unknown reason, in this order."""
    find_conflicts: Callable[[str, PlanDraft], Sequence[Dependency]] = lambda _log, _draft: ()
    """Returns the dependencies whose versions the log of a failed install blames and that the project does not declare
    itself, those to give up first in front. Pure."""
    find_requirement_fault: Callable[[str], str] = lambda _text: ""
    """Returns why a text is no requirement that a repair may add; empty if it is one. Pure."""
    parse_package_name: Callable[[str], str] = strip_version
    """Returns the name by which the packages of two requirements are compared. Pure."""
    excluding_options: tuple[str, ...] = ()
    """Regexes of options of its test runners that leave out tests; a repair must not add them, in any language."""
    replacing_options: tuple[str, ...] = ()
    """Regexes of options that replace the project's tests or their report."""
    own_version_variables: tuple[str, ...] = ()
    """Names of variables of a plan that hold the version of the project itself."""
    reserved_variables: tuple[str, ...] = ()
    """Regexes of whole names of variables that would replace the test runner or the program that starts it."""
    version_files: tuple[str, ...] = ()
    """Patterns of files, besides CI configuration, in which a project declares the versions that it supports."""
    create_draft: Callable[[SourceTree, PlanningContext], PlanDraft]
    """Returns a draft of the build plan. Pure: the same tree and context give the same draft. Raises NoPlanError if
    there is no project of this language with tests, or no suitable version."""
    render_plan: Callable[[PlanDraft], BuildPlan]
    """Returns the build plan of a draft. Pure."""
    find_test_fault: FindTestFault = find_test_fault
    """Returns the first fault of a test file that a model wrote, such as reading the program's source. Pure."""
    find_test_files: TestFileFinder
    modules: ModuleReader | None = None
    """Modules that files define and import; None if tests of a changed file are not found by their imports."""
    imports_folders: bool = False
    """Whether an import names a folder, whose files are imported together, instead of a file."""
    interpreter: str = ""
    """Name of the interpreter's file, with `{version}`, in /usr/local/bin of official images and /usr/bin of Debian's.
    Bases of such a language may also be made from interpreters of this machine. Empty for other languages."""
    test_command: str = DEFAULT_TEST_COMMAND
    """Command of the usual test runner, to which test files are appended: the tool of simulated episodes."""
    test_seconds: float | None = None
    """Seconds after which a run of tests is stopped; None for the setting `test_timeout`."""
    syntaxes: tuple[Syntax, ...] = ()
    """Grammars of tree-sitter for the language's files; without any, its tests have no negative controls."""
    controls: ControlSites = field(default_factory=ControlSites)
    """Tests and assertions that can be sabotaged."""
    messages: MessageChecks = field(default_factory=MessageChecks)
    """How tests expect the message of an error: what the judge of statements reads."""
    weak_tests: WeakTestSyntax = field(default_factory=WeakTestSyntax)
    """How tests skip where a package is missing, and by which names they fail."""
    signatures: SignatureSyntax = field(default_factory=SignatureSyntax)
    """Definitions in patches: the interfaces that the judge of statements finds, and the functions that are tests."""
    lexer: str = ""
    """Name of the language's lexer in Pygments, where it differs from `name`. The lexer splits parts of files, which a
    grammar cannot parse, into strings, comments and words."""
    lexer_options: Mapping[str, bool] = field(default_factory=dict)
    """Options of the lexer."""
    lines: LineSyntax = field(default_factory=LineSyntax)
    """Lines that are comments, imports or definitions: where a review cannot place a fault."""
    compare_code: Callable[[bytes, bytes], CodeDifference] | None = None
    """Returns the greatest difference between two versions of a file of the grammar. None if no code separates layout
    and documentation from the rest. Pure."""
    rewrites: Rewrites = field(default_factory=Rewrites)
    """Rewrites of a source file that keep its behaviour: tests that look at its text fail."""
    probes: tuple[Probe, ...] = ()
    """Submissions that must earn 0, made with knowledge of the language's test runners; each certificate has them."""
    exploits: tuple[Probe, ...] = ()
    """Further ones, for audits with all exploits."""
    probed_files: tuple[str, ...] = ()
    """Patterns of files of the base tree that these change, besides tests and the files of the gold patch."""
    exploit_files: Mapping[str, bytes] = field(default_factory=dict)
    """Path -> content of configuration that ends the language's test runners, or has them select nothing."""
    exploit_programs: tuple[str, ...] = ()
    """Names of programs that start the tests, in whose place an exploit puts others."""
    load_hook: LoadHook | None = None
    """Code that runs a command when a file is loaded, of which exploits are made; None if there is none."""
    habits: Habits = field(default_factory=Habits)
    """Commands that run tests, and output for debugging, as people write them."""
    counters: WorkCounters | None = None
    """Counters of the work that tests do, for frameworks with programs; needs a grammar. None if there are none."""
