"""Create a plan draft from a Perl repository and render it as a build plan."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial

from languages.draft import Dependency, NoPlanError, PlanDraft, PlanningContext, Role
from languages.facts import SourcedValue
from languages.perl import modules
from languages.perl.releases import RELEASES
from languages.rendering import LOCAL_SETTINGS, build_plan, list_external_content
from languages.scripting.ci import find_system_packages
from languages.scripting.debian import DEBIAN_PACKAGES, render_debian_install, render_registry_install
from languages.scripting.versions import VersionBounds, rank_versions, version_key
from languages.services import add_ci_services
from languages.source_tree import SourceTree
from languages.workflows import read_jobs
from taskdb.records import BuildPlan, Evidence, TestCommand

COMPILE = "compile"
TEST_FILE = r"(^|/)t/.*\.t$"
INSTALLED = "/opt/perl5"
"""Folder of installed CPAN modules, separate from the interpreter's."""
_KNOWN = "Try::Tiny"
"""A module that CPAN certainly has: if it is not found, CPAN is unreachable."""
_NO_DATES = "cpanm installs the newest versions: those that the project requires are minimums"


def create_draft(tree: SourceTree, context: PlanningContext) -> PlanDraft:
    """Return a draft of the build plan; see `languages.base.Language.create_draft`."""
    folder = find_project_folder(tree, context.changed_paths)
    tests = list_test_files(tree, folder)
    if not tests:
        raise NoPlanError("no file t/*.t")
    prefix = f"{folder}/" if folder else ""
    required, recommended = modules.find_named_modules(tree, folder)
    named = {module.text.partition("~")[0] for module in (*required, *recommended)}
    used = [module for module in modules.find_used_modules(tree, folder) if module.text not in named]
    versions = rank_versions(RELEASES, context, list(_read_named_versions(tree)), list(_read_bounds(tree, prefix)))
    draft = PlanDraft(
        language="perl",
        name=_read_project_name(tree, prefix),
        versions=versions,
        day=context.day,
        exclude_newer=context.day + timedelta(days=1),
        test=TestCommand(framework="prove", argv=("prove",), paths=(f"{prefix}t",), folder=folder),
        dependencies=(
            *(Dependency(role=Role.RUNTIME, source=module) for module in required),
            *(Dependency(role=Role.OPTIONAL, source=module) for module in (*recommended, *used)),
        ),
        system_packages=tuple(find_system_packages(tree).values()),
        env=(*LOCAL_SETTINGS, ("PERL_USE_UNSAFE_INC", "1"), ("NONINTERACTIVE_TESTING", "1")),
        switches=frozenset({COMPILE} if tree.glob(f"{prefix}*.xs") else ()),
        evidence=(
            Evidence(choice="test.paths", value=f"{prefix}t", path=tests[0], line=0),
            Evidence(choice="pin", value="ranges", path="(registry)", line=0, note=_NO_DATES),
            *list_external_content(tree),
        ),
    )
    return add_ci_services(draft, read_jobs(tree))


def list_test_files(tree: SourceTree, folder: str) -> list[str]:
    """Return files `t/**/*.t` of the project in `folder`, sorted."""
    prefix = f"{folder}/" if folder else ""
    return sorted(path for path in tree.entries if path.startswith(f"{prefix}t/") and path.endswith(".t"))


def find_project_folder(tree: SourceTree, changed_paths: Sequence[str]) -> str:
    """Return the folder above the `t` with the changed tests, else the root, else the only folder that has a `t`."""
    tests = [path for path in changed_paths if re.search(TEST_FILE, path)]
    parents = {re.sub(r"(^|/)t/.*", "", path) for path in tests}
    if len(parents) == 1:
        return parents.pop()
    if tree.exists("t"):
        return ""
    folders = {posixpath.dirname(folder) for folder in tree.folders if posixpath.basename(folder) == "t"}
    return folders.pop() if len(folders) == 1 else ""


def _read_project_name(tree: SourceTree, prefix: str) -> str:
    text = tree.read(f"{prefix}Makefile.PL") + tree.read(f"{prefix}Build.PL") + tree.read(f"{prefix}dist.ini")
    match = re.search(r"""(?:\bNAME|\bmodule_name|^name)\W+(?:=>\s*)?["']?([A-Z][\w:-]*)""", text, re.MULTILINE)
    return match[1].replace("::", "-") if match else ""


def _read_named_versions(tree: SourceTree) -> Iterator[SourcedValue]:
    for path in (".perl-version", ".tool-versions"):
        for number, line in enumerate(tree.read(path).splitlines(), 1):
            if path == ".perl-version" or line.startswith("perl "):
                yield SourcedValue(text=line, path=path, line=number)
    for job in read_jobs(tree):
        values = [value for name in ("perl-version", "perl", "perl_version") for value in job.values.get(name, ())]
        versions = [(value.text, value.line) for value in values]
        versions += [(use.text, use.line) for use in job.uses if re.search(r"(^|/)(perl|perl-tester):\d", use.text)]
        yield from (
            SourcedValue(text=text, path=job.path, line=line) for text, line in versions if not job.is_auxiliary
        )


def _read_bounds(tree: SourceTree, prefix: str) -> Iterator[VersionBounds]:
    pattern = r"""(?:MIN_PERL_VERSION|requires?\s*\(?\s*["']perl["']|["']?perl["']?)\s*(?:=>|,|=)\s*["']?v?(5[\d._]*)"""
    for name in ("Makefile.PL", "Build.PL", "cpanfile", "dist.ini"):
        for number, line in enumerate(tree.read(f"{prefix}{name}").splitlines(), 1):
            if match := re.search(pattern, line):
                minimum = _normalize_version(match[1])
                source = SourcedValue(text=match[1], path=f"{prefix}{name}", line=number)
                yield VersionBounds(allows=partial(_is_at_least, minimum), source=source)


def _is_at_least(least: str, version: str) -> bool:
    return version_key(version) >= version_key(least)


def _normalize_version(version: str) -> str:
    """Return `5.10` for `5.010001`, `5.10.1` and `5.010`."""
    major, _, rest = version.partition(".")
    number = rest[:3] if re.fullmatch(r"0\d\d.*|\d{6}", rest) else rest.partition(".")[0]
    return f"{major}.{int(number.rstrip('_') or 0)}"


# ------------------------------------------------------------------------------------------------ rendering


def render_plan(draft: PlanDraft) -> BuildPlan:
    """Return the build plan of a draft; see `languages.base.Language.render_plan`."""
    if DEBIAN_PACKAGES in draft.switches:
        names = dict.fromkeys(d.source.text.partition("~")[0] for d in draft.dependencies)
        steps: tuple[str, ...] = (render_debian_install([(name, modules.list_debian_names(name)) for name in names]),)
        extra: tuple[tuple[str, str], ...] = ()
    else:
        steps, extra = tuple(_render_registry_steps(draft)), (("PERL5LIB", f"{INSTALLED}/lib/perl5"),)
    build = (
        "if [ -f Build.PL ]; then perl Build.PL && ./Build; else perl Makefile.PL && make -s; fi"
        if COMPILE in draft.switches
        else ""
    )
    if build and draft.test.folder:
        build = f"(cd {shlex.quote(draft.test.folder)} && {build})"
    return build_plan(replace(draft, env=(*draft.env, *extra)), steps, (build,) if build else ())


def _render_registry_steps(draft: PlanDraft) -> Iterator[str]:
    cpanm = f"cpanm --quiet --notest --local-lib-contained {INSTALLED}"
    required = [d.source.text for d in draft.dependencies if d.role is not Role.OPTIONAL]
    optional = [d.source.text for d in draft.dependencies if d.role is Role.OPTIONAL]
    report_unreachable = f"{{ cpanm --info {_KNOWN} > /dev/null 2>&1 || echo 'CPAN: could not reach host'; false; }}"
    if required:
        yield render_registry_install(
            "CPAN", f"{cpanm} {' '.join(shlex.quote(module) for module in required)} || {report_unreachable}"
        )
    if optional:
        words = " ".join(shlex.quote(module) for module in optional)
        install_each = f'for one in {words}; do {cpanm} $one || echo "$one cannot be installed"; done'
        yield render_registry_install(
            "CPAN", f"{{ cpanm --info {_KNOWN} > /dev/null || {report_unreachable}; }} && {{ {install_each}; }}"
        )
