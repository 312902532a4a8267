"""Elixir: from a tree to a draft, and from a draft to a plan."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta

from languages.draft import Context, Dependency, Draft, NoPlanError, Role
from languages.elixir.releases import RELEASES
from languages.facts import Wanted
from languages.rendering import LOCAL_SETTINGS, elsewhere_evidence, plan_of, read_manifests
from languages.scripting.ci import system_packages
from languages.scripting.debian import DEBIAN_PACKAGES, from_debian, from_registry
from languages.scripting.versions import Bounds, bound, candidates
from languages.services import with_services
from languages.tree import Tree
from languages.workflows import jobs
from taskdb.records import BuildPlan, Evidence, TestCommand

COMPILE = "compile"
TEST_FILE = r"(^|/)[^/]*_test\.exs$"
_NO_DATES = "Hex can only be asked for what is newest: the lock file pins, else the ranges alone"
_SETTINGS = (("MIX_ENV", "test"), ("MIX_HOME", "/opt/mix"), ("HEX_HOME", "/opt/hex"), ("HEX_OFFLINE", "1"))
_DEPENDENCY = re.compile(r"\{\s*:(\w+)\s*,([^}]*)\}")


def draft(tree: Tree, context: Context) -> Draft:
    """As `languages.base.Language.draft`."""
    folder = project_folder(tree, context.touched)
    at = f"{folder}/" if folder else ""
    files = test_files(tree, folder)
    if not tree.is_file(f"{at}mix.exs"):
        raise NoPlanError("there is no mix.exs")
    if not files:
        raise NoPlanError("no file *_test.exs")
    lock = f"{at}mix.lock"
    paths = tuple(sorted({re.sub(r"((?:^|/)test)/.*", r"\1", path) for path in files}))
    name = re.search(r"\bapp:\s*:(\w+)", tree.read(f"{at}mix.exs"))
    made = Draft(
        language="elixir",
        name=name[1] if name else "",
        versions=candidates(RELEASES, context, list(_named_versions(tree)), list(_bounds(tree, at))),
        day=context.day,
        exclude_newer=context.day + timedelta(days=1),
        test=TestCommand(framework="exunit", argv=("mix", "test"), paths=paths, folder=folder),
        dependencies=tuple(_dependencies(tree, f"{at}mix.exs")),
        manifests=read_manifests(tree, _manifests(tree, at)),
        system_packages=tuple(system_packages(tree).values()),
        env=(*LOCAL_SETTINGS, *_SETTINGS),
        switches=frozenset({COMPILE}),
        evidence=(
            Evidence(choice="test.paths", value=" ".join(paths), path=files[0], line=0),
            Evidence(choice="pin", value="lock file", path=lock, line=0)
            if tree.is_file(lock)
            else Evidence(choice="pin", value="ranges", path="(registry)", line=0, note=_NO_DATES),
            *elsewhere_evidence(tree),
        ),
    )
    return with_services(made, jobs(tree))


def without_compile(draft: Draft) -> Draft:
    """The project is compiled by the tests' run alone."""
    return replace(draft, switches=draft.switches - {COMPILE})


def test_files(tree: Tree, folder: str) -> list[str]:
    """Files `test/**/*_test.exs` of the project in `folder` (and of an umbrella's), sorted."""
    at = f"{folder}/" if folder else ""
    found = (path for path in tree.entries if path.startswith(at) and re.search(TEST_FILE, path))
    return sorted(path for path in found if not re.search(r"(^|/)(fixtures?|deps|templates?)/", path))


def project_folder(tree: Tree, touched: Sequence[str]) -> str:
    """The root where there is a mix.exs; else the deepest folder with one that the touched tests lie in."""
    if tree.is_file("mix.exs"):
        return ""
    tests = [path for path in touched if re.search(TEST_FILE, path)]
    roots = [posixpath.dirname(path) for path in tree.glob("*/mix.exs")]
    holding = [root for root in roots if all(path.startswith(f"{root}/") for path in tests)]
    return max(holding, key=len, default="") if tests else min(roots, key=len, default="")


def _dependencies(tree: Tree, path: str) -> Iterator[Dependency]:
    """Packages that mix.exs names for the tests; mix itself installs them."""
    for number, line in enumerate(tree.read(path).splitlines(), 1):
        for match in _DEPENDENCY.finditer(line.partition("#")[0]):
            only = re.search(r"only:\s*(\[[^\]]*\]|:\w+)", match[2])
            is_dependency = re.search(r"['\"]\s*[~>=<\d]|path:|git(hub)?:|in_umbrella", match[2])
            if is_dependency and "in_umbrella" not in match[2] and (not only or ":test" in only[1]):
                yield Dependency(role=Role.RUNTIME, wanted=Wanted(text=match[1], path=path, line=number))


def _manifests(tree: Tree, at: str) -> list[str]:
    """mix.exs and mix.lock, those of an umbrella's applications, the configuration, and files that mix.exs reads."""
    found = [f"{at}mix.exs", f"{at}mix.lock", *tree.glob(f"{at}apps/*/mix.exs"), *tree.glob(f"{at}config/*.exs")]
    for name in re.findall(
        r"""File\.read!?\(\s*"([\w./-]+)"|(?<=@version File)\W+"([\w./-]+)\"""", tree.read(found[0])
    ):
        found += [f"{at}{one}" for one in name if one]
    return [path for path in found if tree.is_file(path)]


def _named_versions(tree: Tree) -> Iterator[Wanted]:
    for number, line in enumerate(tree.read(".tool-versions").splitlines(), 1):
        if line.startswith("elixir "):
            yield Wanted(text=line, path=".tool-versions", line=number)
    for job in jobs(tree):
        keys = ("elixir-version", "elixir", "elixir_version")
        found = [(value.text, value.line) for name in keys for value in job.values.get(name, ())]
        found += [(use.text, use.line) for use in job.uses if re.search(r"(^|/)elixir:\d", use.text)]
        yield from (Wanted(text=text, path=job.path, line=line) for text, line in found if not job.is_beside)


def _bounds(tree: Tree, at: str) -> Iterator[Bounds]:
    for number, line in enumerate(tree.read(f"{at}mix.exs").splitlines(), 1):
        if match := re.search(r"\belixir:\s*\"([^\"]+)\"", line):
            yield Bounds(allows=bound(match[1]), wanted=Wanted(text=match[1], path=f"{at}mix.exs", line=number))


# ------------------------------------------------------------------------------------------------ rendering


def render(made: Draft) -> BuildPlan:
    """As `languages.base.Language.render`."""
    inside = posixpath.join("/testbed", made.test.folder).rstrip("/")
    enter = f"cd {shlex.quote(inside)}"
    names = [d.wanted.text for d in made.dependencies]
    folders = [posixpath.join(made.test.folder, name) for name in ("deps", "_build")]
    steps: list[str] = []
    unchecked: tuple[str, ...] = ()
    if DEBIAN_PACKAGES in made.switches:
        steps = [from_debian([(n, (f"elixir-{n}".replace("_", "-"), f"erlang-{n}".replace("_", "-"))) for n in names])]
        unchecked = ("--no-deps-check",)
    elif names:
        get = (
            f"unset HEX_OFFLINE; {enter} && mix local.hex --force && mix local.rebar --force && "
            "mix deps.get --only test && mix deps.compile && chmod -R a+rX /opt/mix /opt/hex"
        )
        steps = [from_registry("Hex", get)]
    compiled = (f"({enter} && mix compile{''.join(f' {word}' for word in unchecked)})",)
    test = made.test.model_copy(update={"argv": (*made.test.argv, *unchecked)})
    return plan_of(
        replace(made, test=test), steps, compiled if COMPILE in made.switches else (), kept_folders=folders
    )  # fmt: skip
