"""From what a Rust repository says to a draft, and from a draft to the plan; both pure."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from importlib import resources

from languages.base import Fallback
from languages.draft import Context, Draft, NoPlanError
from languages.rendering import LOCAL_SETTINGS, elsewhere_evidence, plan_of, quoted, read_manifests
from languages.rust import ci, versions
from languages.rust.crates import Crate, holding, least_minor, members, read_crates, root_of
from languages.rust.releases import FETCHER, SPARSE, minor_of
from languages.rust.sources import defining_files, packages
from languages.services import with_services
from languages.tree import Tree
from languages.workflows import jobs
from taskdb.records import BuildPlan, Evidence, TestCommand

HOME, TARGET, LOCK = "/opt/cargo", "/opt/target", "/opt/cargo/dated.lock"
STUBS, MEMBERS, OTHERS = "stub_sources", "workspace_members", "other_packages"
"""Choices in the evidence that the dependency steps are made of."""
OLD_LOCKS = 53
"""The first minor that reads lock files of version 3."""
PATCHED = "patched"
LOCKED, LATE = "locked", "late"
SWITCHES = {
    LOCKED: "Cargo.lock of the tree says which versions; else those of the day are looked for",
    LATE: "dependencies are compiled with the tree's sources, for some of them need the tree's own packages",
}
_NOT_HERE = {
    "linker": ("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER", "cc"), "rustc-wrapper": ("RUSTC_WRAPPER", ""),
}  # fmt: skip
"""Keys of .cargo/config.toml that name programs of developers' machines, and what stands in for them."""
_FEATURES = ("--all-features", "--no-default-features", "--features")


def draft(tree: Tree, context: Context) -> Draft:
    """All choices for the tree.

    Raises:
        NoPlanError: there is no package with tests, or no Rust for it.
    """
    crates, found = read_crates(tree), jobs(tree)
    tests = defining_files(tree)
    if not tests or not crates:
        raise NoPlanError("no package in the tree has tests")
    root = _workspace(crates, context.touched, tests)
    unstable = any(ci.UNSTABLE.search(name) for one in members(crates, root) for name in one.features)
    run = ci.test_run(found, unstable=unstable)
    argv = _widened([*ci.START, *run.flags], crates, root, context.touched)
    tested = packages(crates, root, argv) or members(crates, root)
    chosen = versions.candidates(tree, found, context.available(), context.day, least_minor(tree, root, tested))
    if not chosen:
        raise NoPlanError("this machine has no Rust that is new enough")
    lock = posixpath.join(root.folder, "Cargo.lock")
    made = Draft(
        language="rust",
        name=root.name or next((one.name for one in tested), ""),
        versions=tuple(chosen),
        day=context.day,
        exclude_newer=context.day.replace(day=1),
        manifests=_manifests(tree, crates),
        switches=frozenset({LOCKED} if tree.is_file(lock) else ()),
        system_packages=ci.system_packages(found),
        env=_environment(tree, run),
        test=TestCommand(framework="cargo-test", argv=tuple(argv), folder=root.folder),
        evidence=(*_evidence(tree, root, run, argv, lock), *_sources(crates, root), *elsewhere_evidence(tree)),
    )
    return with_services(made, found)


def _widened(argv: list[str], crates: Sequence[Crate], root: Crate, touched: Sequence[str]) -> list[str]:
    """The command; on all packages when the change's tests (or what it changes, without any) lie in one left out."""
    tests = [path for path in touched if re.search(r"(^|/)tests?(/|\.rs$)|_tests?\.rs$", path)] or touched
    about = {one for path in tests if (one := holding(crates, path)) in members(crates, root)}
    if all(one in packages(crates, root, argv) for one in about):
        return argv
    named = {at + 1 for at, word in enumerate(argv) if word == "-p"}
    kept = [word for at, word in enumerate(argv) if word not in ("-p", "--workspace") and at not in named]
    return [*kept, "--workspace"]


def _workspace(crates: Sequence[Crate], touched: Sequence[str], tests: Sequence[str]) -> Crate:
    """The workspace that most of the change's files lie in, else the tree's root's, else the one with most tests."""
    at_root = next((one for one in crates if not one.folder), None)
    for files in (touched, () if at_root else tests):
        counted = Counter(one.file for path in files if path.endswith(".rs") and (one := holding(crates, path)))
        if counted:
            chosen = min(counted, key=lambda file: (-counted[file], file))
            return root_of(crates, next(one for one in crates if one.file == chosen))
    return at_root or root_of(crates, crates[0])


def _manifests(tree: Tree, crates: Sequence[Crate]) -> tuple[tuple[str, str], ...]:
    """What cargo reads of all packages, members or not: some are path dependencies."""
    beside = [posixpath.join(one.folder, "Cargo.lock") for one in crates if one.workspace is not None or not one.folder]
    settings = [".cargo/config", ".cargo/config.toml"]
    return read_manifests(tree, [*(one.file for one in crates), *beside, *settings])


def _environment(tree: Tree, run: ci.TestRun) -> tuple[tuple[str, str], ...]:
    env = [
        *LOCAL_SETTINGS, ("CARGO_HOME", HOME), ("CARGO_TARGET_DIR", TARGET), ("CARGO_INCREMENTAL", "0"),
        ("CARGO_PROFILE_DEV_DEBUG", "0"), ("CARGO_PROFILE_TEST_DEBUG", "0"), ("CARGO_BUILD_JOBS", "2"),
    ]  # fmt: skip
    settings = tree.read(".cargo/config.toml") + tree.read(".cargo/config")
    if "rustflags" not in settings or "link" in settings:  # the variable stands in for them; other linkers are not here
        env.append(("RUSTFLAGS", ci.rustflags(run)))
    env += [pair for word, pair in _NOT_HERE.items() if re.search(rf"^\s*{word}\s*=", settings, re.MULTILINE)]
    if versions.is_nightly(tree):
        env.append(("RUSTC_BOOTSTRAP", "1"))
    return tuple(env)


def _evidence(tree: Tree, root: Crate, run: ci.TestRun, argv: Sequence[str], lock: str) -> list[Evidence]:
    locked = tree.is_file(lock)
    found = [
        Evidence(choice="test.framework", value="cargo-test", path=root.file, line=0),
        Evidence(
            choice="test.argv", value=" ".join(argv), path=run.place.path, line=run.place.line,
            note="without doc tests, examples and benchmarks",
        ),
        Evidence(
            choice="dependencies", value="Cargo.lock" if locked else "by date", path=lock if locked else "(date)",
            line=0, note="" if locked else "versions that the index had by then",
        ),
    ]  # fmt: skip
    if patched := sorted(root.patched):
        note = "dependencies that ask for these get the tree's own"
        found.append(Evidence(choice=PATCHED, value=" ".join(patched), path=root.file, line=0, note=note))
    if nightly := versions.is_nightly(tree):
        note = "a stable compiler that takes in unstable features"
        found.append(Evidence(choice="env", value="RUSTC_BOOTSTRAP=1", path=nightly, line=0, note=note))
    return found


def _sources(crates: Sequence[Crate], root: Crate) -> list[Evidence]:
    """Empty sources that stand in for the tree's own while dependencies are compiled, and the packages they are of."""
    stubs = [path for one in crates for path in one.stubs()]
    own = [one.name for one in members(crates, root)]
    others = sorted({one.name for one in crates if re.fullmatch(r"[\w-]+", one.name)} - set(own))
    return [
        Evidence(choice=STUBS, value=" ".join(stubs), path=root.file, line=0, note="empty ones, for the dependencies"),
        Evidence(choice=MEMBERS, value=" ".join(own), path=root.file, line=0),
        *([Evidence(choice=OTHERS, value=" ".join(others), path="Cargo.toml", line=0)] if others else []),
    ]


# ------------------------------------------------------------------------------------------------ rendering


def render(made: Draft) -> BuildPlan:
    """The plan of a draft."""
    return plan_of(made, _dependency_steps(made), _source_steps(made))


def _told(made: Draft, choice: str) -> list[str]:
    return [word for one in made.evidence if one.choice == choice for word in one.value.split()]


def _dependency_steps(made: Draft) -> tuple[str, ...]:
    """Empty sources, versions as of the day, downloads, and all that is not the tree's own compiled."""
    stubs = _told(made, STUBS)
    at = f"cd {quoted([made.test.folder])}" if made.test.folder else ":"
    cargo = f"fetcher=$(command -v {FETCHER} || command -v cargo)"
    minor = minor_of(made.versions[0].value)
    old = "sed -i '/^version = 3$/d' Cargo.lock"  # without git sources the form before is the same but for its number
    steps = [
        f'for one in {quoted(stubs)}; do mkdir -p "$(dirname "$one")" && echo \'fn main() {{}}\' > "$one"; done',
        f"{at}; {cargo}; mkdir -p {TARGET}",
        *(() if LOCKED in made.switches else _dated(made)),
    ]
    if minor >= SPARSE:
        steps.append("$fetcher fetch --locked --target x86_64-unknown-linux-gnu")
    else:  # older ones cannot read the index that the download left
        vendor = f"CARGO_HOME=/tmp/fetched $fetcher vendor --locked --versioned-dirs {HOME}/vendor"
        steps.append(f"mkdir -p {HOME} && {vendor} > /tmp/vendored && mv /tmp/vendored {HOME}/config.toml")
        steps.append(f"rm -rf /tmp/fetched {HOME}/vendor/win*/lib")
    steps += [
        *((old, f"cp Cargo.lock {LOCK}") if minor < OLD_LOCKS and LOCKED not in made.switches else ()),
        *((_compiled(made), *_cleaned(made)) if LATE not in made.switches else ()),
        f"chmod -R a+rX {HOME} {TARGET}; chown -R 1000:1000 {HOME} {TARGET}",
    ]
    return tuple(steps)


def _compiled(made: Draft) -> str:
    return f"{quoted(made.test.argv)} --no-run --offline --tests"


def _cleaned(made: Draft) -> list[str]:
    """What was compiled of empty sources goes: the real ones are older, and cargo would take them for unchanged."""

    def one_by_one(names: list[str]) -> str:
        return f'for one in {quoted(names)}; do cargo clean -q --offline -p "$one" 2> /dev/null || true; done'

    own, others = _told(made, MEMBERS), _told(made, OTHERS)
    at_once = f"cargo clean -q --offline {' '.join(f'-p {quoted([one])}' for one in own)} 2> /dev/null"
    return [f"{at_once} || {one_by_one(own)}", *([one_by_one(others)] if others else [])]


def _dated(made: Draft) -> list[str]:
    """A lock file of the versions that there were by the day, and kept for the source layer."""
    script = resources.files("languages.rust").joinpath("dated_index.py").read_text(encoding="utf-8")
    dated = "/tmp/dated"  # noqa: S108 - in the box
    settings = (
        '[source.crates-io]\\nreplace-with = "dated"\\n[source.dated]\\nregistry = "sparse+http://127.0.0.1:%s/"\\n'
    )
    return [
        f"mkdir -p {dated} && CARGO_HOME={dated} $fetcher generate-lockfile",
        f"cat > {dated}/index.py <<'END_OF_INDEX'\n{script}END_OF_INDEX",
        f"python3 {dated}/index.py {made.exclude_newer.isoformat()} {dated} & index=$!",
        f"for _ in $(seq 50); do [ -s {dated}/port ] && break; sleep 0.2; done; rm Cargo.lock; mkdir -p {dated}/home",
        f"printf '{settings}' \"$(cat {dated}/port)\" > {dated}/home/config.toml",
        f"CARGO_HOME={dated}/home $fetcher generate-lockfile; made=$?; kill $index; [ $made = 0 ]",
        f"mkdir -p {HOME} && cp Cargo.lock {LOCK} && rm -rf {dated}",
    ]


def _source_steps(made: Draft) -> tuple[str, ...]:
    lock = quoted([posixpath.join(made.test.folder, "Cargo.lock")])
    laid = () if LOCKED in made.switches else (f": --offline ; [ -e {lock} ] || cp {LOCK} {lock}",)
    if LATE not in made.switches:
        return laid
    at = f"cd {quoted([made.test.folder or '.'])}"
    return (*laid, f"({at} && {_compiled(made)}); done=$?; chown -R 1000:1000 {TARGET}; [ $done = 0 ]")


# ------------------------------------------------------------------------------------------------ fallbacks


def with_the_sources(made: Draft) -> Draft:
    """Compile dependencies later: those that need the tree's own packages do not compile beside empty ones."""
    return replace(made, switches=made.switches | {LATE}) if _told(made, PATCHED) else made


def exact_date(made: Draft) -> Draft:
    """Crates up to the change's own day: it may need one of the same month."""
    return made if LOCKED in made.switches else replace(made, exclude_newer=_after(made))


def _after(made: Draft) -> date:
    return made.day + timedelta(days=1)


def without_features(made: Draft) -> Draft:
    """Default features: others may need another compiler or system."""
    words = list(made.test.argv)
    for flag in _FEATURES:
        while flag in words:
            at = words.index(flag)
            del words[at : at + (2 if flag == "--features" else 1)]
    return replace(made, test=made.test.model_copy(update={"argv": tuple(words)}))


def without_system_packages(made: Draft) -> Draft:
    """Debian may not have what CI's own system calls so."""
    return replace(made, system_packages=())


def next_version(made: Draft) -> Draft:
    """The next Rust of the evidence."""
    return replace(made, versions=made.versions[1:] or made.versions)


FALLBACKS: tuple[Fallback, ...] = (
    with_the_sources, exact_date, without_features, next_version, without_system_packages,
)  # fmt: skip
