"""Detection of the package manager, and the shell commands that install dependencies without the source tree."""

from __future__ import annotations

import json
import posixpath
import re
import shlex
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date

from languages import yaml_nodes
from languages.base import read_packaged_file
from languages.facts import SourcedValue
from languages.node.age_gates import find_age_gates
from languages.node.package import NodeProject
from languages.node.switches import IGNORE_SCRIPTS, NEWER_GYP, RELAXED_PEERS
from languages.source_tree import SourceTree
from languages.workflows import Job

SCRATCH = "/run/mergemill"
"""Scratch folder; its content is not part of the layer."""

SKIPPED_DOWNLOADS = (
    "PUPPETEER_SKIP_DOWNLOAD=1 PUPPETEER_SKIP_CHROMIUM_DOWNLOAD=1 PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1 "
    "CYPRESS_INSTALL_BINARY=0 ELECTRON_SKIP_BINARY_DOWNLOAD=1 SENTRYCLI_SKIP_DOWNLOAD=1 "
    "CHROMEDRIVER_SKIP_DOWNLOAD=true GECKODRIVER_SKIP_DOWNLOAD=true DETECT_CHROMEDRIVER_VERSION=false HUSKY=0 "
    "HUSKY_SKIP_INSTALL=1 ADBLOCK=1 DISABLE_OPENCOLLECTIVE=1 OPEN_SOURCE_CONTRIBUTOR=1 NEXT_TELEMETRY_DISABLED=1 "
    "COREPACK_ENABLE_STRICT=0"
)
"""Environment that disables browser downloads of install scripts and other side effects that no build needs."""

MANIFESTS = (
    "package.json",
    "package-lock.json",
    "npm-shrinkwrap.json",
    "yarn.lock",
    "pnpm-lock.yaml",
    "bun.lock",
    "bun.lockb",
    "pnpm-workspace.yaml",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".pnpmfile.cjs",
    "lerna.json",
    "bunfig.toml",
)
_LOCKS = MANIFESTS[1:7]
_MANIFESTS_BESIDE_PACKAGE = (".yarn/releases/*", ".yarn/plugins/*", ".yarn/patches/*", "patches/*")

_INSTALLS = re.compile(r"(npm|yarn|pnpm|bun)( install| i| ci)?( --?[\w-]+(=\S+)?)*$")
"""Matches a line that installs all dependencies."""

_LOCKS_BY_MANAGER = {
    "npm": ("package-lock.json", "npm-shrinkwrap.json"),
    "yarn": ("yarn.lock",),
    "pnpm": ("pnpm-lock.yaml",),
    "bun": ("bun.lock", "bun.lockb"),
}

FORGES = re.compile(r"^(git|github:|gitlab:|bitbucket:|https?://|ssh:|\w[\w.-]*/[\w.-]+(#.*)?$)")
"""Matches ranges that refer to a forge or an archive URL instead of a registry."""


UNRELATED_TOOLS = re.compile(
    r"xo|(@[\w-]+/)?(eslint|tslint|stylelint|prettier|textlint)([-/].*)?|@(typescript-eslint|stylistic|eslint-community)/.*"
    r"|standard|neostandard|ts-standard|snazzy|jshint|jscs|@biomejs/biome|markdownlint.*|remark-cli|cspell|knip|publint"
    r"|husky|lint-staged|pretty-quick|pre-commit|simple-git-hooks|yorkie|@commitlint/.*|commitlint|commitizen|cz-.*"
    r"|np|release-it|semantic-release|@semantic-release/.*|standard-version|@changesets/.*|auto-changelog|conventional-.*"
    r"|tsd|dtslint|size-limit|@size-limit/.*|bundlesize2?|typedoc.*|documentation|doctoc|all-contributors-cli"
    r"|codecov|coveralls|benchmark|matcha|autocannon|branch-comparer|npm-check-updates|@arethetypeswrong/.*|license-checker"
)
"""Names of development tools unrelated to tests: installing them takes time and may fail."""

_REQUIRED = ("dependencies", "peerDependencies", "optionalDependencies")


@dataclass(frozen=True, kw_only=True)
class PackageManager:
    """A package manager, its version if the project specifies a version, and its lock file."""

    kind: str
    """npm, yarn (1), berry (yarn 2 and later), pnpm or bun."""
    version: str
    lock: str
    """Path of the lock file; empty if there is none."""
    source: SourcedValue
    release: str = ""
    """Yarn release in the tree, as referenced by .yarnrc.yml."""
    age_gates: tuple[SourcedValue, ...] = ()
    """Settings that hide packages by their age, and the manager itself where it does so without one."""


def find_package_manager(tree: SourceTree, project: NodeProject, jobs: Sequence[Job]) -> PackageManager:
    """Return the package manager of a project."""
    manager = _select_package_manager(tree, project, jobs)
    in_tree = re.search(r"-(\d[\w.-]*)\.c?js$", manager.release)
    version = in_tree[1] if in_tree else manager.version
    gates = find_age_gates(tree, project.root.folder, manager.kind, version, manager.source)
    return replace(manager, age_gates=tuple(gates))


def _select_package_manager(tree: SourceTree, project: NodeProject, jobs: Sequence[Job]) -> PackageManager:
    folder, root = project.root.folder, project.root
    lock = next((p for name in _LOCKS if tree.is_file(p := posixpath.join(folder, name))), "")
    declared = re.match(r"(npm|yarn|pnpm|bun)@(\d[\w.-]*)", root.get_text("packageManager"))
    if declared:
        source = SourcedValue(text=declared.group(), path=root.path, line=root.find_line('"packageManager"'))
        if posixpath.basename(lock) not in _LOCKS_BY_MANAGER[declared[1]]:
            names = _LOCKS_BY_MANAGER[declared[1]]
            lock = next((p for name in names if tree.is_file(p := posixpath.join(folder, name))), "")
        kind = "berry" if declared[1] == "yarn" and not declared[2].startswith(("0", "1")) else declared[1]
        return PackageManager(
            kind=kind, version=declared[2], lock=lock, source=source, release=_find_yarn_path(tree, folder)
        )
    name = posixpath.basename(lock)
    if name == "yarn.lock":
        berry = "\n__metadata:" in tree.read(lock) or _find_yarn_path(tree, folder)
        kind, version = ("berry", _select_berry_version(tree.read(lock))) if berry else ("yarn", "1.22.22")
        source = SourcedValue(text=kind, path=lock)
        return PackageManager(
            kind=kind, version=version, lock=lock, source=source, release=_find_yarn_path(tree, folder)
        )
    if name == "pnpm-lock.yaml":
        return PackageManager(
            kind="pnpm",
            version=_select_pnpm_version(tree, lock, jobs),
            lock=lock,
            source=SourcedValue(text="pnpm", path=lock),
        )
    if name in _LOCKS_BY_MANAGER["bun"]:
        source = SourcedValue(text="bun", path=lock)
        return PackageManager(kind="bun", version=_select_bun_version(jobs), lock=lock, source=source)
    if lock:
        return PackageManager(kind="npm", version="", lock=lock, source=SourcedValue(text="npm", path=lock))
    return _select_without_lock(tree, project, jobs)


def _select_without_lock(tree: SourceTree, project: NodeProject, jobs: Sequence[Job]) -> PackageManager:
    """Return the manager of a project that neither locks versions nor declares its manager.

    The one that CI installs with, if it can install the project; then the one whose settings are in the tree; npm last.
    """
    reason = _find_reason_against_npm(tree, project)
    manager = _find_ci_manager(tree, project, jobs, reason)
    if manager.source.path != "(default)":
        return manager
    folder = project.root.folder
    for name, kind in _SETTINGS_FILES.items():
        if tree.is_file(path := posixpath.join(folder, name)):
            return _create_without_lock(kind, SourcedValue(text=kind, path=path), tree, project, jobs)
    if reason:
        # Without its own file pnpm knows no members.
        return _create_without_lock("berry", reason, tree, project, jobs)
    return manager


def _create_without_lock(
    kind: str, source: SourcedValue, tree: SourceTree, project: NodeProject, jobs: Sequence[Job]
) -> PackageManager:
    versions = {
        "npm": "",
        "yarn": "1.22.22",
        "berry": _select_berry_version(""),
        "pnpm": _select_pnpm_version(tree, "", jobs),
        "bun": _select_bun_version(jobs),
    }
    release = _find_yarn_path(tree, project.root.folder) if kind == "berry" else ""
    return PackageManager(kind=kind, version=versions[kind], lock="", source=source, release=release)


_SETTINGS_FILES = {"pnpm-workspace.yaml": "pnpm", ".pnpmfile.cjs": "pnpm", ".yarnrc.yml": "berry"}
"""Files with settings that a single manager reads -> its kind."""


def _find_reason_against_npm(tree: SourceTree, project: NodeProject) -> SourcedValue | None:
    """Return the first place by which npm and yarn 1 cannot install the project; None if there is none."""
    for package in project.packages:
        for name, version_range in package.dependencies.items():
            if version_range.startswith(("workspace:", "catalog:")):
                line = package.find_line(f'"{name}": "{version_range}"')
                return SourcedValue(text=version_range, path=package.path, line=line)
    path = posixpath.join(project.root.folder, "pnpm-workspace.yaml")
    # npm and yarn read the members of a workspace from package.json alone.
    if tree.is_file(path) and project.members and "workspaces" not in project.root.data:
        return SourcedValue(text="pnpm", path=path)
    return None


def _find_ci_manager(
    tree: SourceTree, project: NodeProject, jobs: Sequence[Job], reason: SourcedValue | None
) -> PackageManager:
    """Return the package manager that most CI jobs install with; npm wins ties.

    `reason`: why npm and yarn 1 cannot install the project; yarn is then a later version, and npm is passed over.
    """
    installs: dict[str, list[SourcedValue]] = {} if reason else {"npm": []}
    for job in jobs:
        for line in job.lines:
            if (match := _INSTALLS.match(line.text)) and not (reason and match[1] == "npm"):
                kind = "berry" if reason and match[1] == "yarn" else match[1]
                installs.setdefault(kind, []).append(SourcedValue(text=match[1], path=job.path, line=line.line))
    # Of equal keys max() returns the first, so npm wins ties.
    kind = max(installs, key=lambda name: len(installs[name]), default="npm")
    source = next(iter(installs.get(kind, ())), SourcedValue(text="npm", path="(default)"))
    return _create_without_lock(kind, source, tree, project, jobs)


def _find_yarn_path(tree: SourceTree, folder: str) -> str:
    path = yaml_nodes.load_yaml(tree.read(posixpath.join(folder, ".yarnrc.yml")))["yarnPath"].text
    path = posixpath.normpath(posixpath.join(folder, path)) if path else ""
    return path if tree.is_file(path) else ""


def _select_berry_version(lock: str) -> str:
    match = re.search(r"^__metadata:\n\s+version: (\d+)", lock, re.MULTILINE)
    return {"4": "2.4.3", "5": "3.8.7", "6": "3.8.7"}.get(match[1] if match else "", "4.5.3")


def _select_pnpm_version(tree: SourceTree, lock: str, jobs: Sequence[Job]) -> str:
    """Return the first pnpm version in CI that reads the lock file, else the oldest that does."""
    locked = re.search(r"^lockfileVersion: '?(\d+)\.?(\d*)", tree.read(lock) if lock else "", re.MULTILINE)
    oldest = {"5": 3, "6": 7, "9": 9}.get(locked[1] if locked else "", 0)
    for job in jobs:
        if any(re.search(r"\bpnpm/(action-)?setup\b", action.text) for action in job.uses):
            for value in (*job.values.get("version", ()), *job.values.get("pnpm-version", ())):
                match = re.match(r"\^?((\d+)(\.\d+){0,2})", value.text)
                if match and int(match[2]) >= oldest:
                    return match[1]
    if not locked:
        return "9"
    return {"5": "7" if locked[2] == "4" else "6", "6": "8"}.get(locked[1], "9")


def _select_bun_version(jobs: Sequence[Job]) -> str:
    """Return the first bun version in CI, else that of all its lock files."""
    for job in jobs:
        for value in job.values.get("bun-version", ()):
            if match := re.match(r"\d+(\.\d+){0,2}", value.text):
                return match.group()
    return "1"


def list_manifests(tree: SourceTree, project: NodeProject, manager: PackageManager) -> list[str]:
    """Return the files that the installer reads."""
    paths = [
        posixpath.join(package.folder, name) for package in project.packages for name in ("package.json", ".npmrc")
    ]
    paths += [posixpath.join(project.root.folder, name) for name in MANIFESTS]
    for pattern in _MANIFESTS_BESIDE_PACKAGE:
        paths += [path for path in tree.glob(posixpath.join(project.root.folder, pattern)) if path.count("/") < 6]
    regular = [path for path in paths if tree.is_file(path) and tree.entries[path].mode != "120000"]
    return [*regular, manager.release] if manager.release else regular


def list_forge_dependencies(project: NodeProject) -> list[SourcedValue]:
    """Return the dependencies that no registry provides; the install skips them."""
    dependencies = []
    for package in project.packages:
        for name, version_range in package.dependencies.items():
            if FORGES.match(version_range) and not version_range.startswith(
                ("npm:", "workspace:", "file:", "link:", "portal:")
            ):
                dependencies.append(
                    SourcedValue(text=name, path=package.path, line=package.find_line(f'"{name}": "{version_range}"'))
                )
    return dependencies


def list_development_packages(project: NodeProject) -> frozenset[str]:
    """Return the names that are listed by `devDependencies` of packages and by nothing else."""
    listed = {name for package in project.packages for name in package.get_texts("devDependencies")}
    return frozenset(name for name in listed if not _is_required(project, name))


def _is_required(project: NodeProject, name: str) -> bool:
    """Return whether more than the development of some package requires a package."""
    return any(name in package.get_texts(section) for package in project.packages for section in _REQUIRED)


def list_unrelated_tools(
    tree: SourceTree, project: NodeProject, tests: Sequence[str], programs: Collection[str]
) -> list[SourcedValue]:
    """Return the development tools that no test file mentions and that are required only by `devDependencies`.

    Args:
        tree: the repository.
        project: packages of the project.
        tests: test files.
        programs: names of programs that run before the tests, which are never among the tools.
    """
    texts = "\n".join(tree.read_many(list(tests)).values())
    return [
        SourcedValue(text=name, path=package.path, line=package.find_line(f'"{name}":'))
        for package in project.packages
        for name in package.get_texts("devDependencies")
        if UNRELATED_TOOLS.fullmatch(name)
        and not _is_required(project, name)
        and name not in programs
        and not re.search(rf"[\"'`]{re.escape(name)}[\"'`/]", texts)
    ]


# ------------------------------------------------------------------------------------------------ shell


def render_install_steps(
    manager: PackageManager,
    folders: Sequence[str],
    dropped: Sequence[str],
    *,
    node: str,
    until: date,
    lock_version: int,
    switches: frozenset[str],
) -> tuple[str, ...]:
    """Return the shell commands of the dependency layer, run in the folder of the root package.

    Args:
        manager: package manager of the project.
        folders: folders of all packages, relative to the root package; empty for the root package.
        dropped: names of dependencies to skip.
        node: version of Node.
        until: the first day whose packages are hidden from the build.
        lock_version: format version of package-lock.json; 0 for other lock files.
        switches: switches of the draft.
    """
    files = [posixpath.join(folder, "package.json") for folder in folders]
    tidy = read_packaged_file("languages.node", "tidy.js")
    settings = "audit=false fund=false update_notifier=false engine_strict=false manage_package_manager_versions=false"
    # npm 6 runs install scripts of packages that belong to root only with this setting.
    if int(node) < 16:
        settings += " unsafe_perm=true"
    return (
        f"export npm_config_cache={SCRATCH}/npm " + " ".join(f"npm_config_{setting}" for setting in settings.split()),
        'export npm_config_nodedir="$(dirname "$(dirname "$(readlink -f "$(command -v node)")")")"',
        f"export {SKIPPED_DOWNLOADS}",
        'registry="$(npm config get registry)"; registry="${registry%/}/"',
        f"node -e {shlex.quote(tidy)} {shlex.quote(json.dumps(sorted(dropped)))} {' '.join(map(shlex.quote, files))}",
        *(_GYP if NEWER_GYP in switches else ()),
        *_render_install(
            manager, node=node, until=until, lock_version=lock_version, switches=switches, loose=bool(dropped)
        ),
        "chown -R 1000:1000 .",
    )


def _render_install(
    manager: PackageManager, *, node: str, until: date, lock_version: int, switches: frozenset[str], loose: bool
) -> Iterator[str]:
    loose = loose or RELAXED_PEERS in switches
    quiet = IGNORE_SCRIPTS in switches
    scripts = " --ignore-scripts" if quiet else ""
    lock = posixpath.basename(manager.lock)
    if manager.kind == "npm":
        # npm 6, which comes with these versions of Node, does not read lock files of version 3.
        if lock_version >= 3 and int(node) < 16:
            yield "npm install -g npm@8"
        yield from _render_registry_rewrite(lock)
        peers = " --legacy-peer-deps" if RELAXED_PEERS in switches else ""
        if manager.age_gates:
            # Some versions of npm reject every value of the setting together with --before. The lines are those of the
            # file in the plan: sed does not read names as npm does.
            lines = ";".join(f"{gate.line}d" for gate in manager.age_gates)
            yield f"sed -i '{lines}' .npmrc"
        if lock:
            yield f"npm {'install' if loose else 'ci'}{peers}{scripts}"
        else:
            yield from _format_cutoff(until)
            yield f"npm install --no-package-lock{peers}{scripts} $before"
    elif manager.kind == "yarn":
        yield f"command -v yarn > /dev/null || npm install -g yarn@{manager.version}"
        yield from _render_registry_rewrite(lock)
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
        if manager.age_gates:
            # A version that does not know the setting rejects it, also in the environment, which scopes override.
            yield r"""[ ! -f .yarnrc.yml ] || sed -i -E '/^\s*["'\'']?npmMinimalAgeGate["'\'']?\s*:/d' .yarnrc.yml"""
            yield f"! {yarn} config get npmMinimalAgeGate > /dev/null 2>&1 || export YARN_NPM_MINIMAL_AGE_GATE=0"
        yield f"{yarn} install"
    elif manager.kind == "bun":
        yield f"npm install -g bun@{manager.version}"
        strict = "" if loose or not lock else " --frozen-lockfile"
        keep = "" if lock else " --no-save"
        gate = " --minimum-release-age=0" if manager.age_gates else ""
        yield (
            f'BUN_CONFIG_REGISTRY="$registry" BUN_INSTALL_CACHE_DIR={SCRATCH}/bun'
            f" bun install --no-progress{strict}{keep}{scripts}{gate}"
        )
    else:
        yield f"npm install -g pnpm@{manager.version}"
        strict = " --no-frozen-lockfile" if loose or not lock else " --frozen-lockfile"
        gate = " --config.minimum-release-age=0 --config.trust-policy=off" if manager.age_gates else ""
        yield (
            f"pnpm install --store-dir {SCRATCH}/pnpm --config.confirm-modules-purge=false"
            f" --config.strict-peer-dependencies=false --config.dangerously-allow-all-builds=true"
            f"{gate}{strict}{scripts}"
        )


def _render_registry_rewrite(lock: str) -> Iterator[str]:
    """Yield the step that replaces the host in the lock file by the configured registry; checksums still apply."""
    if lock:
        # On every host, the archive's path is NAME/-/NAME-VERSION.tgz.
        pattern = r's#(resolved"?:? ")https?://[^/"]+/(([^/"]+/)?[^/"]+/-/)#\1'
        yield f"""sed -i -E '{pattern}'"$registry"'\\2#' {shlex.quote(lock)}"""


_GYP = (
    "npm install -g node-gyp@8",
    'export npm_config_node_gyp="$(npm root -g)/node-gyp/bin/node-gyp.js"',
)
"""The last node-gyp that supports Node 10. It works with Python 3.11 and later."""

_PROBE = ("lodash", "4.17.20", "2020-08-13")
"""A package, a version of its versions, and the date of its publication."""


def _format_cutoff(until: date) -> Iterator[str]:
    name, version, day = _PROBE
    yield (
        f"""if npm view {name} time --json | grep -q '"{version}": "{day}'; """
        f"""then before=--before={until.isoformat()}; else before=; """
        """echo "the registry's dates are those of a copy: ranges alone decide"; fi"""
    )
