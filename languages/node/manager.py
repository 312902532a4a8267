"""Which package manager installs the dependencies, and the shell lines by which it does it without the tree."""

from __future__ import annotations

import json
import posixpath
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from importlib import resources

from languages import marked
from languages.facts import Wanted
from languages.node.package import Project
from languages.node.switches import FORGIVING, IGNORE_SCRIPTS, NEWER_GYP
from languages.tree import Tree
from languages.workflows import Job

SCRATCH = "/run/mergemill"
"""What is left there is gone from the layer."""

SKIPPED_DOWNLOADS = (
    "PUPPETEER_SKIP_DOWNLOAD=1 PUPPETEER_SKIP_CHROMIUM_DOWNLOAD=1 PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1 "
    "CYPRESS_INSTALL_BINARY=0 ELECTRON_SKIP_BINARY_DOWNLOAD=1 SENTRYCLI_SKIP_DOWNLOAD=1 "
    "CHROMEDRIVER_SKIP_DOWNLOAD=true GECKODRIVER_SKIP_DOWNLOAD=true DETECT_CHROMEDRIVER_VERSION=false HUSKY=0 "
    "HUSKY_SKIP_INSTALL=1 ADBLOCK=1 DISABLE_OPENCOLLECTIVE=1 OPEN_SOURCE_CONTRIBUTOR=1 NEXT_TELEMETRY_DISABLED=1 "
    "COREPACK_ENABLE_STRICT=0"
)
"""Install scripts that would fetch browsers and the like from where no registry is, and what else no build needs."""

MANIFESTS = (
    "package.json", "package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "pnpm-workspace.yaml",
    ".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs", "lerna.json",
)  # fmt: skip
_BESIDE = (".yarn/releases/*", ".yarn/plugins/*", ".yarn/patches/*", "patches/*")

_INSTALLS = re.compile(r"(npm|yarn|pnpm)( install| i| ci)?( --?[\w-]+(=\S+)?)*$")
"""A line that installs all dependencies."""

FORGES = re.compile(r"^(git|github:|gitlab:|bitbucket:|https?://|ssh:|\w[\w.-]*/[\w.-]+(#.*)?$)")
"""Ranges that name a forge or an archive somewhere: not to be had from a registry."""


BESIDE = re.compile(
    r"xo|(@[\w-]+/)?(eslint|tslint|stylelint|prettier|textlint)([-/].*)?|@(typescript-eslint|stylistic|eslint-community)/.*"
    r"|standard|neostandard|ts-standard|snazzy|jshint|jscs|@biomejs/biome|markdownlint.*|remark-cli|cspell|knip|publint"
    r"|husky|lint-staged|pretty-quick|pre-commit|simple-git-hooks|yorkie|@commitlint/.*|commitlint|commitizen|cz-.*"
    r"|np|release-it|semantic-release|@semantic-release/.*|standard-version|@changesets/.*|auto-changelog|conventional-.*"
    r"|tsd|dtslint|size-limit|@size-limit/.*|bundlesize2?|typedoc.*|documentation|doctoc|all-contributors-cli"
    r"|codecov|coveralls|benchmark|matcha|autocannon|branch-comparer|npm-check-updates|@arethetypeswrong/.*|license-checker"
)
"""Names of tools beside the tests: installing them only takes time and adds ways to fail."""


@dataclass(frozen=True, kw_only=True)
class Manager:
    """A package manager, its version where the project says it, and the lock file it reads."""

    kind: str
    """npm, yarn (1), berry (yarn 2 and later), pnpm."""
    version: str
    lock: str
    """Path of the lock file, empty when there is none."""
    place: Wanted
    release: str = ""
    """yarn's own file in the tree, that .yarnrc.yml names."""


def find_manager(tree: Tree, project: Project, jobs: Sequence[Job]) -> Manager:
    """The package manager of a project."""
    folder, root = project.root.folder, project.root
    lock = next((p for name in MANIFESTS[1:5] if tree.is_file(p := posixpath.join(folder, name))), "")
    named = re.match(r"(npm|yarn|pnpm)@(\d[\w.-]*)", root.word("packageManager"))
    if named:
        place = Wanted(text=named.group(), path=root.path, line=root.line('"packageManager"'))
        if (named[1] == "pnpm") != (posixpath.basename(lock) == "pnpm-lock.yaml"):
            lock = posixpath.join(
                folder, {"npm": "package-lock.json", "yarn": "yarn.lock"}.get(named[1], "pnpm-lock.yaml")
            )
            lock = lock if tree.is_file(lock) else ""
        kind = "berry" if named[1] == "yarn" and not named[2].startswith(("0", "1")) else named[1]
        return Manager(kind=kind, version=named[2], lock=lock, place=place, release=_yarn_path(tree, folder))
    name = posixpath.basename(lock)
    if name == "yarn.lock":
        berry = "\n__metadata:" in tree.read(lock) or _yarn_path(tree, folder)
        kind, version = ("berry", _berry_version(tree.read(lock))) if berry else ("yarn", "1.22.22")
        place = Wanted(text=kind, path=lock)
        return Manager(kind=kind, version=version, lock=lock, place=place, release=_yarn_path(tree, folder))
    if name == "pnpm-lock.yaml":
        return Manager(
            kind="pnpm", version=_pnpm_version(tree, lock, jobs), lock=lock, place=Wanted(text="pnpm", path=lock)
        )
    if lock:
        return Manager(kind="npm", version="", lock=lock, place=Wanted(text="npm", path=lock))
    return _of_ci(tree, jobs)


def _of_ci(tree: Tree, jobs: Sequence[Job]) -> Manager:
    """The one that most jobs install with, npm among equals."""
    found: dict[str, list[Wanted]] = {"npm": []}
    for job in jobs:
        for line in job.lines:
            if match := _INSTALLS.match(line.text):
                found.setdefault(match[1], []).append(Wanted(text=match[1], path=job.path, line=line.line))
    kind = max(found, key=lambda one: len(found[one]))
    place = next(iter(found[kind]), Wanted(text="npm", path="(default)"))
    version = {"npm": "", "yarn": "1.22.22"}.get(kind)
    return Manager(
        kind=kind, version=_pnpm_version(tree, "", jobs) if version is None else version, lock="", place=place
    )


def _yarn_path(tree: Tree, folder: str) -> str:
    path = marked.load(tree.read(posixpath.join(folder, ".yarnrc.yml")))["yarnPath"].text
    path = posixpath.normpath(posixpath.join(folder, path)) if path else ""
    return path if tree.is_file(path) else ""


def _berry_version(lock: str) -> str:
    match = re.search(r"^__metadata:\n\s+version: (\d+)", lock, re.MULTILINE)
    return {"4": "2.4.3", "5": "3.8.7", "6": "3.8.7"}.get(match[1] if match else "", "4.5.3")


def _pnpm_version(tree: Tree, lock: str, jobs: Sequence[Job]) -> str:
    """As CI names it, else the oldest that reads the lock file's version."""
    for job in jobs:
        if any("pnpm/action-setup" in one.text for one in job.uses):
            for value in (*job.values.get("version", ()), *job.values.get("pnpm-version", ())):
                if match := re.match(r"\^?(\d+(\.\d+){0,2})", value.text):
                    return match[1]
    match = re.search(r"^lockfileVersion: '?(\d+)\.?(\d*)", tree.read(lock) if lock else "", re.MULTILINE)
    if not match:
        return "9"
    return {"5": "7" if match[2] == "4" else "6", "6": "8"}.get(match[1], "9")


def manifests(tree: Tree, project: Project) -> list[str]:
    """Files that the installer reads."""
    found = [posixpath.join(one.folder, name) for one in project.packages for name in ("package.json", ".npmrc")]
    found += [posixpath.join(project.root.folder, name) for name in MANIFESTS]
    for pattern in _BESIDE:
        found += [path for path in tree.glob(posixpath.join(project.root.folder, pattern)) if path.count("/") < 6]
    return [path for path in found if tree.is_file(path) and tree.entries[path].mode != "120000"]


def from_forges(project: Project) -> list[Wanted]:
    """Dependencies that no registry has: they are left out of the install."""
    found = []
    for one in project.packages:
        for name, wanted in one.dependencies.items():
            if FORGES.match(wanted) and not wanted.startswith(("npm:", "workspace:", "file:", "link:", "portal:")):
                found.append(Wanted(text=name, path=one.path, line=one.line(f'"{name}": "{wanted}"')))
    return found


def beside(tree: Tree, project: Project, tests: Sequence[str]) -> list[Wanted]:
    """Tools that no test file speaks of and nothing but `devDependencies` asks for."""
    texts = "\n".join(tree.read_many(list(tests)).values())
    found = []
    for one in project.packages:
        for name in one.words("devDependencies"):
            asked = any(name in other.words(key) for other in project.packages for key in ("dependencies", *_OTHERS))
            if BESIDE.fullmatch(name) and not asked and not re.search(rf"[\"'`]{re.escape(name)}[\"'`/]", texts):
                found.append(Wanted(text=name, path=one.path, line=one.line(f'"{name}":')))
    return found


_OTHERS = ("peerDependencies", "optionalDependencies")

# ------------------------------------------------------------------------------------------------ shell


def install_steps(
    manager: Manager, folders: Sequence[str], dropped: Sequence[str], *, node: str, until: date, lock_version: int,
    switches: frozenset[str],
) -> tuple[str, ...]:  # fmt: skip
    """Shell lines of the dependency layer, in the folder of the root package.

    Args:
        manager: of the project.
        folders: of all its packages, from the root package's folder; empty for that itself.
        dropped: names of dependencies to leave out.
        node: the version of Node.
        until: the first day that does not exist for the build.
        lock_version: of package-lock.json, 0 for all others.
        switches: of the draft.
    """
    files = [posixpath.join(folder, "package.json") for folder in folders]
    tidy = resources.files("languages.node").joinpath("tidy.js").read_text(encoding="utf-8")
    settings = "audit=false fund=false update_notifier=false engine_strict=false manage_package_manager_versions=false"
    if int(node) < 16:  # root's installs, too, run packages' scripts where their files are root's
        settings += " unsafe_perm=true"
    return (
        f"export npm_config_cache={SCRATCH}/npm " + " ".join(f"npm_config_{one}" for one in settings.split()),
        'export npm_config_nodedir="$(dirname "$(dirname "$(readlink -f "$(command -v node)")")")"',
        f"export {SKIPPED_DOWNLOADS}",
        'registry="$(npm config get registry)"; registry="${registry%/}/"',
        f"node -e {shlex.quote(tidy)} {shlex.quote(json.dumps(sorted(dropped)))} {' '.join(map(shlex.quote, files))}",
        *(_GYP if NEWER_GYP in switches else ()),
        *_of(manager, node=node, until=until, lock_version=lock_version, switches=switches, loose=bool(dropped)),
        "chown -R 1000:1000 .",
    )


def _of(
    manager: Manager, *, node: str, until: date, lock_version: int, switches: frozenset[str], loose: bool
) -> Iterator[str]:
    loose = loose or FORGIVING in switches
    quiet = IGNORE_SCRIPTS in switches
    scripts = " --ignore-scripts" if quiet else ""
    lock = posixpath.basename(manager.lock)
    if manager.kind == "npm":
        if lock_version >= 3 and int(node) < 16:
            yield "npm install -g npm@8"
        yield from _same_registry(lock)
        peers = " --legacy-peer-deps" if FORGIVING in switches else ""
        if lock:
            yield f"npm {'install' if loose else 'ci'}{peers}{scripts}"
        else:
            yield from _dated(until)
            yield f"npm install --no-package-lock{peers}{scripts} $before"
    elif manager.kind == "yarn":
        yield f"command -v yarn > /dev/null || npm install -g yarn@{manager.version}"
        yield from _same_registry(lock)
        strict = "" if loose or not lock else " --frozen-lockfile"
        keep = "" if lock else " --no-lockfile"
        yield (
            f'npm_config_registry="$registry" YARN_CACHE_FOLDER={SCRATCH}/yarn '
            "yarn install --non-interactive --no-progress --ignore-engines --network-timeout 100000"
            f"{strict}{keep}{scripts}"
        )
    elif manager.kind == "berry":
        yarn = f"node {shlex.quote(manager.release)}" if manager.release else "yarn"
        if not manager.release:
            yield f"npm install -g --force @yarnpkg/cli-dist@{manager.version}"
        yield (
            'export YARN_NODE_LINKER=node-modules YARN_NPM_REGISTRY_SERVER="${registry%/}" YARN_ENABLE_TELEMETRY=0'
            f" YARN_GLOBAL_FOLDER={SCRATCH}/yarn YARN_ENABLE_GLOBAL_CACHE=true YARN_ENABLE_IMMUTABLE_INSTALLS=false"
            f" YARN_ENABLE_SCRIPTS={'false' if quiet else 'true'} YARN_IGNORE_PATH={0 if manager.release else 1}"
        )
        yield f"{yarn} install"
    else:
        yield f"npm install -g pnpm@{manager.version}"
        strict = " --no-frozen-lockfile" if loose or not lock else " --frozen-lockfile"
        yield (
            f"pnpm install --store-dir {SCRATCH}/pnpm --config.confirm-modules-purge=false"
            f" --config.strict-peer-dependencies=false --config.dangerously-allow-all-builds=true{strict}{scripts}"
        )


def _same_registry(lock: str) -> Iterator[str]:
    """Lock files name the mirror of whoever wrote them; checksums say whether what ours gives is the same."""
    if lock:
        # Whatever host: the path of a registry's archive is NAME/-/NAME-VERSION.tgz.
        pattern = r's#(resolved"?:? ")https?://[^/"]+/(([^/"]+/)?[^/"]+/-/)#\1'
        yield f"""sed -i -E '{pattern}'"$registry"'\\2#' {shlex.quote(lock)}"""


_GYP = (
    "npm install -g node-gyp@8",
    'export npm_config_node_gyp="$(npm root -g)/node-gyp/bin/node-gyp.js"',
)
"""The last node-gyp that Node 10 runs: it reads its files as Python 3.11 and later have it."""

_PROBE = ("lodash", "4.17.20", "2020-08-13")
"""A package, one of its versions, and the day on which it was published."""


def _dated(until: date) -> Iterator[str]:
    name, version, day = _PROBE
    yield (
        f"""if npm view {name} time --json | grep -q '"{version}": "{day}'; """
        f"""then before=--before={until.isoformat()}; else before=; """
        """echo "the registry's dates are those of a copy: ranges alone decide"; fi"""
    )
