"""Maven: steps that download everything a build needs into a single local repository and compile the tree offline."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from languages.jvm.poms import Reactor
from languages.rendering import quote_words
from languages.source_tree import SourceTree

REPOSITORY = "/opt/m2"
"""Local repository: filled in the dependency layer and owned by the tests' user, because Maven writes metadata into it.
"""

SKIPPED = (
    "checkstyle.skip",
    "enforcer.skip",
    "license.skip",
    "rat.skip",
    "apache.rat.skip",
    "jacoco.skip",
    "maven.javadoc.skip",
    "maven.source.skip",
    "spotbugs.skip",
    "findbugs.skip",
    "pmd.skip",
    "cpd.skip",
    "animal.sniffer.skip",
    "spotless.check.skip",
    "spotless.apply.skip",
    "fmt.skip",
    "formatter.skip",
    "impsort.skip",
    "sort.skip",
    "gpg.skip",
    "japicmp.skip",
    "revapi.skip",
    "clirr.skip",
    "cyclonedx.skip",
    "mdep.analyze.skip",
    "forbiddenapis.skip",
    "dependency-check.skip",
    "ossindex.skip",
    "maven.gitcommitid.skip",
    "xml.skip",
    "detekt.skip",
    "ktlint.skip",
    "scalastyle.skip",
    "editorconfig.skip",
    "pgpverify.skip",
    "basepom.check.skip-all",
    "maven.plugin.skipErrorNoDescriptorsFound",
    "skipITs",
    "sonar.skip",
    "docker.skip",
    "frontend.skip",
)
"""Properties that disable plug-ins unrelated to tests: style, licences, coverage, signatures, documentation."""

OPTIONS = " ".join(
    [
        "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xss8m",
        f"-Dmaven.repo.local={REPOSITORY}",
        *(f"-D{name}=true" for name in SKIPPED),
    ]
)
"""JVM options of Maven's own process, tuned for a short run. Tests run in separate JVMs."""

MVN = ("mvn", "-B", "-ntp")
_PROFILES = "-P"
_FILE = "-f"
TRANSLATED = "/opt/translated"
"""Folder of the poms that take the place of a Gradle build, each below the path of its module in the tree."""
STUB = "MergemillStubTest"
"""Name of an empty test class, which makes Surefire download its test providers."""
_NO_TESTS = f"-Dtest={STUB} -DfailIfNoTests=false -Dsurefire.failIfNoSpecifiedTests=false"
_FETCH = "mvn -B -q org.apache.maven.plugins:maven-dependency-plugin:3.6.1:get -Dtransitive=false"

ONLINE = '[ "$(ls /sys/class/net)" != lo ]'
"""True if there is a network; without a network, Maven waits for a long time for each missing file."""

_READ_BY_POMS = re.compile(r"(^|/)(\.mvn/[^/]+|pom\.xml)$")


@dataclass(frozen=True, kw_only=True)
class MavenSteps:
    """The steps of a build of certain modules."""

    dependencies: tuple[str, ...]
    source: tuple[str, ...]


def render_steps(reactor: Reactor, modules: Sequence[str], suffix: str) -> MavenSteps:
    """Return the steps that build the modules in these folders and the modules that they depend on.

    All modules if none is given.

    Args:
        reactor: all poms.
        modules: folders of the modules to build.
        suffix: suffix of the language's files.
    """
    return MavenSteps(
        dependencies=tuple(render_dependency_steps(reactor, modules, suffix)),
        source=tuple(render_source_steps(reactor, modules)),
    )


def list_manifests(tree: SourceTree, reactor: Reactor) -> list[str]:
    """Return the poms and Maven settings of the tree."""
    settings = [path for path in tree.glob("*.mvn/*") if _READ_BY_POMS.search(path) and not path.endswith(".jar")]
    return sorted({*settings, *(pom.path for pom in reactor.poms.values()), *reactor.parents})


def maven_command(reactor: Reactor) -> tuple[str, ...]:
    """Return the command that starts Maven with the profiles of the reactor, and with the tests that its poms skip."""
    profiles, skips = reactor.list_activated_profiles(), sorted({name for name, _ in reactor.list_skips()})
    return (*MVN, *((_PROFILES, ",".join(profiles)) if profiles else ()), *(f"-D{name}=false" for name in skips))


def make_translated_command(folder: str) -> tuple[str, ...]:
    """Return the command that starts Maven with the poms that take the place of the Gradle build in a folder."""
    return (*MVN, _FILE, posixpath.join(TRANSLATED, folder, "pom.xml"))


def is_translated(command: Sequence[str]) -> bool:
    """Return whether a command of Maven uses poms that take the place of a Gradle build."""
    return _FILE in command


def read_profiles(command: Sequence[str]) -> list[str]:
    """Return the profiles that a command of Maven activates."""
    return command[command.index(_PROFILES) + 1].split(",") if _PROFILES in command else []


def render_dependency_steps(reactor: Reactor, modules: Sequence[str], suffix: str) -> list[str]:
    """Return steps that fill the local repository by building an empty class and running an empty test in each module.

    Dependencies that resolve only in the presence of sources (generators) may be missing afterwards; the source step
    downloads them.

    Args:
        reactor: all poms.
        modules: folders of the modules to build (with their dependencies); empty for all.
        suffix: suffix of the language's files.
    """
    selection = _format_module_selection(reactor, modules)
    command = f"{_enter_folder(reactor)}{quote_words(maven_command(reactor))}"
    return [
        f"mkdir -p {REPOSITORY}",
        *(_render_snapshot_alias(*snapshot[:3]) for snapshot in reactor.list_snapshots()),
        *render_download_steps(
            list(_list_stub_folders(reactor, reactor.list_code_modules())), suffix, command, selection
        ),
    ]


def render_download_steps(
    folders: Sequence[tuple[str, str]], suffix: str, command: str, selection: str = ""
) -> Iterator[str]:
    """Yield the steps that build stubs, which fills the local repository.

    Args:
        folders: (source folder, test folder) of each module.
        suffix: suffix of the language's files.
        command: command that starts Maven.
        selection: options that select modules.
    """
    main, test = [source for source, _ in folders], [source for _, source in folders]
    kinds = {"java"} | {suffix}
    stubs = "".join(
        f'for folder in {quote_words(_list_source_folders(folders_of_kind, kind))}; do mkdir -p "$folder"'
        f" && echo '{_render_stub(name, kind)}' > \"$folder/{name}.{kind}\" || exit 1; done\n"
        for folders_of_kind, name in ((main, "MergemillStub"), (test, STUB))
        for kind in sorted(kinds)
    )
    build = f"{command} -fae -Dmaven.test.failure.ignore=true test {_NO_TESTS}{selection}"
    yield stubs + f"{build} || echo 'the poms alone were not enough for every module'"
    # Without these files Maven does not check from which server an artifact came.
    yield f"find {REPOSITORY} \\( -name _remote.repositories -o -name '*.lastUpdated' \\) -delete"
    yield f"test -n \"$(find {REPOSITORY} -name '*.jar' -print -quit)\""
    yield 'find . -mindepth 1 -delete && rm -rf "$HOME/.m2"'
    yield f"chown -R 1000:1000 {REPOSITORY}"


def _list_stub_folders(reactor: Reactor, modules: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield (source folder, test folder) of each module, relative to the root of the tree."""
    for module in modules:
        main = reactor.find_setting(module, "sourceDirectory") or "src/main/java"
        test = reactor.find_setting(module, "testSourceDirectory") or "src/test/java"
        yield posixpath.normpath(posixpath.join(module, main)), posixpath.normpath(posixpath.join(module, test))


def _list_source_folders(folders: Sequence[str], kind: str) -> list[str]:
    """Return the source folders for a kind of file: `src/main/kotlin` for `src/main/java`."""
    return [re.sub(r"(^|/)java$", rf"\1{_LANGUAGES.get(kind, kind)}", folder) for folder in folders]


_LANGUAGES = {"kt": "kotlin"}


def _render_stub(name: str, kind: str) -> str:
    return f"public class {name} {{ }}" if kind == "java" else f"class {name}{kind.capitalize()}"


def _render_snapshot_alias(group: str, artifact: str, version: str) -> str:
    """Return a step that installs the release of a snapshot under the snapshot's name: servers delete snapshots."""
    final = version.removesuffix("-SNAPSHOT")
    folder = f"{REPOSITORY}/{group.replace('.', '/')}/{artifact}"
    copies = " && ".join(
        f"{{ ! [ -f {folder}/{final}/{artifact}-{final}.{suffix} ]"
        f" || cp {folder}/{final}/{artifact}-{final}.{suffix} {folder}/{version}/{artifact}-{version}.{suffix}; }}"
        for suffix in ("pom", "jar")
    )
    fetch = f"{_FETCH} -Dartifact={group}:{artifact}:{final}"
    return f"(cd / && {{ {fetch}:pom; {fetch}:jar; }}; mkdir -p {folder}/{version} && {copies})"


def render_source_steps(reactor: Reactor, modules: Sequence[str]) -> list[str]:
    """Return the steps that compile sources and tests, offline if possible, else with network."""
    command = f"{_enter_folder(reactor)}{quote_words(maven_command(reactor))}"
    selection = _format_module_selection(reactor, modules)
    return [render_compile_step(modules or reactor.list_code_modules(), command, selection)]


def render_compile_step(modules: Sequence[str], command: str, selection: str = "") -> str:
    """Return the step that compiles sources and tests of the modules in these folders; see `render_download_steps`."""
    class_folders = quote_words([posixpath.join(folder, "target/test-classes") for folder in modules])
    compile_stub = f"echo 'public class {STUB} {{ }}' > /tmp/{STUB}.java && javac -d /tmp /tmp/{STUB}.java"
    copy_stub = f'for folder in {class_folders}; do mkdir -p "$folder" && cp /tmp/{STUB}.class "$folder/"; done'
    leftovers = f"-name '{STUB}*' -o -path '*/target/surefire-reports/*'"
    cleanup = [
        f"find . -path ./.git -prune -o \\( {leftovers} \\) -type f -exec rm {{}} +",
        f'rm -rf "$HOME/.m2" && chown -R -h --from=0 1000:1000 {REPOSITORY}',
    ]
    build = f'{command} "$@" test {_NO_TESTS}{selection}'
    # A single step, so that it can be tried without network (builders.layers.offline_first).
    compile_step = (
        f"compiled() {{ ({build}); }}\n{compile_stub} && {copy_stub}"
        f" && {{ compiled --offline -q || {{ {ONLINE} && compiled; }}; }}"
    )
    return " && ".join([compile_step, *cleanup])


def _enter_folder(reactor: Reactor) -> str:
    return f"cd {quote_words([reactor.top])} && " if reactor.top else ""


def _format_module_selection(reactor: Reactor, modules: Sequence[str]) -> str:
    relative = [posixpath.relpath(module or ".", reactor.top or ".") for module in modules]
    return f" -pl {quote_words([','.join(relative)])} -am" if modules else ""
