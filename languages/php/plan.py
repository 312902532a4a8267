"""PHP: from a tree to a draft, and from a draft to a plan."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta

from languages.draft import Context, Draft, NoPlanError
from languages.facts import Wanted
from languages.php.composer import Project, debian_names
from languages.php.releases import RELEASES
from languages.rendering import LOCAL_SETTINGS, elsewhere_evidence, plan_of, read_manifests
from languages.scripting.ci import system_packages
from languages.scripting.debian import DEBIAN_PACKAGES, from_debian, from_registry
from languages.scripting.versions import Bounds, bound, candidates
from languages.services import with_services
from languages.tree import Tree
from languages.workflows import jobs
from taskdb.records import BuildPlan, Evidence, TestCommand

TEST_FILE = r"(^|/)[^/]*Test\.php$"
CONFIGURATIONS = ("phpunit.xml", "phpunit.xml.dist", "phpunit.dist.xml")
TOOLS = "/opt/composer"
"""Where PHPUnit is when the project does not name it."""
PREPEND = "/opt/debian-php/prepend.php"
"""Loads the tree's classes before Debian's, which are those of PHPUnit itself, too."""
_NO_DATES = "Packagist can only be asked for what is newest: the lock file pins, else the ranges alone"
_SETTINGS = (("COMPOSER_ALLOW_SUPERUSER", "1"), ("COMPOSER_NO_AUDIT", "1"), ("COMPOSER_DISABLE_XDEBUG_WARN", "1"))


def draft(tree: Tree, context: Context) -> Draft:
    """As `languages.base.Language.draft`."""
    folder = project_folder(tree, context.touched)
    at = f"{folder}/" if folder else ""
    project = Project(tree, folder)
    if not project.data:
        raise NoPlanError("there is no composer.json")
    files = test_files(tree, folder)
    if not files:
        raise NoPlanError("no file *Test.php")
    paths = paths_of(tree, folder, files)
    limits = [Bounds(allows=bound(asked.text), wanted=asked)] if (asked := project.php) else []
    lock = f"{at}composer.lock"
    version = context.version.removeprefix("v")
    root_version = (("COMPOSER_ROOT_VERSION", version),) if re.fullmatch(r"\d+(\.\d+){1,3}", version) else ()
    configured = next((f"{at}{name}" for name in CONFIGURATIONS if tree.is_file(f"{at}{name}")), files[0])
    made = Draft(
        language="php",
        name=project.name,
        versions=candidates(RELEASES, context, list(_named_versions(tree, project)), limits),
        day=context.day,
        exclude_newer=context.day + timedelta(days=1),
        test=TestCommand(framework="phpunit", argv=_argv(project), paths=paths, folder=folder),
        dependencies=tuple(project.dependencies()),
        manifests=read_manifests(tree, [f"{at}composer.json", lock]),
        system_packages=tuple(system_packages(tree).values()),
        env=(*LOCAL_SETTINGS, *_SETTINGS, *root_version),
        evidence=(
            Evidence(choice="test.framework", value="phpunit", path=configured, line=0),
            Evidence(choice="test.paths", value=" ".join(paths), path=files[0], line=0),
            Evidence(choice="pin", value="lock file", path=lock, line=0)
            if tree.is_file(lock)
            else Evidence(choice="pin", value="ranges", path="(registry)", line=0, note=_NO_DATES),
            *elsewhere_evidence(tree),
        ),
    )
    return with_services(made, jobs(tree))


def project_folder(tree: Tree, touched: Sequence[str]) -> str:
    """The deepest folder with a composer.json and PHPUnit's configuration that all touched tests lie in; else ``."""
    tests = [path for path in touched if re.search(TEST_FILE, path)]
    roots = {posixpath.dirname(path) for path in tree.glob("*composer.json")}
    own = [r for r in roots if r and any(tree.is_file(f"{r}/{name}") for name in CONFIGURATIONS)]
    holding = [root for root in own if tests and all(path.startswith(f"{root}/") for path in tests)]
    return max(holding, key=len, default="")


def test_files(tree: Tree, folder: str) -> list[str]:
    """Files `*Test.php` of the project that PHPUnit's configuration takes in, sorted."""
    at = f"{folder}/" if folder else ""
    found = sorted(p for p in tree.entries if p.startswith(at) and re.search(TEST_FILE, p))
    found = [path for path in found if not re.search(r"(^|/)(vendor|_?fixtures?|stubs?)/", path, re.IGNORECASE)]
    configured = _configured(tree, folder)
    inside = [p for p in found if any(p == one or p.startswith(f"{one}/") for one in configured)]
    texts = tree.read_many(inside or found)
    return [path for path, text in texts.items() if not re.search(r"^\s*abstract\s+class", text, re.MULTILINE)]


def _configured(tree: Tree, folder: str) -> list[str]:
    """Folders and files of the suites of PHPUnit's configuration, from the tree's root."""
    at = f"{folder}/" if folder else ""
    text = next((tree.read(f"{at}{name}") for name in CONFIGURATIONS if tree.is_file(f"{at}{name}")), "")
    suites = "".join(
        re.findall(r"<testsuites?\b.*?</testsuites?>", re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL), re.DOTALL)
    )
    named = re.findall(r"<(?:directory|file)\b[^>]*>\s*([^<*]+?)(?:/\*[^<]*)?\s*</", suites)
    return [path for name in named if (path := posixpath.normpath(posixpath.join(folder, name.strip()))) != "."]


def paths_of(tree: Tree, folder: str, files: Sequence[str]) -> tuple[str, ...]:
    """Folders of the suites, or the top folders that hold the tests; from the tree's root."""
    at = f"{folder}/" if folder else ""
    configured = [path for path in _configured(tree, folder) if tree.exists(path)]
    tops = {at + path.removeprefix(at).partition("/")[0] for path in files}
    return tuple(sorted(set(configured) or tops))


def _argv(project: Project) -> tuple[str, ...]:
    return ("vendor/bin/phpunit",) if project.brings_phpunit else (f"{TOOLS}/vendor/bin/phpunit",)


def _named_versions(tree: Tree, project: Project) -> Iterator[Wanted]:
    if platform := project.platform:
        yield platform
    for job in jobs(tree):
        keys = ("php-version", "php-versions", "php", "php_version")
        found = [(value.text, value.line) for name in keys for value in job.values.get(name, ())]
        found += [(use.text, use.line) for use in job.uses if re.search(r"(^|/)php:\d", use.text)]
        yield from (Wanted(text=text, path=job.path, line=line) for text, line in found if not job.is_beside)


# ------------------------------------------------------------------------------------------------ rendering


def render(made: Draft) -> BuildPlan:
    """As `languages.base.Language.render`."""
    inside = posixpath.join("/testbed", made.test.folder).rstrip("/")
    enter = f"cd {shlex.quote(inside)}"
    dump = "composer dump-autoload --no-interaction --no-scripts --no-plugins"
    dump = f"({enter} && {{ {dump} --dev || {dump}; }})"  # before Composer 2.1 there was no --dev
    if DEBIAN_PACKAGES in made.switches:
        test = made.test.model_copy(update={"argv": ("php", "-d", f"auto_prepend_file={PREPEND}", "/usr/bin/phpunit")})
        steps = _debian_steps(made, inside)
        return plan_of(replace(made, test=test), steps, (dump,), kept_folders=(_vendor(made),))
    return plan_of(made, tuple(_registry_steps(made, enter)), (dump,), kept_folders=(_vendor(made),))


def _vendor(made: Draft) -> str:
    return posixpath.join(made.test.folder, "vendor")


def _registry_steps(made: Draft, enter: str) -> Iterator[str]:
    yield (
        "command -v composer > /dev/null || { apt-get update -qq && apt-get install -y -qq --no-install-recommends "
        "composer unzip > /dev/null; }"
    )
    options = "--no-interaction --no-progress --no-scripts --no-plugins --prefer-dist --ignore-platform-req='ext-*'"
    yield from_registry("Packagist", f"{enter} && composer install {options} --no-autoloader")
    if made.test.argv[0].startswith(TOOLS):
        yield from_registry(
            "Packagist", f"export COMPOSER_HOME={TOOLS} && composer global require {options} phpunit/phpunit"
        )  # fmt: skip


def _debian_steps(made: Draft, inside: str) -> tuple[str, ...]:
    """Debian's packages, and a file that loads the tree's classes first and then those that are beside it."""
    names = [d.wanted.text for d in made.dependencies if d.wanted.text not in ("phpunit/phpunit", made.name)]
    wanted = [(name, debian_names(name)) for name in dict.fromkeys(names)]
    candidates_of = " ".join(package for _, packages in wanted for package in packages)
    lines = (
        f"{{ printf '<?php\\nrequire_once \"{inside}/vendor/autoload.php\";\\n'; "
        f"for one in {candidates_of}; do dpkg -L $one 2> /dev/null | "
        "grep -iE '^/usr/share/php/.*/autoload\\.php$' || true; done | sort -u | "
        f"sed 's|.*|require_once \"&\";|'; }} > {PREPEND}"
    )
    write = f"mkdir -p {posixpath.dirname(PREPEND)} {inside}/vendor && {lines}"
    return (from_debian(wanted, always=("phpunit",)), write)
