"""Perl: test files that print TAP, run by prove; modules from CPAN by cpanm or from Debian packages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from languages import parsing
from languages.base import Canary, Framework, Language, read_packaged_file
from languages.controls import COMMON_OPPOSITES, ControlSites, pair_words
from languages.draft import PlanDraft
from languages.habits import Habits
from languages.messages import MessageChecks
from languages.perl.loading import HOOK
from languages.perl.plan import COMPILE, TEST_FILE, create_draft, list_test_files, render_plan
from languages.perl.releases import DEFAULT, RELEASES
from languages.scripting.debian import DEBIAN_PACKAGES, SWITCH_DESCRIPTION, use_debian_packages
from languages.scripting.versions import select_next_version
from languages.source_tree import SourceTree
from languages.weak_tests import WeakTestSyntax
from taskdb.records import BuildPlan


def drop_compile(draft: PlanDraft) -> PlanDraft:
    """Do not build the XS code: the project may work without it."""
    return replace(draft, switches=draft.switches - {COMPILE})


def _name_canary(_files: Sequence[str]) -> str:
    return '"$word.t"'


def find_test_files(tree: SourceTree, plan: BuildPlan | None = None) -> list[str]:
    """Return files `t/**/*.t`; with a plan those of its project."""
    if plan is None:
        return sorted(path for path in tree.entries if f"/{path}".find("/t/") >= 0 and path.endswith(".t"))
    return list_test_files(tree, plan.test.folder)


CHECKS = {
    "ok": 1,
    "is": 2,
    "isnt": 2,
    "like": 2,
    "unlike": 2,
    "is_deeply": 2,
    "cmp_ok": 3,
    "cmp_deeply": 2,
    "isa_ok": None,
    "can_ok": None,
    "lives_ok": None,
    "dies_ok": None,
}
"""Functions of Test::More and Test::Deep -> number of arguments before the title."""

PLAN = r"\b((?:use\s+Test::[\w:]+(?:\s+[\d.]+)?|plan)\b\s*\(?\s*)tests\s*=>\s*\d+(?:\s*[-+*]\s*\d+)*(?=\s*[;)}])"
"""A plan of Test::More with a number: `use Test::More tests => 5;`, `plan(tests => 2 + 3)`."""

PERL = Language(
    name="perl",
    title="Perl",
    suffixes=(".pm", ".pl", ".t", ".xs", ".psgi"),
    test_patterns=(r"^x?t/", r"(^|/)t/.*\.(t|pm|pl)$"),
    runner_patterns=(r"(^|/)\.proverc$",),
    test_file_pattern=TEST_FILE,
    releases=RELEASES,
    default_version=DEFAULT,
    frameworks=(
        Framework(
            name="prove",
            shell=read_packaged_file("languages.perl", "prove.sh.j2"),
            report="tap",
            canary=Canary(
                name=_name_canary,
                body=r"""printf 'use Test::More tests => 1;\nis(3 * 4, %s, "is %s");\n' "$sum" "$word" """.rstrip(),
            ),
        ),
    ),
    switches={
        DEBIAN_PACKAGES: SWITCH_DESCRIPTION,
        COMPILE: "Makefile.PL or Build.PL builds the XS code in the tree, and again before a run",
    },
    fallbacks=(use_debian_packages, select_next_version, drop_compile),
    create_draft=create_draft,
    render_plan=render_plan,
    find_test_files=find_test_files,
    syntaxes=(parsing.PERL,),
    weak_tests=WeakTestSyntax(
        skips=r"\bskip(_all)?\b|^plan\b",
        lookups=r"\beval\b\W*(require|use)\b|\b(can_load|can_run|check_install|which)\b",
    ),
    controls=ControlSites(
        checks=CHECKS,
        plan=(PLAN, r"\1'no_plan'"),
        max_instances=1000,
        silent_calls=((r"^(ok|is|isnt|like|unlike|is_deeply|cmp_ok|cmp_deeply)$", "(sub { pass($_[-1]) })->"),),
        opposites={**COMMON_OPPOSITES, **pair_words((("is", "isnt"), ("like", "unlike")))},
    ),
    messages=MessageChecks(literal_calls=frozenset({"quotemeta"})),
    reserved_variables=("PERL5OPT",),
    exploit_files={".proverc": b"--exec true\n"},
    load_hook=HOOK,
    habits=Habits(
        test_commands=r"prove|perl \S*\.t\b",
        output=r"^\s*(print|say|warn)\b",
        output_example='print "here\\n";',
    ),
)
