"""Create a plan draft from a Python repository and render it as a build plan. Both are pure functions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from languages.draft import Dependency, NoPlanError, PlanDraft, PlanningContext, Role
from languages.facts import Detector, Fact, FactKind, SourcedValue
from languages.python import ci, dependencies, testing, tox, versions
from languages.python.age_gates import find_age_gates
from languages.python.ci_servers import add_servers
from languages.python.project import PythonProject, read_project
from languages.python.requirements import read_conda_python
from languages.python.switches import IGNORE_UV_SETTINGS, INSTALL_DEPENDENCIES, INSTALL_PROJECT
from languages.rendering import LOCAL_SETTINGS, build_plan, list_external_content, quote_words
from languages.source_tree import SourceTree
from taskdb.records import BuildPlan, Evidence, TestCommand

DETECTORS: tuple[Detector, ...] = (
    ci.read_github,
    ci.read_travis,
    ci.read_gitlab,
    ci.read_circle,
    read_conda_python,
    tox.read_tox,
    tox.read_nox,
    tox.read_python_version,
    tox.read_makefile,
)
"""Most trusted first: CI configuration is kept working, other files may be outdated."""

VENV = "/opt/venv"
PYTHON = f"{VENV}/bin/python"

SYSTEM_PACKAGES = frozenset(
    {
        "graphviz",
        "libxml2-dev",
        "libxslt1-dev",
        "libxslt-dev",
        "libffi-dev",
        "libssl-dev",
        "libgeos-dev",
        "libyaml-dev",
        "libhdf5-dev",
        "libnetcdf-dev",
        "libsqlite3-dev",
        "libpq-dev",
        "libmagic1",
        "libsndfile1",
        "libgmp-dev",
        "zlib1g-dev",
        "libjpeg-dev",
        "ffmpeg",
        "imagemagick",
        "locales",
        "gettext",
        "subversion",
        "mercurial",
    }
)
"""Packages installed by CI that exist in Debian under the same name and that tests may need."""

EARLIEST_DATE = {
    "atomicwrites": date(2022, 7, 9),
    "py": date(2016, 12, 7),
    "pytest": date(2016, 12, 7),
    "setuptools": date(2019, 3, 7),
    "wheel": date(2019, 3, 7),
}
"""Packages that are allowed up to this date, whatever the cutoff: atomicwrites was deleted and uploaded again in 2022,
uv cannot build source distributions with setuptools older than 40.8, which needs the wheel of its time, and pytest
3.0.5, which needs the py of its time, is the first that supports Python 3.6, the oldest that there is."""

NO_COMPILER = "CC=false CXX=false"
"""Environment for optional packages, which are not worth compiling; pure Python sources still install."""

_SITE_PACKAGES = f"$({PYTHON} -c 'import site; print(site.getsitepackages()[0])')"
RUNNER_PROJECTS = frozenset({"pytest", "pluggy", "py", "iniconfig"})
"""Projects whose metadata in the tree an evaluation removes, because a submission's would load code into the runner."""

ENV = (*LOCAL_SETTINGS, ("PYTHONDONTWRITEBYTECODE", "1"))
_PYTEST_BEFORE_3 = re.compile(
    r"(?:={2,3}|~=)\s*[012](?![0-9])|<\s*(?:[012](?![0-9])|3(?:\.0)*(?![0-9.]))|<=\s*[012](?![0-9])"
)
_INI_OVERRIDE_SINCE = date(2016, 8, 19)
"""Release date of pytest 3.0, the first version that supports `-o`."""


def create_draft(tree: SourceTree, context: PlanningContext) -> PlanDraft:
    """Return a draft of the build plan.

    Raises:
        NoPlanError: there is no Python project with tests, or no suitable Python version.
    """
    _check_tests(tree)
    project, day = read_project(tree), context.day
    facts = [fact for detector in DETECTORS for fact in detector(tree)]
    pythons = versions.rank_versions([*facts, *project.facts], context.list_available(), day)
    if not pythons:
        raise NoPlanError("no suitable Python version is available")
    config = testing.PytestConfig(tree)
    all_requirements = dependencies.collect_all_requirements(tree, project, facts)
    pytest = testing.find_pytest_use(tree, facts, all_requirements, config)
    settings = tree.read(config.path) if config.path else ""
    modules = tuple(testing.find_configured_modules(config, settings)) if pytest else ()
    required = dependencies.collect_requirements(tree, project, facts, pytest=pytest is not None, configured=modules)
    test, paths_source = testing.build_test_command(tree, facts, config, pytest=pytest is not None)
    if pytest:
        argv = testing.block_style_plugins(test.argv, config, all_requirements, canonicalize_name(project.name))
        test = test.model_copy(update={"argv": argv})
    # Such a pytest cannot override addopts, so options of plug-ins stay and the plug-ins must exist.
    if day < _INI_OVERRIDE_SINCE:
        test = test.model_copy(update={"argv": test.argv[:1]} if pytest else {})
    all_options = config.get_words("addopts")
    options = all_options if day < _INI_OVERRIDE_SINCE else testing.filter_options(all_options)
    required_plugins = [replace(pytest, text="pytest")] if pytest else []
    required_plugins += testing.find_plugins(config, options, settings)
    required = _lift_outdated_pins(required)
    required += _find_plugins(required, required_plugins)
    gates = find_age_gates(tree)
    switches = {INSTALL_PROJECT: project.is_installable, IGNORE_UV_SETTINGS: bool(gates)}
    draft = PlanDraft(
        language="python",
        name=project.name,
        versions=tuple(pythons),
        day=day,
        exclude_newer=day.replace(day=1),
        dependencies=tuple(required),
        switches=frozenset(switch for switch, is_on in switches.items() if is_on),
        system_packages=_find_system_packages(facts),
        env=(
            *ENV,
            *_build_version_environment(tree, project, context.version),
            *_build_import_path(tree, project),
        ),
        test=test,
        evidence=(*_build_test_evidence(test, paths_source, pytest), *gates, *list_external_content(tree)),
    )
    return add_servers(draft, tree)


def _check_tests(tree: SourceTree) -> None:
    if not any(path.endswith(".py") for path in tree.entries):
        raise NoPlanError("no Python file in the tree")
    if not testing.find_test_files(tree):
        raise NoPlanError("no file in the tree defines tests")


def _lift_outdated_pins(dependencies: Sequence[Dependency]) -> list[Dependency]:
    """Return the dependencies, pytest without a version where only versions before 3.0 are allowed."""
    return [
        replace(dependency, source=replace(dependency.source, text="pytest"))
        if dependency.source.distribution_name == "pytest" and _PYTEST_BEFORE_3.search(dependency.source.text)
        else dependency
        for dependency in dependencies
    ]


def _find_plugins(dependencies: Sequence[Dependency], required: Sequence[SourcedValue]) -> list[Dependency]:
    """Return the test runner and plugins that are still missing, each with the first place that requires it."""
    # An optional one, such as a guess of its version, may be left out.
    provided = {d.source.distribution_name for d in dependencies if d.role is not Role.OPTIONAL}
    first = {requirement.distribution_name: requirement for requirement in reversed(required)}
    return [Dependency(role=Role.TEST, source=w) for name, w in reversed(first.items()) if name not in provided]


def _find_system_packages(facts: Sequence[Fact]) -> tuple[SourcedValue, ...]:
    packages = {
        fact.value: SourcedValue(text=fact.value, path=fact.path, line=fact.line)
        for fact in reversed(facts)
        if fact.kind is FactKind.SYSTEM and fact.value in SYSTEM_PACKAGES
    }
    return tuple(packages[name] for name in sorted(packages))


_SCM = re.compile(
    r"setuptools[-_]scm|hatch[-_]vcs|versioningit|flit[-_]scm|use_scm_version|setuptools[-_]git[-_]versioning"
)


def _build_version_environment(tree: SourceTree, project: PythonProject, version: str) -> list[tuple[str, str]]:
    """Return version variables for packages that derive it from git tags, which the container does not have."""
    names = " ".join(w.text for w in project.build_requirements) + tree.read("setup.py") + tree.read("pyproject.toml")
    value = normalize_version(version)
    variables = []
    if _SCM.search(names):
        variables.append(("SETUPTOOLS_SCM_PRETEND_VERSION", value))
    if re.search(r"\bpbr\b", names):
        variables.append(("PBR_VERSION", value))
    if "poetry-dynamic-versioning" in names:
        variables.append(("POETRY_DYNAMIC_VERSIONING_BYPASS", value))
    if "pdm" in names and "scm" in names:
        variables.append(("PDM_BUILD_SCM_VERSION", value))
    return variables


def normalize_version(text: str) -> str:
    """Return the version in a tag or text such as `v1.2` or `release-1.2.0`; `0.0.0` if there is none."""
    match = re.search(r"\d+(\.\d+)*((a|b|rc|\.?dev|\.?post)\d*)?", text)
    try:
        return str(Version(match.group())) if match else "0.0.0"
    except InvalidVersion:
        return "0.0.0"


def _build_import_path(tree: SourceTree, project: PythonProject) -> list[tuple[str, str]]:
    """Return the import path variable: the tree itself if the project cannot be installed."""
    if project.is_installable:
        return []
    return [("PYTHONPATH", "/testbed/src:/testbed" if "src" in tree.folders else "/testbed")]


def _build_test_evidence(test: TestCommand, paths_source: SourcedValue, pytest: SourcedValue | None) -> list[Evidence]:
    framework_source = pytest or SourcedValue(text="unittest", path="(default)")
    return [
        Evidence(choice="test.framework", value=test.framework, path=framework_source.path, line=framework_source.line),
        Evidence(
            choice="test.paths", value=" ".join(test.paths) or ".", path=paths_source.path, line=paths_source.line
        ),
    ]


# ------------------------------------------------------------------------------------------------ rendering


def render_plan(draft: PlanDraft) -> BuildPlan:
    """Return the build plan of a draft."""
    return build_plan(draft, _render_dependency_steps(draft), _render_source_steps(draft))


def render_pip_install(until: date, switches: frozenset[str] = frozenset()) -> str:
    """Return the `uv pip install` command for the venv that hides packages uploaded after the date."""
    # The project's dates of single packages would hold as well as ours.
    settings = " --no-config" if IGNORE_UV_SETTINGS in switches else ""
    return f"uv pip install --no-progress{settings} --python {PYTHON} {_render_cutoff(until, EARLIEST_DATE)}"


def _render_venv(draft: PlanDraft) -> str:
    """Return the command that makes the venv, with pip: tests and tools call `python -m pip`."""
    # A pip older than the interpreter may fail to start on it.
    released = versions.RELEASED.get(draft.versions[0].value, date.min)
    cutoff = _render_cutoff(draft.exclude_newer, {**EARLIEST_DATE, "pip": released})
    return f'uv venv --quiet --seed {cutoff} --python "$MERGEMILL_PYTHON" {VENV}'


def _render_cutoff(until: date, earliest: Mapping[str, date]) -> str:
    """Return the options of uv that hide packages uploaded after the date, those in `earliest` after theirs."""
    exemptions = (f" --exclude-newer-package {name}={day}T00:00:00Z" for name, day in earliest.items() if day > until)
    return f"--exclude-newer {until.isoformat()}T00:00:00Z" + "".join(exemptions)


def _render_dependency_steps(draft: PlanDraft) -> tuple[str, ...]:
    # Sorted, so that different orders of the same packages share a layer.
    texts = sorted({d.source.text for d in draft.dependencies if d.role is not Role.OPTIONAL})
    optional = sorted({d.source.text for d in draft.dependencies if d.role is Role.OPTIONAL} - set(texts))
    steps = []
    steps.append(_render_venv(draft))
    steps.append(f"printf '%s\\n' {quote_words(texts)} > /tmp/requirements.txt")
    install = f"{render_pip_install(draft.exclude_newer)} -r /tmp/requirements.txt"
    if texts:
        steps.append(install)
    if optional:
        install_one = f'{install} "$one" || echo "left out: $one"'
        install_optional = (
            f"{install} {quote_words(optional)} || for one in {quote_words(optional)}; do {install_one}; done"
        )
        steps.append(f"(export {NO_COMPILER}; {install_optional})")
    steps.append("rm /tmp/requirements.txt")
    if draft.name and re.fullmatch(r"[\w.-]+", draft.name):
        # A dependency may depend on the project; the tests must not import its released version.
        steps.append(f"uv pip uninstall --quiet --python {PYTHON} {draft.name} 2>/dev/null || true")
    # The tests' user cannot write there. uv's own bytecode compilation fails on Python 3.6.
    steps.append(f"{PYTHON} -m compileall -q {VENV}/lib > /dev/null || true")
    return tuple(steps)


def _render_source_steps(draft: PlanDraft) -> tuple[str, ...]:
    """Return the editable install: offline if possible, else by the methods for old or unusual projects."""
    if INSTALL_PROJECT not in draft.switches:
        return ()
    offline = f"uv pip install --no-progress --python {PYTHON} --no-deps --offline --no-build-isolation -e ."
    develop = f"([ -f setup.py ] && {PYTHON} setup.py -q develop --no-deps{_render_kept_metadata(draft)})"
    install = render_pip_install(draft.exclude_newer, draft.switches)
    isolated = f"{install} --no-deps -e ."
    methods = [offline, develop, isolated, _render_linked_wheel(install)]
    if INSTALL_DEPENDENCIES in draft.switches:
        methods = [
            f"{install} -e .",
            f"{install} --no-build-isolation -e .",
            *methods,
        ]
    return (" || ".join(methods),)


def _render_kept_metadata(draft: PlanDraft) -> str:
    """Return how the metadata of an old install of the tree gets a copy that no change of the tree reaches."""
    if draft.name not in RUNNER_PROJECTS:
        return ""
    return f' && cp -r "$(find . -maxdepth 2 -name {draft.name}.egg-info)" "{_SITE_PACKAGES}"'


def _render_linked_wheel(install: str) -> str:
    """Return the install for backends without editable installs: a wheel's metadata, the tree as import path."""
    return (
        f"({install} --no-deps --target /tmp/wheel . && "
        f"site={_SITE_PACKAGES}"
        ' && rm -f /tmp/wheel/*.dist-info/RECORD && cp -r /tmp/wheel/*.dist-info "$site"'
        f" && {{ [ ! -d /tmp/wheel/bin ] || cp /tmp/wheel/bin/* {VENV}/bin/; }}"
        ' && { if [ -d src ]; then echo "$PWD/src"; else echo "$PWD"; fi; } > "$site/testbed.pth" && rm -rf /tmp/wheel)'
    )
