"""Create a plan draft from a PHP repository and render it as a build plan."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta

from languages.draft import NoPlanError, PlanDraft, PlanningContext
from languages.facts import SourcedValue
from languages.php.composer import ComposerProject, list_debian_names
from languages.php.releases import RELEASES
from languages.rendering import LOCAL_SETTINGS, build_plan, list_external_content, read_manifests
from languages.scripting.ci import find_system_packages
from languages.scripting.debian import DEBIAN_PACKAGES, render_debian_install, render_registry_install
from languages.scripting.folders import find_common_folder
from languages.scripting.versions import VersionBounds, parse_constraint, rank_versions
from languages.services import add_ci_services
from languages.source_tree import SourceTree
from languages.workflows import read_jobs
from taskdb.records import BuildPlan, Evidence, TestCommand

TEST_FILE = r"(^|/)[^/]*Test\.php$"
_NAMES = ("phpunit.xml", "phpunit.xml.dist", "phpunit.dist.xml")
CONFIGURATIONS = (*_NAMES, *(f"{folder}/{name}" for folder in ("tests", "test") for name in _NAMES))
"""Places of PHPUnit's configuration, the best first. PHPUnit looks for the first three; `-c` names the others."""
TOOLS = "/opt/composer"
"""Folder of PHPUnit if the project does not require it."""
PREPEND = "/opt/debian-php/prepend.php"
"""Loads the tree's classes before Debian's, which include those of PHPUnit."""
_NO_DATES = "Packagist cannot resolve by date: versions come from the lock file, else from the ranges alone"
_SETTINGS = (("COMPOSER_ALLOW_SUPERUSER", "1"), ("COMPOSER_NO_AUDIT", "1"), ("COMPOSER_DISABLE_XDEBUG_WARN", "1"))


def create_draft(tree: SourceTree, context: PlanningContext) -> PlanDraft:
    """Return a draft of the build plan; see `languages.base.Language.create_draft`."""
    folder = find_project_folder(tree, context.changed_paths)
    prefix = f"{folder}/" if folder else ""
    project = ComposerProject(tree, folder)
    if not project.data:
        raise NoPlanError("there is no composer.json")
    files = list_test_files(tree, folder)
    if not files:
        raise NoPlanError("no file *Test.php")
    paths = list_test_folders(tree, folder, files)
    bounds = (
        [VersionBounds(allows=parse_constraint(constraint.text), source=constraint)]
        if (constraint := project.php_constraint)
        else []
    )
    lock = f"{prefix}composer.lock"
    version = context.version.removeprefix("v")
    root_version = (("COMPOSER_ROOT_VERSION", version),) if re.fullmatch(r"\d+(\.\d+){1,3}", version) else ()
    configuration = next((f"{prefix}{name}" for name in CONFIGURATIONS if tree.is_file(f"{prefix}{name}")), files[0])
    draft = PlanDraft(
        language="php",
        name=project.name,
        versions=rank_versions(RELEASES, context, list(_read_named_versions(tree, project)), bounds),
        day=context.day,
        exclude_newer=context.day + timedelta(days=1),
        test=TestCommand(framework="phpunit", argv=_build_argv(project), paths=paths, folder=folder),
        dependencies=tuple(project.list_dependencies()),
        manifests=read_manifests(tree, [f"{prefix}composer.json", lock]),
        system_packages=tuple(find_system_packages(tree).values()),
        env=(*LOCAL_SETTINGS, *_SETTINGS, *root_version),
        evidence=(
            Evidence(choice="test.framework", value="phpunit", path=configuration, line=0),
            Evidence(choice="test.paths", value=" ".join(paths), path=files[0], line=0),
            Evidence(choice="pin", value="lock file", path=lock, line=0)
            if tree.is_file(lock)
            else Evidence(choice="pin", value="ranges", path="(registry)", line=0, note=_NO_DATES),
            *list_external_content(tree),
        ),
    )
    return add_ci_services(draft, read_jobs(tree))


def find_project_folder(tree: SourceTree, changed_paths: Sequence[str]) -> str:
    """Return the deepest folder with composer.json and PHPUnit configuration above all changed tests; else ``."""
    tests = [path for path in changed_paths if re.search(TEST_FILE, path)]
    roots = {posixpath.dirname(path) for path in tree.glob("*composer.json")}
    configured = [r for r in roots if r and any(tree.is_file(f"{r}/{name}") for name in CONFIGURATIONS)]
    return find_common_folder(configured, tests) or ""


def list_test_files(tree: SourceTree, folder: str) -> list[str]:
    """Return files `*Test.php` of the project that PHPUnit's configuration includes, sorted."""
    prefix = f"{folder}/" if folder else ""
    paths = sorted(p for p in tree.entries if p.startswith(prefix) and re.search(TEST_FILE, p))
    paths = [path for path in paths if not re.search(r"(^|/)(vendor|_?fixtures?|stubs?)/", path, re.IGNORECASE)]
    configured = _read_configured_paths(tree, folder)
    included = [p for p in paths if any(p == entry or p.startswith(f"{entry}/") for entry in configured)]
    texts = tree.read_many(included or paths)
    return [path for path, text in texts.items() if not re.search(r"^\s*abstract\s+class", text, re.MULTILINE)]


def _read_configured_paths(tree: SourceTree, folder: str) -> list[str]:
    """Return the folders and files of the suites in PHPUnit's configuration, relative to the root of the tree."""
    prefix = f"{folder}/" if folder else ""
    configuration = next((name for name in CONFIGURATIONS if tree.is_file(f"{prefix}{name}")), "")
    text = tree.read(f"{prefix}{configuration}") if configuration else ""
    folder = posixpath.join(folder, posixpath.dirname(configuration))
    suites = "".join(
        re.findall(r"<testsuites?\b.*?</testsuites?>", re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL), re.DOTALL)
    )
    names = re.findall(r"<(?:directory|file)\b[^>]*>\s*([^<*]+?)(?:/\*[^<]*)?\s*</", suites)
    return [path for name in names if (path := posixpath.normpath(posixpath.join(folder, name.strip()))) != "."]


def list_test_folders(tree: SourceTree, folder: str, files: Sequence[str]) -> tuple[str, ...]:
    """Return the folders of the suites, else the top folders with tests, relative to the root of the tree."""
    prefix = f"{folder}/" if folder else ""
    configured = [path for path in _read_configured_paths(tree, folder) if tree.exists(path)]
    top_folders = {prefix + path.removeprefix(prefix).partition("/")[0] for path in files}
    return tuple(sorted(set(configured) or top_folders))


def _build_argv(project: ComposerProject) -> tuple[str, ...]:
    return ("vendor/bin/phpunit",) if project.has_phpunit else (f"{TOOLS}/vendor/bin/phpunit",)


def _read_named_versions(tree: SourceTree, project: ComposerProject) -> Iterator[SourcedValue]:
    if platform := project.platform_php:
        yield platform
    for job in read_jobs(tree):
        keys = ("php-version", "php-versions", "php", "php_version")
        versions = [(value.text, value.line) for name in keys for value in job.values.get(name, ())]
        versions += [(use.text, use.line) for use in job.uses if re.search(r"(^|/)php:\d", use.text)]
        yield from (
            SourcedValue(text=text, path=job.path, line=line) for text, line in versions if not job.is_auxiliary
        )


# ------------------------------------------------------------------------------------------------ rendering


def render_plan(draft: PlanDraft) -> BuildPlan:
    """Return the build plan of a draft; see `languages.base.Language.render_plan`."""
    inside = posixpath.join("/testbed", draft.test.folder).rstrip("/")
    enter = f"cd {shlex.quote(inside)}"
    dump = "composer dump-autoload --no-interaction --no-scripts --no-plugins"
    dump = f"({enter} && {{ {dump} --dev || {dump}; }})"  # Composer before 2.1 has no --dev
    if DEBIAN_PACKAGES in draft.switches:
        test = draft.test.model_copy(update={"argv": ("php", "-d", f"auto_prepend_file={PREPEND}", "/usr/bin/phpunit")})
        steps = _render_debian_steps(draft, inside)
        return build_plan(replace(draft, test=test), steps, (dump,), kept_folders=(_vendor_folder(draft),))
    return build_plan(
        draft, tuple(_render_registry_steps(draft, enter)), (dump,), kept_folders=(_vendor_folder(draft),)
    )


def _vendor_folder(draft: PlanDraft) -> str:
    return posixpath.join(draft.test.folder, "vendor")


def _render_registry_steps(draft: PlanDraft, enter: str) -> Iterator[str]:
    yield (
        "command -v composer > /dev/null || { apt-get update -qq && apt-get install -y -qq --no-install-recommends "
        "composer unzip > /dev/null; }"
    )
    options = "--no-interaction --no-progress --no-scripts --no-plugins --prefer-dist --ignore-platform-req='ext-*'"
    yield render_registry_install("Packagist", f"{enter} && composer install {options} --no-autoloader")
    if draft.test.argv[0].startswith(TOOLS):
        yield render_registry_install(
            "Packagist", f"export COMPOSER_HOME={TOOLS} && composer global require {options} phpunit/phpunit"
        )


def _render_debian_steps(draft: PlanDraft, inside: str) -> tuple[str, ...]:
    """Return steps that install Debian packages, and write a file that loads the tree's classes before Debian's."""
    names = [d.source.text for d in draft.dependencies if d.source.text not in ("phpunit/phpunit", draft.name)]
    packages_by_name = [(name, list_debian_names(name)) for name in dict.fromkeys(names)]
    all_packages = " ".join(package for _, packages in packages_by_name for package in packages)
    lines = (
        f"{{ printf '<?php\\nrequire_once \"{inside}/vendor/autoload.php\";\\n'; "
        f"for one in {all_packages}; do dpkg -L $one 2> /dev/null | "
        "grep -iE '^/usr/share/php/.*/autoload\\.php$' || true; done | sort -u | "
        f"sed 's|.*|require_once \"&\";|'; }} > {PREPEND}"
    )
    write = f"mkdir -p {posixpath.dirname(PREPEND)} {inside}/vendor && {lines}"
    return (render_debian_install(packages_by_name, always=("phpunit",)), write)
