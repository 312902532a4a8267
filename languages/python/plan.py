"""From what a Python repository says to a draft, and from a draft to the plan; both pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import date

from packaging.version import InvalidVersion, Version

from languages.draft import Context, Dependency, Draft, NoPlanError, Role
from languages.facts import Detector, Fact, Kind, Wanted
from languages.python import ci, dependencies, testing, tox, versions
from languages.python.project import Project, read_project
from languages.python.requirements import conda_python
from languages.python.servers import with_servers
from languages.python.switches import INSTALL_DEPENDENCIES, PACKAGED
from languages.rendering import LOCAL_SETTINGS, elsewhere_evidence, plan_of, quoted
from languages.tree import Tree
from taskdb.records import BuildPlan, Evidence, TestCommand

DETECTORS: tuple[Detector, ...] = (
    ci.github,
    ci.travis,
    ci.gitlab,
    ci.circle,
    conda_python,
    tox.tox,
    tox.nox,
    tox.python_version,
    tox.makefile,
)
"""In the order of trust: what CI runs is kept working, what a file merely says may be old."""

VENV = "/opt/venv"
PYTHON = f"{VENV}/bin/python"

SYSTEM_PACKAGES = frozenset(
    {
        "graphviz", "libxml2-dev", "libxslt1-dev", "libxslt-dev", "libffi-dev", "libssl-dev", "libgeos-dev",
        "libyaml-dev",
        "libhdf5-dev", "libnetcdf-dev", "libsqlite3-dev", "libpq-dev", "libmagic1", "libsndfile1", "libgmp-dev",
        "zlib1g-dev", "libjpeg-dev", "ffmpeg", "imagemagick", "locales", "gettext", "subversion", "mercurial",
    }
)  # fmt: skip
"""Of what CI installs, the packages that exist in Debian under this name and that tests may need."""

NOT_BEFORE = {"atomicwrites": date(2022, 7, 9), "setuptools": date(2019, 3, 7), "wheel": date(2019, 3, 7)}
"""Packages that are taken up to this day whatever the date: atomicwrites was deleted and uploaded again in 2022, and uv
builds source distributions with no setuptools older than 40.8, which the wheel of its time must go with."""

NO_COMPILER = "CC=false CXX=false"
"""For optional packages: worth a download, not compiling them and theirs; pure sources install all the same."""

ENV = (*LOCAL_SETTINGS, ("PYTHONDONTWRITEBYTECODE", "1"))
_INI_OVERRIDE_SINCE = date(2016, 8, 19)
"""pytest 3.0, the first that knows `-o`."""


def draft(tree: Tree, context: Context) -> Draft:
    """All choices for the tree.

    Raises:
        NoPlanError: there is no Python project with tests, or no Python for it.
    """
    if not any(path.endswith(".py") for path in tree.entries):
        raise NoPlanError("no Python file in the tree")
    if not testing.defining_files(tree):
        raise NoPlanError("no file in the tree defines tests")
    project, day = read_project(tree), context.day
    facts = [fact for detector in DETECTORS for fact in detector(tree)]
    pythons = versions.candidates([*facts, *project.facts], context.available(), day)
    if not pythons:
        raise NoPlanError("this machine has no Python that fits")
    config = testing.PytestConfig(tree)
    pytest = testing.uses_pytest(tree, facts, dependencies.everything(tree, project, facts), config)
    settings = tree.read(config.path) if config.path else ""
    modules = tuple(testing.configured_modules(config, settings)) if pytest else ()
    found = dependencies.collect(tree, project, facts, pytest=pytest is not None, configured=modules)
    test, place = testing.command(tree, facts, config, pytest=pytest is not None)
    if day < _INI_OVERRIDE_SINCE:
        test = test.model_copy(update={"argv": test.argv[:1]} if pytest else {})
    words = config.words("addopts")
    options = words if day < _INI_OVERRIDE_SINCE else testing.kept_options(words)
    extra = [replace(pytest, text="pytest")] if pytest else []
    extra += testing.plugins(config, options, settings)
    found += _plugins(found, extra)
    made = Draft(
        language="python",
        name=project.name,
        versions=tuple(pythons),
        day=day,
        exclude_newer=day.replace(day=1),
        dependencies=tuple(found),
        switches=frozenset({PACKAGED} if project.packaged else ()),
        system_packages=_system_packages(facts),
        env=(
            *LOCAL_SETTINGS,
            ("PYTHONDONTWRITEBYTECODE", "1"),
            *_version_environment(tree, project, context.version),
            *_import_path(tree, project),
        ),
        test=test,
        evidence=(*_test_evidence(test, place, pytest), *elsewhere_evidence(tree)),
    )
    return with_servers(made, tree)


def _plugins(found: Sequence[Dependency], extra: Sequence[Wanted]) -> list[Dependency]:
    """Test runner and plugins that are missing so far, each by the first place that asks for it."""
    have = {d.wanted.name for d in found}
    first = {wanted.name: wanted for wanted in reversed(extra)}
    return [Dependency(role=Role.TEST, wanted=w) for name, w in reversed(first.items()) if name not in have]


def _system_packages(facts: Sequence[Fact]) -> tuple[Wanted, ...]:
    found = {
        fact.value: Wanted(text=fact.value, path=fact.path, line=fact.line)
        for fact in reversed(facts)
        if fact.kind is Kind.SYSTEM and fact.value in SYSTEM_PACKAGES
    }
    return tuple(found[name] for name in sorted(found))


_SCM = re.compile(
    r"setuptools[-_]scm|hatch[-_]vcs|versioningit|flit[-_]scm|use_scm_version|setuptools[-_]git[-_]versioning"
)


def _version_environment(tree: Tree, project: Project, version: str) -> list[tuple[str, str]]:
    """Versions that are read off git tags, which the box's repository has none of."""
    names = " ".join(w.text for w in project.build_requires) + tree.read("setup.py") + tree.read("pyproject.toml")
    value = normal_version(version)
    found = []
    if _SCM.search(names):
        found.append(("SETUPTOOLS_SCM_PRETEND_VERSION", value))
    if re.search(r"\bpbr\b", names):
        found.append(("PBR_VERSION", value))
    if "poetry-dynamic-versioning" in names:
        found.append(("POETRY_DYNAMIC_VERSIONING_BYPASS", value))
    if "pdm" in names and "scm" in names:
        found.append(("PDM_BUILD_SCM_VERSION", value))
    return found


def normal_version(text: str) -> str:
    """The version in a tag or text such as `v1.2` or `release-1.2.0`; `0.0.0` when there is none."""
    match = re.search(r"\d+(\.\d+)*((a|b|rc|\.?dev|\.?post)\d*)?", text)
    try:
        return str(Version(match.group())) if match else "0.0.0"
    except InvalidVersion:
        return "0.0.0"


def _import_path(tree: Tree, project: Project) -> list[tuple[str, str]]:
    """Where nothing can be installed, the tree itself is the import path."""
    if project.packaged:
        return []
    return [("PYTHONPATH", "/testbed/src:/testbed" if "src" in tree.folders else "/testbed")]


def _test_evidence(test: TestCommand, place: Wanted, pytest: Wanted | None) -> list[Evidence]:
    first = pytest or Wanted(text="unittest", path="(default)")
    return [
        Evidence(choice="test.framework", value=test.framework, path=first.path, line=first.line),
        Evidence(choice="test.paths", value=" ".join(test.paths) or ".", path=place.path, line=place.line),
    ]


# ------------------------------------------------------------------------------------------------ rendering


def render(made: Draft) -> BuildPlan:
    """The plan of a draft."""
    return plan_of(made, _dependency_steps(made), _source_steps(made))


def pip(made_until: date) -> str:
    """`uv pip install` into the venv with nothing newer than the date."""
    anew = (f" --exclude-newer-package {name}={day}T00:00:00Z" for name, day in NOT_BEFORE.items() if day > made_until)
    return (
        f"uv pip install --no-progress --python {PYTHON} --exclude-newer {made_until.isoformat()}T00:00:00Z"
        + "".join(anew)
    )


def _dependency_steps(made: Draft) -> tuple[str, ...]:
    # Sorted, so that the order in which files name them makes no second layer of the same packages.
    texts = sorted({d.wanted.text for d in made.dependencies if d.role is not Role.OPTIONAL})
    optional = sorted({d.wanted.text for d in made.dependencies if d.role is Role.OPTIONAL} - set(texts))
    steps = []
    steps.append(f'uv venv --quiet --python "$MERGEMILL_PYTHON" {VENV}')
    steps.append(f"printf '%s\\n' {quoted(texts)} > /tmp/requirements.txt")
    install = f"{pip(made.exclude_newer)} -r /tmp/requirements.txt"
    if texts:
        steps.append(install)
    if optional:
        one = f'{install} "$one" || echo "left out: $one"'
        tries = f"{install} {quoted(optional)} || for one in {quoted(optional)}; do {one}; done"
        steps.append(f"(export {NO_COMPILER}; {tries})")
    steps.append("rm /tmp/requirements.txt")
    if made.name and re.fullmatch(r"[\w.-]+", made.name):
        # A dependency may depend on the project; its released self must not be what the tests import.
        steps.append(f"uv pip uninstall --quiet --python {PYTHON} {made.name} 2>/dev/null || true")
    # The tests' user cannot write there. Not uv's own compilation, which fails on Python 3.6.
    steps.append(f"{PYTHON} -m compileall -q {VENV}/lib > /dev/null || true")
    return tuple(steps)


def _source_steps(made: Draft) -> tuple[str, ...]:
    """The editable install: offline with what is there, else the ways that older or unusual projects need."""
    if PACKAGED not in made.switches:
        return ()
    offline = f"uv pip install --no-progress --python {PYTHON} --no-deps --offline --no-build-isolation -e ."
    develop = f"([ -f setup.py ] && {PYTHON} setup.py -q develop --no-deps)"
    isolated = f"{pip(made.exclude_newer)} --no-deps -e ."
    ways = [offline, develop, isolated, _linked_wheel(made.exclude_newer)]
    if INSTALL_DEPENDENCIES in made.switches:
        ways = [f"{pip(made.exclude_newer)} -e .", f"{pip(made.exclude_newer)} --no-build-isolation -e .", *ways]
    return (" || ".join(ways),)


def _linked_wheel(until: date) -> str:
    """For backends too old for editable installs: a wheel's metadata and scripts, and the tree as import path."""
    return (
        f"({pip(until)} --no-deps --target /tmp/wheel . && "
        f"site=$({PYTHON} -c 'import site; print(site.getsitepackages()[0])')"
        ' && rm -f /tmp/wheel/*.dist-info/RECORD && cp -r /tmp/wheel/*.dist-info "$site"'
        f" && {{ [ ! -d /tmp/wheel/bin ] || cp /tmp/wheel/bin/* {VENV}/bin/; }}"
        ' && { if [ -d src ]; then echo "$PWD/src"; else echo "$PWD"; fi; } > "$site/testbed.pth" && rm -rf /tmp/wheel)'
    )
