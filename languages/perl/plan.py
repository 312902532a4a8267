"""Perl: from a tree to a draft, and from a draft to a plan."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta

from languages.draft import Context, Dependency, Draft, NoPlanError, Role
from languages.facts import Wanted
from languages.perl import modules
from languages.perl.releases import RELEASES
from languages.rendering import LOCAL_SETTINGS, elsewhere_evidence, plan_of
from languages.scripting.ci import system_packages
from languages.scripting.debian import DEBIAN_PACKAGES, from_debian, from_registry
from languages.scripting.versions import Bounds, candidates, key
from languages.services import with_services
from languages.tree import Tree
from languages.workflows import jobs
from taskdb.records import BuildPlan, Evidence, TestCommand

COMPILE = "compile"
TEST_FILE = r"(^|/)t/.*\.t$"
INSTALLED = "/opt/perl5"
"""Where modules of CPAN are installed, beside the interpreter."""
_KNOWN = "Try::Tiny"
"""A module that CPAN has: when it cannot be found, CPAN cannot be reached."""
_NO_DATES = "cpanm takes what is newest: the versions that the project names are the least"


def draft(tree: Tree, context: Context) -> Draft:
    """As `languages.base.Language.draft`."""
    folder = project_folder(tree, context.touched)
    tests = test_files(tree, folder)
    if not tests:
        raise NoPlanError("no file t/*.t")
    at = f"{folder}/" if folder else ""
    named = modules.named(tree, folder)
    seen = modules.used(tree, folder)
    known = {wanted.text.partition("~")[0] for wanted in named}
    versions = candidates(RELEASES, context, list(_named_versions(tree)), list(_bounds(tree, at)))
    made = Draft(
        language="perl",
        name=_name(tree, at),
        versions=versions,
        day=context.day,
        exclude_newer=context.day + timedelta(days=1),
        test=TestCommand(framework="prove", argv=("prove",), paths=(f"{at}t",), folder=folder),
        dependencies=(
            *(Dependency(role=Role.RUNTIME, wanted=wanted) for wanted in named),
            *(Dependency(role=Role.OPTIONAL, wanted=wanted) for wanted in seen if wanted.text not in known),
        ),
        system_packages=tuple(system_packages(tree).values()),
        env=(*LOCAL_SETTINGS, ("PERL_USE_UNSAFE_INC", "1"), ("NONINTERACTIVE_TESTING", "1")),
        switches=frozenset({COMPILE} if tree.glob(f"{at}*.xs") else ()),
        evidence=(
            Evidence(choice="test.paths", value=f"{at}t", path=tests[0], line=0),
            Evidence(choice="pin", value="ranges", path="(registry)", line=0, note=_NO_DATES),
            *elsewhere_evidence(tree),
        ),
    )
    return with_services(made, jobs(tree))


def test_files(tree: Tree, folder: str) -> list[str]:
    """Files `t/**/*.t` of the project in `folder`, sorted."""
    at = f"{folder}/" if folder else ""
    return sorted(path for path in tree.entries if path.startswith(f"{at}t/") and path.endswith(".t"))


def project_folder(tree: Tree, touched: Sequence[str]) -> str:
    """The folder above the `t` that the touched tests lie in, or the root, or the only one that has a `t`."""
    tests = [path for path in touched if re.search(TEST_FILE, path)]
    above = {re.sub(r"(^|/)t/.*", "", path) for path in tests}
    if len(above) == 1:
        return above.pop()
    if tree.exists("t"):
        return ""
    found = {posixpath.dirname(folder) for folder in tree.folders if posixpath.basename(folder) == "t"}
    return found.pop() if len(found) == 1 else ""


def _name(tree: Tree, at: str) -> str:
    text = tree.read(f"{at}Makefile.PL") + tree.read(f"{at}Build.PL") + tree.read(f"{at}dist.ini")
    match = re.search(r"""(?:\bNAME|\bmodule_name|^name)\W+(?:=>\s*)?["']?([A-Z][\w:-]*)""", text, re.MULTILINE)
    return match[1].replace("::", "-") if match else ""


def _named_versions(tree: Tree) -> Iterator[Wanted]:
    for path in (".perl-version", ".tool-versions"):
        for number, line in enumerate(tree.read(path).splitlines(), 1):
            if path == ".perl-version" or line.startswith("perl "):
                yield Wanted(text=line, path=path, line=number)
    for job in jobs(tree):
        values = [value for name in ("perl-version", "perl", "perl_version") for value in job.values.get(name, ())]
        found = [(value.text, value.line) for value in values]
        found += [(use.text, use.line) for use in job.uses if re.search(r"(^|/)(perl|perl-tester):\d", use.text)]
        yield from (Wanted(text=text, path=job.path, line=line) for text, line in found if not job.is_beside)


def _bounds(tree: Tree, at: str) -> Iterator[Bounds]:
    pattern = r"""(?:MIN_PERL_VERSION|requires?\s*\(?\s*["']perl["']|["']?perl["']?)\s*(?:=>|,|=)\s*["']?v?(5[\d._]*)"""
    for name in ("Makefile.PL", "Build.PL", "cpanfile", "dist.ini"):
        for number, line in enumerate(tree.read(f"{at}{name}").splitlines(), 1):
            if match := re.search(pattern, line):
                least = _plain(match[1])
                wanted = Wanted(text=match[1], path=f"{at}{name}", line=number)
                yield Bounds(allows=lambda version, least=least: key(version) >= key(least), wanted=wanted)  # type: ignore[misc]


def _plain(version: str) -> str:
    """`5.10` of `5.010001`, `5.10.1` and `5.010`."""
    whole, _, rest = version.partition(".")
    number = rest[:3] if re.fullmatch(r"0\d\d.*|\d{6}", rest) else rest.partition(".")[0]
    return f"{whole}.{int(number.rstrip('_') or 0)}"


# ------------------------------------------------------------------------------------------------ rendering


def render(made: Draft) -> BuildPlan:
    """As `languages.base.Language.render`."""
    if DEBIAN_PACKAGES in made.switches:
        names = dict.fromkeys(d.wanted.text.partition("~")[0] for d in made.dependencies)
        steps: tuple[str, ...] = (from_debian([(name, modules.debian_names(name)) for name in names]),)
        extra: tuple[tuple[str, str], ...] = ()
    else:
        steps, extra = tuple(_registry_steps(made)), (("PERL5LIB", f"{INSTALLED}/lib/perl5"),)
    build = (
        "if [ -f Build.PL ]; then perl Build.PL && ./Build; else perl Makefile.PL && make -s; fi"
        if COMPILE in made.switches
        else ""
    )
    if build and made.test.folder:
        build = f"(cd {shlex.quote(made.test.folder)} && {build})"
    return plan_of(replace(made, env=(*made.env, *extra)), steps, (build,) if build else ())


def _registry_steps(made: Draft) -> Iterator[str]:
    cpanm = f"cpanm --quiet --notest --local-lib-contained {INSTALLED}"
    wanted = [d.wanted.text for d in made.dependencies if d.role is not Role.OPTIONAL]
    optional = [d.wanted.text for d in made.dependencies if d.role is Role.OPTIONAL]
    told = f"{{ cpanm --info {_KNOWN} > /dev/null 2>&1 || echo 'CPAN: could not reach host'; false; }}"
    if wanted:
        yield from_registry("CPAN", f"{cpanm} {' '.join(shlex.quote(one) for one in wanted)} || {told}")
    if optional:
        words = " ".join(shlex.quote(one) for one in optional)
        each = f'for one in {words}; do {cpanm} $one || echo "$one cannot be installed"; done'
        yield from_registry("CPAN", f"{{ cpanm --info {_KNOWN} > /dev/null || {told}; }} && {{ {each}; }}")
