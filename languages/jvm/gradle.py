"""Gradle: which distribution a build asks for, and the steps that leave everything it needs in its user's home.

The distribution is taken as the wrapper's properties name it, without the wrapper's own program. Where its server is
out of reach, Debian's Gradle (4.4.1, in unstable 4.8) stands in by the switch `debian-packages`: enough for builds that
are as old.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import resources

from languages import apt
from languages.jvm.maven import ONLINE
from languages.rendering import quoted
from languages.scripting.debian import from_registry
from languages.tree import Tree
from taskdb.records import Evidence

HOME = "/opt/gradle"
"""Gradle's user home: filled in the dependency layer, owned by the tests' user, for Gradle locks things in it."""
DISTRIBUTION = "/opt/gradle-distribution"
DEBIANS = "4.4.1"
"""Debian's Gradle, in all its releases (4.8 in its unstable one)."""

OPTIONS = (
    "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
    " -Dorg.gradle.daemon=false -Dorg.gradle.vfs.watch=false -Dorg.gradle.welcome=never"
    " -Dorg.gradle.configuration-cache=false -Dorg.gradle.unsafe.configuration-cache=false"
    " -Dorg.gradle.java.installations.auto-download=false"
)
"""Of Gradle's own machine, which lives for one build; tests run in others."""

NEWEST_JDK = (
    ("9.1", 25), ("9.0", 24), ("8.10", 23), ("8.8", 22), ("8.5", 21), ("8.3", 20), ("7.6", 19), ("7.5", 18),
    ("7.3", 17), ("7.0", 16), ("6.7", 15), ("6.3", 14), ("6.0", 13), ("5.4", 12), ("5.0", 11), ("4.7", 10), ("4.3", 9),
    ("2.0", 8),
)  # fmt: skip
"""Gradle -> the newest JDK it runs on, as its compatibility matrix says; Debian's is mended to run on later ones."""

_BUILDS = re.compile(r"(^|/)(settings|build)\.gradle(\.kts)?$")
_READ = re.compile(
    r"(^|/)([^/]+\.gradle(\.kts)?|gradle\.properties|[^/]+\.versions\.toml|gradle-wrapper\.properties|[^/]*\.lockfile"
    r"|verification-metadata\.xml)$|(^|/)(buildSrc|build-logic|build-tools|gradle)/(?!.*\.jar$)"
)
"""What a build reads before it compiles: its scripts, catalogs, locks, and the plug-ins it holds itself."""
_DATA = re.compile(r"(^|/)(src|test-?(data|projects?|fixtures?)|examples?/[^/]+/src)/")
"""Folders whose build scripts are data of tests."""
_URL = re.compile(r"^\s*distributionUrl\s*=\s*(\S+)", re.MULTILINE)
_VERSION = re.compile(r"gradle-(\d+(?:\.\d+)*)")
_SUM = re.compile(r"^\s*distributionSha256Sum\s*=\s*([0-9a-f]{64})", re.MULTILINE)
_LEVEL = re.compile(
    r"(?:sourceCompatibility|targetCompatibility|jvmTarget|JavaLanguageVersion\.of|jvmToolchain|options\.release(?:\.set)?)"
    r"[\s=({'\"]*(?:JavaVersion\.)?(?:toVersion\()?['\"]?(?:VERSION_)?(?:JVM_)?(?:1[._])?(\d{1,2})\b"
)
"""Where build scripts say what they compile for."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What the steps need to know of a build."""

    folder: str
    """Where Gradle is called."""
    url: str
    """Of the distribution; empty where none is named."""
    checksum: str
    """Sha256 of the distribution, empty where none is named."""
    modules: tuple[str, ...]
    """Folders of its projects."""


@dataclass(frozen=True)
class Gradle:
    """The Gradle build of a tree."""

    tree: Tree
    folder: str
    """Of its settings or top build script; empty for the root."""
    url: str
    """Of the distribution, as the wrapper's properties name it; empty where there is no wrapper."""

    @property
    def version(self) -> str:
        """Of the distribution, Debian's where none is named."""
        match = _VERSION.search(self.url)
        return match[1] if match else DEBIANS

    @property
    def properties(self) -> str:
        """Path of the wrapper's properties."""
        return posixpath.join(self.folder, "gradle/wrapper/gradle-wrapper.properties")

    def recipe(self) -> Recipe:
        """What the steps need to know."""
        said = _SUM.search(self.tree.read(self.properties))
        checksum = said[1] if said else ""
        return Recipe(folder=self.folder, url=self.url, checksum=checksum, modules=self.modules)

    def scripts(self) -> list[str]:
        """Its build scripts, sorted."""
        start = f"{self.folder}/" if self.folder else ""
        return [p for p in sorted(self.tree.entries) if p.startswith(start) and re.search(r"\.gradle(\.kts)?$", p)]

    @cached_property
    def modules(self) -> tuple[str, ...]:
        """Folders of what it builds: with sources of their own, or a build script."""
        found = {path.partition("/src/")[0] for path in self.tree.entries if "/src/" in path}
        found |= {""} if any(path.startswith("src/") for path in self.tree.entries) else set()
        found |= {posixpath.dirname(path) for path in self.scripts() if _BUILDS.search(path)}
        return tuple(sorted(one for one in found if self._is_inside(one) and not _DATA.search(f"{one}/")))

    def module_of(self, path: str) -> str | None:
        """The innermost module that holds a file."""
        holding = [one for one in self.modules if not one or path.startswith(f"{one}/")]
        return max(holding, key=len, default=None)

    def _is_inside(self, path: str) -> bool:
        return not self.folder or path == self.folder or path.startswith(f"{self.folder}/")


def read_gradle(tree: Tree, touched: Sequence[str]) -> Gradle | None:
    """The Gradle build that holds what is touched, the root's where there is one; None where there is none."""
    folders = {posixpath.dirname(path) for path in tree.entries if _BUILDS.search(path) and not _DATA.search(path)}
    fitting = [one for one in folders if not one or any(path.startswith(f"{one}/") for path in touched)] or folders
    if not fitting:
        return None
    folder = min(fitting, key=lambda one: (one.count("/") + bool(one), one))
    named = _URL.search(tree.read(posixpath.join(folder, "gradle/wrapper/gradle-wrapper.properties")))
    return Gradle(tree=tree, folder=folder, url=named[1].replace("\\:", ":") if named else "")


def manifests(build: Gradle) -> list[str]:
    """What the dependency layer needs of the tree."""
    return sorted(p for p in build.tree.entries if _READ.search(p) and build.tree.is_file(p) and not _DATA.search(p))


def levels(build: Gradle) -> list[Evidence]:
    """The language levels of the build scripts, the highest first."""
    found = []
    for path, text in build.tree.read_many(build.scripts()).items():
        for match in _LEVEL.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            note = match[0].split("(")[0].split("=")[0].strip()
            found.append(Evidence(choice="language_version", value=match[1], path=path, line=line, note=note))
    return sorted(found, key=lambda one: -int(one.value))


def newest_jdk(version: str) -> int:
    """The newest JDK on which this Gradle runs."""
    mine = _key(version)
    return next((jdk for first, jdk in NEWEST_JDK if mine >= _key(first)), 8)


def _key(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def program(*, debian: bool) -> str:
    """How Gradle is called."""
    return "gradle" if debian else f"{DISTRIBUTION}/bin/gradle"


def dependency_steps(recipe: Recipe, *, debian: bool) -> Iterator[str]:
    """Gradle itself, and what all configurations of all projects ask for.

    What only resolves where sources are may be missing afterwards: the source step fetches it.
    """
    if debian:
        # The links that Java's packages set for manuals need the folder.
        yield f"mkdir -p /usr/share/man/man1 && {apt.install(['gradle'])}"
    else:
        yield from_registry("Gradle", _fetched(recipe))
    script = resources.files("languages.jvm").joinpath("resolve.gradle").read_text(encoding="utf-8")
    yield f"mkdir -p {HOME}/init.d && cat > {HOME}/init.d/mergemill.gradle <<'END_OF_SCRIPT'\n{script}END_OF_SCRIPT"
    folders = [one for one in recipe.modules if one]
    yield (
        (f"mkdir -p {quoted(folders)} && " if folders else "")
        + f"({_into(recipe)}{program(debian=debian)} --continue mergemillResolve testClasses)"
        + " || echo 'the build scripts alone were not enough for every project'"
    )
    yield f"test -n \"$(find {HOME}/caches -name '*.jar' -print -quit)\""
    yield f"find . -mindepth 1 -delete && chown -R 1000:1000 {HOME}"


def source_steps(recipe: Recipe, *, debian: bool) -> tuple[str, ...]:
    """Compile tree and tests, offline when the dependency layer has everything, else with network."""
    call = f'{_into(recipe)}{program(debian=debian)} --continue "$@" testClasses'
    # One step, so that it can be tried without network (builders.layers.offline_first).
    tried = f"{{ compiled --offline -q || {{ {ONLINE} && compiled; }}; }}"
    return (f"compiled() {{ ({call}); }}\n{tried} && chown -R -h --from=0 1000:1000 {HOME}",)


def _into(recipe: Recipe) -> str:
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


def _fetched(recipe: Recipe) -> str:
    words = {"@URL@": repr(recipe.url), "@SUM@": recipe.checksum, "@PLACE@": DISTRIBUTION}
    return re.sub("@[A-Z]+@", lambda match: words[match[0]], _FETCH)
