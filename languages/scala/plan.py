"""Create a plan draft from a Scala repository that builds with sbt and render it as a build plan."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from datetime import date

from languages.draft import NoPlanError, PlanDraft, PlanningContext
from languages.facts import SourcedValue, find_line
from languages.jvm import versions
from languages.jvm.maven import ONLINE
from languages.rendering import LOCAL_SETTINGS, build_plan, list_external_content, quote_words, read_manifests
from languages.scala.tests import list_test_files
from languages.scripting.folders import find_common_folder
from languages.services import add_ci_services
from languages.source_tree import SourceTree
from languages.workflows import read_jobs
from taskdb.records import BuildPlan, Evidence, TestCommand

FRAMEWORK = "sbt"
HOME = "/opt/sbt"
LAUNCHER = "1.9.9"
"""Version of the launcher, which starts every sbt 1."""
_OPTIONS = (
    "-Xmx1500m",
    "-Xss8m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Dsbt.override.build.repos=true",
    f"-Dsbt.repository.config={HOME}/repositories",
    f"-Dsbt.boot.directory={HOME}/boot",
    f"-Dsbt.global.base={HOME}/global",
    f"-Dsbt.ivy.home={HOME}/ivy",
    "-Dsbt.color=false",
    "-Dsbt.supershell=false",
    "-Dsbt.server.autostart=false",
)
SBT = ("java", *_OPTIONS, "-jar", f"{HOME}/sbt-launch.jar")
_FETCH = (
    "mvn -B -q org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
    f" -Dartifact=org.scala-sbt:sbt-launch:{LAUNCHER}:jar -Dmdep.stripVersion=true -DoutputDirectory={HOME}"
)
_BUILD_FILE = re.compile(r"^([^/]+\.sbt|project/[^/]+\.(sbt|scala|properties)|project/project/[^/]+\.sbt)$")
_NO_DATES = "builds pin their versions; Maven repositories have no dates"


def create_draft(tree: SourceTree, context: PlanningContext) -> PlanDraft:
    """Return a draft of the build plan; see `languages.base.Language.create_draft`."""
    folder = find_project_folder(tree, context.changed_paths)
    prefix = f"{folder}/" if folder else ""
    if not tree.is_file(f"{prefix}build.sbt"):
        raise NoPlanError("there is no build.sbt")
    files = list_test_files(tree, folder)
    if not files:
        raise NoPlanError("no file in a folder of tests defines a suite")
    sbt = read_sbt_version(tree, prefix)
    if not sbt.text.startswith("1."):
        raise NoPlanError(f"sbt {sbt.text or 'of an unknown version'} is not supported, only sbt 1 ({sbt.path})")
    jdks = versions.rank_versions(list(versions.read_ci_versions(tree)), [], context.list_available(), context.day)
    if not jdks:
        raise NoPlanError("no suitable JDK is available")
    manifests = [p for p in tree.entries if p.startswith(prefix) and _BUILD_FILE.search(p.removeprefix(prefix))]
    draft = PlanDraft(
        language="scala",
        name="",
        versions=tuple(jdks),
        day=context.day,
        exclude_newer=date(context.day.year + 1, 1, 1),  # has no effect; commits of one year share layers
        test=TestCommand(framework=FRAMEWORK, argv=SBT, folder=folder),
        manifests=read_manifests(tree, manifests),
        env=(*LOCAL_SETTINGS, ("COURSIER_CACHE", f"{HOME}/coursier")),
        evidence=(
            Evidence(choice="test", value=f"sbt {sbt.text}", path=sbt.path, line=sbt.line),
            Evidence(choice="pin", value="build", path=f"{prefix}build.sbt", line=0, note=_NO_DATES),
            *list_external_content(tree),
        ),
    )
    return add_ci_services(draft, read_jobs(tree))


def find_project_folder(tree: SourceTree, changed_paths: Sequence[str]) -> str:
    """Return the root if it has a build.sbt, else the deepest folder with one that contains the changed files."""
    if tree.is_file("build.sbt"):
        return ""
    changed = [path for path in changed_paths if path.endswith((".scala", ".sbt"))]
    roots = [posixpath.dirname(path) for path in tree.glob("*/build.sbt")]
    return find_common_folder(roots, changed) or ""


def find_test_files(tree: SourceTree, plan: BuildPlan | None = None) -> list[str]:
    """Return files that define suites; with a plan those of its build."""
    return list_test_files(tree, plan.test.folder if plan else "")


def read_sbt_version(tree: SourceTree, prefix: str) -> SourcedValue:
    """Return the version in project/build.properties; empty if there is none."""
    path = f"{prefix}project/build.properties"
    text = tree.read(path)
    match = re.search(r"^\s*sbt\.version\s*[=:]\s*(\S+)", text, re.MULTILINE)
    return SourcedValue(text=match[1] if match else "", path=path, line=find_line(text, "sbt.version"))


# ------------------------------------------------------------------------------------------------ rendering


def render_plan(draft: PlanDraft) -> BuildPlan:
    """Return the build plan of a draft; see `languages.base.Language.render_plan`.

    The build files alone download sbt, its plug-ins, the compiler and the libraries.
    """
    folder = posixpath.join("/testbed", draft.test.folder).rstrip("/")
    sbt = f"cd {quote_words([folder])} && {quote_words(SBT)}"
    steps = (
        f"mkdir -p {HOME} && printf '%s\\n' '[repositories]' local maven-central > {HOME}/repositories && {_FETCH}",
        f"({sbt} 'Test / compile') || echo 'the build files alone were not enough'",
        f'rm -rf "$HOME/.m2" "$HOME/.sbt" /tmp/.sbt && find . -mindepth 1 -delete && chown -R 1000:1000 {HOME}',
    )
    compiled = f"compiled() {{ ({sbt} 'Test / compile'); }}\ncompiled || {{ {ONLINE} && compiled; }}"
    # Below its folder in /tmp, sbt binds a socket that the user of the tests must be able to create again.
    return build_plan(draft, steps, (f"{compiled} && rm -rf /tmp/.sbt && chown -R -h --from=0 1000:1000 {HOME}",))
