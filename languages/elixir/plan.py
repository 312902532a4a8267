"""Create a plan draft from an Elixir repository and render it as a build plan."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta

from languages.draft import Dependency, NoPlanError, PlanDraft, PlanningContext, Role
from languages.elixir.releases import RELEASES
from languages.facts import SourcedValue
from languages.rendering import LOCAL_SETTINGS, build_plan, list_external_content, read_manifests
from languages.scripting.ci import find_system_packages
from languages.scripting.debian import DEBIAN_PACKAGES, render_debian_install, render_registry_install
from languages.scripting.folders import find_common_folder
from languages.scripting.versions import VersionBounds, parse_constraint, rank_versions
from languages.services import add_ci_services
from languages.source_tree import SourceTree
from languages.workflows import read_jobs
from taskdb.records import BuildPlan, Evidence, TestCommand

COMPILE = "compile"
TEST_FILE = r"(^|/)[^/]*_test\.exs$"
_NO_DATES = "Hex cannot resolve by date: versions come from the lock file, else from the ranges alone"
_SETTINGS = (("MIX_ENV", "test"), ("MIX_HOME", "/opt/mix"), ("HEX_HOME", "/opt/hex"), ("HEX_OFFLINE", "1"))
_DEPENDENCY = re.compile(r"\{\s*:(\w+)\s*,([^}]*)\}")


def create_draft(tree: SourceTree, context: PlanningContext) -> PlanDraft:
    """Return a draft of the build plan; see `languages.base.Language.create_draft`."""
    folder = find_project_folder(tree, context.changed_paths)
    prefix = f"{folder}/" if folder else ""
    files = list_test_files(tree, folder)
    if not tree.is_file(f"{prefix}mix.exs"):
        raise NoPlanError("there is no mix.exs")
    if not files:
        raise NoPlanError("no file *_test.exs")
    lock = f"{prefix}mix.lock"
    paths = tuple(sorted({re.sub(r"((?:^|/)test)/.*", r"\1", path) for path in files}))
    name = re.search(r"\bapp:\s*:(\w+)", tree.read(f"{prefix}mix.exs"))
    draft = PlanDraft(
        language="elixir",
        name=name[1] if name else "",
        versions=rank_versions(RELEASES, context, list(_read_named_versions(tree)), list(_read_bounds(tree, prefix))),
        day=context.day,
        exclude_newer=context.day + timedelta(days=1),
        test=TestCommand(framework="exunit", argv=("mix", "test"), paths=paths, folder=folder),
        dependencies=tuple(_read_dependencies(tree, f"{prefix}mix.exs")),
        manifests=read_manifests(tree, _read_manifests(tree, prefix)),
        system_packages=tuple(find_system_packages(tree).values()),
        env=(*LOCAL_SETTINGS, *_SETTINGS),
        switches=frozenset({COMPILE}),
        evidence=(
            Evidence(choice="test.paths", value=" ".join(paths), path=files[0], line=0),
            Evidence(choice="pin", value="lock file", path=lock, line=0)
            if tree.is_file(lock)
            else Evidence(choice="pin", value="ranges", path="(registry)", line=0, note=_NO_DATES),
            *list_external_content(tree),
        ),
    )
    return add_ci_services(draft, read_jobs(tree))


def drop_compile(draft: PlanDraft) -> PlanDraft:
    """Compile the project only during the test run."""
    return replace(draft, switches=draft.switches - {COMPILE})


def list_test_files(tree: SourceTree, folder: str) -> list[str]:
    """Return files `test/**/*_test.exs` of the project in `folder` (and of umbrella applications), sorted."""
    prefix = f"{folder}/" if folder else ""
    paths = (path for path in tree.entries if path.startswith(prefix) and re.search(TEST_FILE, path))
    return sorted(path for path in paths if not re.search(r"(^|/)(fixtures?|deps|templates?)/", path))


def find_project_folder(tree: SourceTree, changed_paths: Sequence[str]) -> str:
    """Return the root if it has a mix.exs, else the deepest folder with such a file that contains the changed tests."""
    if tree.is_file("mix.exs"):
        return ""
    tests = [path for path in changed_paths if re.search(TEST_FILE, path)]
    roots = [posixpath.dirname(path) for path in tree.glob("*/mix.exs")]
    return find_common_folder(roots, tests) or ("" if tests else min(roots, key=len, default=""))


def _read_dependencies(tree: SourceTree, path: str) -> Iterator[Dependency]:
    """Yield the packages that mix.exs requires for tests; mix installs them."""
    for number, line in enumerate(tree.read(path).splitlines(), 1):
        for match in _DEPENDENCY.finditer(line.partition("#")[0]):
            only = re.search(r"only:\s*(\[[^\]]*\]|:\w+)", match[2])
            is_dependency = re.search(r"['\"]\s*[~>=<\d]|path:|git(hub)?:|in_umbrella", match[2])
            if is_dependency and "in_umbrella" not in match[2] and (not only or ":test" in only[1]):
                yield Dependency(role=Role.RUNTIME, source=SourcedValue(text=match[1], path=path, line=number))


def _read_manifests(tree: SourceTree, prefix: str) -> list[str]:
    """Return mix.exs and mix.lock, those of umbrella applications, the configuration, and files that mix.exs reads."""
    paths = [
        f"{prefix}mix.exs",
        f"{prefix}mix.lock",
        *tree.glob(f"{prefix}apps/*/mix.exs"),
        *tree.glob(f"{prefix}config/*.exs"),
    ]
    for name in re.findall(
        r"""File\.read!?\(\s*"([\w./-]+)"|(?<=@version File)\W+"([\w./-]+)\"""", tree.read(paths[0])
    ):
        paths += [f"{prefix}{file}" for file in name if file]
    return [path for path in paths if tree.is_file(path)]


def _read_named_versions(tree: SourceTree) -> Iterator[SourcedValue]:
    for number, line in enumerate(tree.read(".tool-versions").splitlines(), 1):
        if line.startswith("elixir "):
            yield SourcedValue(text=line, path=".tool-versions", line=number)
    for job in read_jobs(tree):
        keys = ("elixir-version", "elixir", "elixir_version")
        versions = [(value.text, value.line) for name in keys for value in job.values.get(name, ())]
        versions += [(use.text, use.line) for use in job.uses if re.search(r"(^|/)elixir:\d", use.text)]
        yield from (
            SourcedValue(text=text, path=job.path, line=line) for text, line in versions if not job.is_auxiliary
        )


def _read_bounds(tree: SourceTree, prefix: str) -> Iterator[VersionBounds]:
    for number, line in enumerate(tree.read(f"{prefix}mix.exs").splitlines(), 1):
        if match := re.search(r"\belixir:\s*\"([^\"]+)\"", line):
            yield VersionBounds(
                allows=parse_constraint(match[1]),
                source=SourcedValue(text=match[1], path=f"{prefix}mix.exs", line=number),
            )


# ------------------------------------------------------------------------------------------------ rendering


def render_plan(draft: PlanDraft) -> BuildPlan:
    """Return the build plan of a draft; see `languages.base.Language.render_plan`."""
    inside = posixpath.join("/testbed", draft.test.folder).rstrip("/")
    enter = f"cd {shlex.quote(inside)}"
    names = [d.source.text for d in draft.dependencies]
    folders = [posixpath.join(draft.test.folder, name) for name in ("deps", "_build")]
    steps: list[str] = []
    unchecked: tuple[str, ...] = ()
    if DEBIAN_PACKAGES in draft.switches:
        steps = [
            render_debian_install(
                [(n, (f"elixir-{n}".replace("_", "-"), f"erlang-{n}".replace("_", "-"))) for n in names]
            )
        ]
        unchecked = ("--no-deps-check",)
    elif names:
        get = (
            f"unset HEX_OFFLINE; {enter} && mix local.hex --force && mix local.rebar --force && "
            "mix deps.get --only test && mix deps.compile && chmod -R a+rX /opt/mix /opt/hex"
        )
        steps = [render_registry_install("Hex", get)]
    compile_steps = (f"({enter} && mix compile{''.join(f' {word}' for word in unchecked)})",)
    test = draft.test.model_copy(update={"argv": (*draft.test.argv, *unchecked)})
    return build_plan(
        replace(draft, test=test), steps, compile_steps if COMPILE in draft.switches else (), kept_folders=folders
    )
