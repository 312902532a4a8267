"""Gradle: reads the distribution that a build requires, and renders the steps that fill Gradle's user home.

The distribution is the distribution in the wrapper's properties; the wrapper program itself is not used. If the
distribution server is unreachable, the switch `debian-packages` selects Debian's Gradle (4.4.1, in unstable 4.8), which
suffices for old builds.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from languages import apt
from languages.base import read_packaged_file
from languages.jvm.maven import ONLINE
from languages.rendering import quote_words
from languages.scripting.debian import render_registry_install
from languages.source_tree import SourceTree
from taskdb.records import Evidence

HOME = "/opt/gradle"
"""Gradle's user home: filled in the dependency layer and owned by the tests' user, because Gradle writes lock files
into it."""
DISTRIBUTION = "/opt/gradle-distribution"
DEBIAN_GRADLE = "4.4.1"
"""Version of Debian's Gradle, in all its releases (4.8 in unstable)."""

OPTIONS = (
    "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
    " -Dorg.gradle.daemon=false -Dorg.gradle.vfs.watch=false -Dorg.gradle.welcome=never"
    " -Dorg.gradle.configuration-cache=false -Dorg.gradle.unsafe.configuration-cache=false"
    " -Dorg.gradle.java.installations.auto-download=false"
)
"""JVM options of Gradle's own process, which lives for a build; tests run in separate JVMs."""

NEWEST_JDK = (
    ("9.1", 25),
    ("9.0", 24),
    ("8.10", 23),
    ("8.8", 22),
    ("8.5", 21),
    ("8.3", 20),
    ("7.6", 19),
    ("7.5", 18),
    ("7.3", 17),
    ("7.0", 16),
    ("6.7", 15),
    ("6.3", 14),
    ("6.0", 13),
    ("5.4", 12),
    ("5.0", 11),
    ("4.7", 10),
    ("4.3", 9),
    ("2.0", 8),
)
"""Gradle -> the newest JDK it runs on (Gradle's compatibility matrix).

Debian's Gradle is patched to run on newer versions.
"""

_BUILDS = re.compile(r"(^|/)(settings|build)\.gradle(\.kts)?$")
_READ = re.compile(
    r"(^|/)([^/]+\.gradle(\.kts)?|gradle\.properties|[^/]+\.versions\.toml|gradle-wrapper\.properties|[^/]*\.lockfile"
    r"|verification-metadata\.xml)$|(^|/)(buildSrc|build-logic|build-tools|gradle)/(?!.*\.jar$)"
)
"""Files that a build reads before compilation: scripts, catalogs, lock files and included plug-ins."""
_DATA = re.compile(r"(^|/)(src|test-?(data|projects?|fixtures?)|examples?/[^/]+/src)/")
"""Folders whose build scripts are test data."""
_URL = re.compile(r"^\s*distributionUrl\s*=\s*(\S+)", re.MULTILINE)
_VERSION = re.compile(r"gradle-(\d+(?:\.\d+)*)")
_SUM = re.compile(r"^\s*distributionSha256Sum\s*=\s*([0-9a-f]{64})", re.MULTILINE)
LEVEL = re.compile(
    r"(?:sourceCompatibility|targetCompatibility|jvmTarget|JavaLanguageVersion\.of|jvmToolchain|options\.release(?:\.set)?)"
    r"[\s=({'\"]*(?:JavaVersion\.)?(?:toVersion\()?['\"]?(?:VERSION_)?(?:JVM_)?(?:1[._])?(\d{1,2})\b"
)
"""Matches declarations of the language level in build scripts."""


@dataclass(frozen=True, kw_only=True)
class GradleRecipe:
    """Input of the steps."""

    folder: str
    """Folder in which Gradle is called."""
    url: str
    """URL of the distribution; empty if there is no wrapper."""
    checksum: str
    """Sha256 of the distribution; empty if the wrapper has none."""
    modules: tuple[str, ...]
    """Folders of the Gradle projects."""
    substitute: str
    """Alternative on a machine that cannot reach the distribution, as a message of the step that downloads it."""


@dataclass(frozen=True)
class GradleBuild:
    """The Gradle build of a tree."""

    tree: SourceTree
    folder: str
    """Folder of the settings or the top build script; empty for the root."""
    url: str
    """URL of the distribution in the wrapper's properties; empty if there is no wrapper."""

    @property
    def version(self) -> str:
        """Version of the distribution; Debian's if there is no wrapper."""
        match = _VERSION.search(self.url)
        return match[1] if match else DEBIAN_GRADLE

    @property
    def properties_path(self) -> str:
        """Path of the wrapper's properties."""
        return posixpath.join(self.folder, "gradle/wrapper/gradle-wrapper.properties")

    def read_recipe(self, substitute: str) -> GradleRecipe:
        """Return the input of the steps; see `GradleRecipe.substitute`."""
        match = _SUM.search(self.tree.read(self.properties_path))
        checksum = match[1] if match else ""
        return GradleRecipe(
            folder=self.folder, url=self.url, checksum=checksum, modules=self.modules, substitute=substitute
        )

    def list_build_scripts(self) -> list[str]:
        """Return the build scripts, sorted."""
        start = f"{self.folder}/" if self.folder else ""
        return [p for p in sorted(self.tree.entries) if p.startswith(start) and re.search(r"\.gradle(\.kts)?$", p)]

    @cached_property
    def modules(self) -> tuple[str, ...]:
        """Folders of the projects that the build compiles: those with sources or a build script."""
        folders = {path.partition("/src/")[0] for path in self.tree.entries if "/src/" in path}
        folders |= {""} if any(path.startswith("src/") for path in self.tree.entries) else set()
        folders |= {posixpath.dirname(path) for path in self.list_build_scripts() if _BUILDS.search(path)}
        return tuple(sorted(folder for folder in folders if self._is_inside(folder) and not _DATA.search(f"{folder}/")))

    def find_module(self, path: str) -> str | None:
        """Return the innermost module that contains a file; None if there is none."""
        containing = [folder for folder in self.modules if not folder or path.startswith(f"{folder}/")]
        return max(containing, key=len, default=None)

    def _is_inside(self, path: str) -> bool:
        return not self.folder or path == self.folder or path.startswith(f"{self.folder}/")


def read_gradle(tree: SourceTree, changed_paths: Sequence[str]) -> GradleBuild | None:
    """Return the Gradle build that contains the changed files, preferably the root's; None if there is none."""
    folders = {posixpath.dirname(path) for path in tree.entries if _BUILDS.search(path) and not _DATA.search(path)}
    containing = [
        candidate
        for candidate in folders
        if not candidate or any(path.startswith(f"{candidate}/") for path in changed_paths)
    ] or folders
    if not containing:
        return None
    folder = min(containing, key=lambda candidate: (candidate.count("/") + bool(candidate), candidate))
    match = _URL.search(tree.read(posixpath.join(folder, "gradle/wrapper/gradle-wrapper.properties")))
    # Colons are escaped in files of properties.
    return GradleBuild(tree=tree, folder=folder, url=match[1].replace("\\:", ":") if match else "")


def list_manifests(build: GradleBuild) -> list[str]:
    """Return the files of the tree that the dependency layer needs."""
    return sorted(p for p in build.tree.entries if _READ.search(p) and build.tree.is_file(p) and not _DATA.search(p))


def read_language_levels(build: GradleBuild) -> list[Evidence]:
    """Return the language levels in the build scripts, highest first."""
    levels = []
    for path, text in build.tree.read_many(build.list_build_scripts()).items():
        for match in LEVEL.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            note = match[0].split("(")[0].split("=")[0].strip()
            levels.append(Evidence(choice="language_version", value=match[1], path=path, line=line, note=note))
    return sorted(levels, key=lambda level: -int(level.value))


def select_newest_jdk(version: str) -> int:
    """Return the newest JDK on which this Gradle version runs."""
    key = _version_key(version)
    return next((jdk for first, jdk in NEWEST_JDK if key >= _version_key(first)), 8)


def is_newer(build: GradleBuild, version: str) -> bool:
    """Return whether a build needs this Gradle or a newer version: by its wrapper, or for its scripts in Kotlin."""
    has_kotlin = any(path.endswith(".kts") for path in build.list_build_scripts())
    return has_kotlin or _version_key(build.version) >= _version_key(version)


def _version_key(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def gradle_command(*, debian: bool) -> str:
    """Return the command that starts Gradle."""
    return "gradle" if debian else f"{DISTRIBUTION}/bin/gradle"


def render_dependency_steps(recipe: GradleRecipe, *, debian: bool) -> Iterator[str]:
    """Yield steps that install Gradle and resolve all configurations of all projects.

    Dependencies that resolve only in the presence of sources may be missing afterwards; the source step downloads them.
    """
    if debian:
        yield apt.render_install(["gradle"])
    else:
        match = _VERSION.search(recipe.url)
        name = f"Gradle {match[1]}" if match else "Gradle"
        yield render_registry_install(name, _render_fetch(recipe), substitute=recipe.substitute)
    script = read_packaged_file("languages.jvm", "resolve.gradle")
    yield f"mkdir -p {HOME}/init.d && cat > {HOME}/init.d/mergemill.gradle <<'END_OF_SCRIPT'\n{script}END_OF_SCRIPT"
    folders = [folder for folder in recipe.modules if folder]
    yield (
        (f"mkdir -p {quote_words(folders)} && " if folders else "")
        + f"({_enter_folder(recipe)}{gradle_command(debian=debian)} --continue mergemillResolve testClasses)"
        + " || echo 'the build scripts alone were not enough for every project'"
    )
    # The call before may fail for single projects; a layer without any jar shows that it failed for all.
    yield f"test -n \"$(find {HOME}/caches -name '*.jar' -print -quit)\""
    yield f"find . -mindepth 1 -delete && chown -R 1000:1000 {HOME}"


def render_source_steps(recipe: GradleRecipe, *, debian: bool) -> tuple[str, ...]:
    """Return the steps that compile sources and tests, offline if possible, else with network."""
    call = f'{_enter_folder(recipe)}{gradle_command(debian=debian)} --continue "$@" testClasses'
    # A single step, so that it can be tried without network (builders.layers.offline_first).
    compile_step = f"{{ compiled --offline -q || {{ {ONLINE} && compiled; }}; }}"
    return (f"compiled() {{ ({call}); }}\n{compile_step} && chown -R -h --from=0 1000:1000 {HOME}",)


def _enter_folder(recipe: GradleRecipe) -> str:
    return f"cd {shlex.quote(recipe.folder)} && " if recipe.folder else ""


_FETCH = """\
python3 - <<'END_OF_FETCH'
import hashlib, os, shutil, urllib.request, zipfile
with urllib.request.urlopen(@URL@) as answer, open("/tmp/gradle.zip", "wb") as file:
    shutil.copyfileobj(answer, file)
wanted = "@SUM@"
found = hashlib.sha256(open("/tmp/gradle.zip", "rb").read()).hexdigest()
assert wanted in ("", found), "the distribution is not what the wrapper's properties say: " + found
with zipfile.ZipFile("/tmp/gradle.zip") as archive:
    archive.extractall("/tmp/gradle")
os.remove("/tmp/gradle.zip")
os.rename(os.path.join("/tmp/gradle", os.listdir("/tmp/gradle")[0]), "@PLACE@")
os.chmod("@PLACE@/bin/gradle", 0o755)
END_OF_FETCH
[ -x @PLACE@/bin/gradle ]"""


def _render_fetch(recipe: GradleRecipe) -> str:
    words = {"@URL@": repr(recipe.url), "@SUM@": recipe.checksum, "@PLACE@": DISTRIBUTION}
    return re.sub("@[A-Z]+@", lambda match: words[match[0]], _FETCH)
