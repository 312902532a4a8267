"""Create a plan draft from a Rust repository and render it as a build plan. Both are pure functions."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta

from languages.base import Fallback, read_packaged_file
from languages.draft import NoPlanError, PlanDraft, PlanningContext
from languages.rendering import LOCAL_SETTINGS, build_plan, list_external_content, quote_words, read_manifests
from languages.rust import ci, versions
from languages.rust.crates import Crate, find_crate, find_minimum_minor, find_workspace_root, list_members, read_crates
from languages.rust.releases import FETCHER, SPARSE, parse_minor
from languages.rust.sources import find_test_files, list_tested_crates
from languages.services import add_ci_services
from languages.source_tree import SourceTree
from languages.workflows import read_jobs
from taskdb.records import BuildPlan, Evidence, TestCommand

HOME, TARGET, LOCK = "/opt/cargo", "/opt/target", "/opt/cargo/dated.lock"
STUBS, MEMBERS, OTHERS = "stub_sources", "workspace_members", "other_packages"
"""Evidence choices from which the dependency steps are rendered."""
CHANGED = "changed_packages"
"""Evidence choice with the packages that the change touches."""
OLD_LOCKS = 53
"""First Rust minor that reads lock files of version 3."""
PATCHED = "patched"
LOCKED, LATE = "locked", "late"
SWITCHES = {
    LOCKED: "versions come from the tree's Cargo.lock; else they are resolved as of the change's date",
    LATE: "dependencies are compiled with the tree's sources, because some of them depend on the tree's own packages",
}
_UNUSABLE_COMMANDS = {
    "linker": ("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER", "cc"),
    "rustc-wrapper": ("RUSTC_WRAPPER", ""),
}
"""Keys of .cargo/config.toml that refer to programs of a developer's machine -> (variable, replacement)."""
_FEATURES = ("--all-features", "--no-default-features", "--features")


def create_draft(tree: SourceTree, context: PlanningContext) -> PlanDraft:
    """Return a draft of the build plan.

    Raises:
        NoPlanError: there is no package with tests, or no suitable Rust version.
    """
    crates, jobs = read_crates(tree), read_jobs(tree)
    tests = find_test_files(tree)
    if not tests or not crates:
        raise NoPlanError("no package in the tree has tests")
    root = _find_workspace(crates, context.changed_paths, tests)
    unstable = any(ci.UNSTABLE.search(name) for crate in list_members(crates, root) for name in crate.features)
    command = ci.find_test_command(jobs, unstable=unstable)
    argv = _widen_command([*ci.START, *command.flags], crates, root, context.changed_paths)
    tested = list_tested_crates(crates, root, argv) or list_members(crates, root)
    version_evidence = versions.rank_versions(
        tree, jobs, context.list_available(), context.day, find_minimum_minor(tree, root, tested)
    )
    if not version_evidence:
        raise NoPlanError("no available Rust version is new enough")
    lock = posixpath.join(root.folder, "Cargo.lock")
    draft = PlanDraft(
        language="rust",
        name=root.name or next((crate.name for crate in tested), ""),
        versions=tuple(version_evidence),
        day=context.day,
        exclude_newer=context.day.replace(day=1),
        manifests=_list_manifests(tree, crates),
        switches=frozenset({LOCKED} if tree.is_file(lock) else ()),
        system_packages=ci.find_system_packages(jobs),
        env=_build_environment(tree, command),
        test=TestCommand(framework="cargo-test", argv=tuple(argv), folder=root.folder),
        evidence=(
            *_build_evidence(tree, root, command, argv, lock),
            *_list_sources(crates, root),
            *_list_changed_packages(crates, root, context.changed_paths),
            *list_external_content(tree),
        ),
    )
    return add_ci_services(draft, jobs)


def _widen_command(argv: list[str], crates: Sequence[Crate], root: Crate, changed_paths: Sequence[str]) -> list[str]:
    """Return the command, extended to the whole workspace if it excludes packages of the change."""
    tests = [path for path in changed_paths if re.search(r"(^|/)tests?(/|\.rs$)|_tests?\.rs$", path)] or changed_paths
    changed_crates = {crate for path in tests if (crate := find_crate(crates, path)) in list_members(crates, root)}
    if all(crate in list_tested_crates(crates, root, argv) for crate in changed_crates):
        return argv
    package_positions = {at + 1 for at, word in enumerate(argv) if word == "-p"}
    remaining = [
        word for at, word in enumerate(argv) if word not in ("-p", "--workspace") and at not in package_positions
    ]
    return [*remaining, "--workspace"]


def _find_workspace(crates: Sequence[Crate], changed_paths: Sequence[str], tests: Sequence[str]) -> Crate:
    """Return the workspace with most files of the change, else the root's, else the package with the most tests."""
    at_root = next((crate for crate in crates if not crate.folder), None)
    for files in (changed_paths, () if at_root else tests):
        counts = Counter(
            crate.manifest_path for path in files if path.endswith(".rs") and (crate := find_crate(crates, path))
        )
        if counts:
            manifest = min(counts, key=lambda file: (-counts[file], file))
            return find_workspace_root(crates, next(crate for crate in crates if crate.manifest_path == manifest))
    return at_root or find_workspace_root(crates, crates[0])


def _list_manifests(tree: SourceTree, crates: Sequence[Crate]) -> tuple[tuple[str, str], ...]:
    """Return the manifests of all packages (members or path dependencies), lock files and cargo settings."""
    lock_files = [
        posixpath.join(crate.folder, "Cargo.lock")
        for crate in crates
        if crate.workspace is not None or not crate.folder
    ]
    settings = [".cargo/config", ".cargo/config.toml"]
    return read_manifests(tree, [*(crate.manifest_path for crate in crates), *lock_files, *settings])


def _build_environment(tree: SourceTree, command: ci.CargoTestCommand) -> tuple[tuple[str, str], ...]:
    env = [
        *LOCAL_SETTINGS,
        ("CARGO_HOME", HOME),
        ("CARGO_TARGET_DIR", TARGET),
        ("CARGO_INCREMENTAL", "0"),
        ("CARGO_PROFILE_DEV_DEBUG", "0"),
        ("CARGO_PROFILE_TEST_DEBUG", "0"),
        ("CARGO_BUILD_JOBS", "2"),
    ]
    settings = tree.read(".cargo/config.toml") + tree.read(".cargo/config")
    # The variable overrides the settings of the tree, whose custom linkers are not installed.
    if "rustflags" not in settings or "link" in settings:
        env.append(("RUSTFLAGS", ci.build_rustflags(command)))
    env += [pair for word, pair in _UNUSABLE_COMMANDS.items() if re.search(rf"^\s*{word}\s*=", settings, re.MULTILINE)]
    if versions.is_nightly(tree):
        env.append(("RUSTC_BOOTSTRAP", "1"))
    return tuple(env)


def _build_evidence(
    tree: SourceTree, root: Crate, command: ci.CargoTestCommand, argv: Sequence[str], lock: str
) -> list[Evidence]:
    is_locked = tree.is_file(lock)
    evidence = [
        Evidence(choice="test.framework", value="cargo-test", path=root.manifest_path, line=0),
        Evidence(
            choice="test.argv",
            value=" ".join(argv),
            path=command.source.path,
            line=command.source.line,
            note="without doc tests, examples and benchmarks",
        ),
        Evidence(
            choice="dependencies",
            value="Cargo.lock" if is_locked else "by date",
            path=lock if is_locked else "(date)",
            line=0,
            note="" if is_locked else "versions in the index at that date",
        ),
    ]
    if patched_names := sorted(root.patched_names):
        note = "the tree's own packages replace these dependencies"
        evidence.append(
            Evidence(choice=PATCHED, value=" ".join(patched_names), path=root.manifest_path, line=0, note=note)
        )
    if nightly := versions.is_nightly(tree):
        note = "stable compiler with unstable features enabled"
        evidence.append(Evidence(choice="env", value="RUSTC_BOOTSTRAP=1", path=nightly, line=0, note=note))
    return evidence


def _list_sources(crates: Sequence[Crate], root: Crate) -> list[Evidence]:
    """Return evidence of the stub sources used while dependencies are compiled, and of the packages they belong to."""
    stubs = [path for crate in crates for path in crate.list_stubs()]
    own = [crate.name for crate in list_members(crates, root)]
    others = sorted({crate.name for crate in crates if re.fullmatch(r"[\w-]+", crate.name)} - set(own))
    return [
        Evidence(
            choice=STUBS,
            value=" ".join(stubs),
            path=root.manifest_path,
            line=0,
            note="empty stubs for compiling the dependencies",
        ),
        Evidence(choice=MEMBERS, value=" ".join(own), path=root.manifest_path, line=0),
        *([Evidence(choice=OTHERS, value=" ".join(others), path="Cargo.toml", line=0)] if others else []),
    ]


def _list_changed_packages(crates: Sequence[Crate], root: Crate, changed_paths: Sequence[str]) -> list[Evidence]:
    """Return evidence of the workspace's packages that the change touches."""
    members = list_members(crates, root)
    changed = {crate.name for path in changed_paths if (crate := find_crate(crates, path)) in members and crate.name}
    if not changed:
        return []
    return [Evidence(choice=CHANGED, value=" ".join(sorted(changed)), path="(change)", line=0)]


# ------------------------------------------------------------------------------------------------ rendering


def render_plan(draft: PlanDraft) -> BuildPlan:
    """Return the build plan of a draft."""
    return build_plan(draft, _render_dependency_steps(draft), _render_source_steps(draft))


def _evidence_values(draft: PlanDraft, choice: str) -> list[str]:
    return [word for evidence in draft.evidence if evidence.choice == choice for word in evidence.value.split()]


def _render_dependency_steps(draft: PlanDraft) -> tuple[str, ...]:
    """Return steps that write stub sources, resolve versions as of the date, download, and compile all dependencies."""
    stubs = _evidence_values(draft, STUBS)
    enter = f"cd {quote_words([draft.test.folder])}" if draft.test.folder else ":"
    cargo = f"fetcher=$(command -v {FETCHER} || command -v cargo)"
    minor = parse_minor(draft.versions[0].value)
    # Without git sources, format 2 differs from format 3 only in this line.
    downgrade_lock = "sed -i '/^version = 3$/d' Cargo.lock"
    steps = [
        f'for one in {quote_words(stubs)}; do mkdir -p "$(dirname "$one")" && echo \'fn main() {{}}\' > "$one"; done',
        f"{enter}; {cargo}; mkdir -p {TARGET}",
        *(() if LOCKED in draft.switches else _render_dated_lock(draft)),
    ]
    if minor >= SPARSE:
        steps.append("$fetcher fetch --locked --target x86_64-unknown-linux-gnu")
    else:
        # Older versions cannot read the sparse index that the newer cargo downloads, so they get a vendor folder.
        vendor = f"CARGO_HOME=/tmp/fetched $fetcher vendor --locked --versioned-dirs {HOME}/vendor"
        steps.append(f"mkdir -p {HOME} && {vendor} > /tmp/vendored && mv /tmp/vendored {HOME}/config.toml")
        steps.append(f"rm -rf /tmp/fetched {HOME}/vendor/win*/lib")
    steps += [
        *((downgrade_lock, f"cp Cargo.lock {LOCK}") if minor < OLD_LOCKS and LOCKED not in draft.switches else ()),
        *((_render_compile(draft), *_render_clean(draft)) if LATE not in draft.switches else ()),
        f"chmod -R a+rX {HOME} {TARGET}; chown -R 1000:1000 {HOME} {TARGET}",
    ]
    return tuple(steps)


def _render_compile(draft: PlanDraft) -> str:
    return f"{quote_words(draft.test.argv)} --no-run --offline --tests"


def _render_clean(draft: PlanDraft) -> list[str]:
    """Return steps that delete artefacts of stubs, which cargo would reuse for the real sources by mtime."""

    def one_by_one(names: list[str]) -> str:
        return f'for one in {quote_words(names)}; do cargo clean -q --offline -p "$one" 2> /dev/null || true; done'

    own, others = _evidence_values(draft, MEMBERS), _evidence_values(draft, OTHERS)
    clean_all = f"cargo clean -q --offline {' '.join(f'-p {quote_words([name])}' for name in own)} 2> /dev/null"
    return [f"{clean_all} || {one_by_one(own)}", *([one_by_one(others)] if others else [])]


def _render_dated_lock(draft: PlanDraft) -> list[str]:
    """Return steps that resolve a lock file as of the date and store it for the source layer."""
    script = read_packaged_file("languages.rust", "dated_index.py")
    folder = "/tmp/dated"  # noqa: S108 - in the container
    settings = (
        '[source.crates-io]\\nreplace-with = "dated"\\n[source.dated]\\nregistry = "sparse+http://127.0.0.1:%s/"\\n'
    )
    return [
        f"mkdir -p {folder} && CARGO_HOME={folder} $fetcher generate-lockfile",
        f"cat > {folder}/index.py <<'END_OF_INDEX'\n{script}END_OF_INDEX",
        f"python3 {folder}/index.py {draft.exclude_newer.isoformat()} {folder} & index=$!",
        # The index runs in the background and writes its port once it is ready.
        f"for _ in $(seq 50); do [ -s {folder}/port ] && break; sleep 0.2; done; rm Cargo.lock; mkdir -p {folder}/home",
        f"printf '{settings}' \"$(cat {folder}/port)\" > {folder}/home/config.toml",
        f"CARGO_HOME={folder}/home $fetcher generate-lockfile; made=$?; kill $index; [ $made = 0 ]",
        f"mkdir -p {HOME} && cp Cargo.lock {LOCK} && rm -rf {folder}",
    ]


def _render_source_steps(draft: PlanDraft) -> tuple[str, ...]:
    lock = quote_words([posixpath.join(draft.test.folder, "Cargo.lock")])
    copy_lock = () if LOCKED in draft.switches else (f": --offline ; [ -e {lock} ] || cp {LOCK} {lock}",)
    compile_all = f"(cd {quote_words([draft.test.folder or '.'])} && {_render_compile(draft)})"
    if LATE in draft.switches:
        return (*copy_lock, f"{compile_all}; done=$?; chown -R 1000:1000 {TARGET}; [ $done = 0 ]")
    # A run then compiles the packages that differ from the base commit. Tests of a base need not compile.
    return (*copy_lock, f"{compile_all} || true; chown -R --from=0 1000:1000 {TARGET}")


# ------------------------------------------------------------------------------------------------ fallbacks


def compile_with_sources(draft: PlanDraft) -> PlanDraft:
    """Compile dependencies together with the sources: some depend on the tree's own packages and fail with stubs."""
    return replace(draft, switches=draft.switches | {LATE}) if _evidence_values(draft, PATCHED) else draft


_SELECTIONS = ("--workspace", "--all")
_SELECTIONS_WITH_VALUE = ("-p", "--package", "--exclude")


def select_changed_packages(draft: PlanDraft) -> PlanDraft:
    """Build and test only the packages of the workspace that the change touches, with their dependencies."""
    changed = _evidence_values(draft, CHANGED)
    if not changed or set(changed) >= set(_evidence_values(draft, MEMBERS)):
        return draft
    words = [word for word in draft.test.argv if word not in _SELECTIONS]
    for flag in _SELECTIONS_WITH_VALUE:
        while flag in words:
            at = words.index(flag)
            del words[at : at + 2]
    selected = [word for name in changed for word in ("-p", name)]
    return replace(draft, test=draft.test.model_copy(update={"argv": (*words, *selected)}))


def use_exact_date(draft: PlanDraft) -> PlanDraft:
    """Allow crates up to the change's own date instead of the start of its month."""
    return draft if LOCKED in draft.switches else replace(draft, exclude_newer=_day_after(draft))


def _day_after(draft: PlanDraft) -> date:
    return draft.day + timedelta(days=1)


def drop_features(draft: PlanDraft) -> PlanDraft:
    """Use default features: others may need another compiler or system."""
    words = list(draft.test.argv)
    for flag in _FEATURES:
        while flag in words:
            at = words.index(flag)
            del words[at : at + (2 if flag == "--features" else 1)]
    return replace(draft, test=draft.test.model_copy(update={"argv": tuple(words)}))


def drop_system_packages(draft: PlanDraft) -> PlanDraft:
    """Install no system packages: Debian may not have the packages of CI's operating system."""
    return replace(draft, system_packages=())


def select_next_version(draft: PlanDraft) -> PlanDraft:
    """Select the next Rust version of the evidence."""
    return replace(draft, versions=draft.versions[1:] or draft.versions)


FALLBACKS: tuple[Fallback, ...] = (
    compile_with_sources,
    select_changed_packages,
    use_exact_date,
    drop_features,
    select_next_version,
    drop_system_packages,
)
