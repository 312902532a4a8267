"""Maven's settings and steps: everything a build needs into one local repository, then the tree compiled offline."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence

from languages.jvm.poms import Reactor
from languages.jvm.tests import stub_folders
from languages.rendering import quoted
from languages.tree import Tree

REPOSITORY = "/opt/m2"
"""Maven's local repository: filled in the dependency layer, owned by the tests' user, for Maven notes things in it."""

SKIPPED = (
    "checkstyle.skip", "enforcer.skip", "license.skip", "rat.skip", "apache.rat.skip", "jacoco.skip",
    "maven.javadoc.skip", "maven.source.skip", "spotbugs.skip", "findbugs.skip", "pmd.skip", "cpd.skip",
    "animal.sniffer.skip", "spotless.check.skip", "spotless.apply.skip", "fmt.skip", "formatter.skip", "impsort.skip",
    "sort.skip", "gpg.skip", "japicmp.skip", "revapi.skip", "clirr.skip", "cyclonedx.skip", "mdep.analyze.skip",
    "forbiddenapis.skip", "dependency-check.skip", "ossindex.skip", "maven.gitcommitid.skip", "xml.skip",
    "detekt.skip", "ktlint.skip", "scalastyle.skip", "editorconfig.skip", "pgpverify.skip", "basepom.check.skip-all",
    "maven.plugin.skipErrorNoDescriptorsFound", "skipITs", "sonar.skip", "docker.skip", "frontend.skip",
)  # fmt: skip
"""Properties that turn off what says nothing of the tests: style, licences, coverage, signatures, documents."""

OPTIONS = " ".join(
    [
        "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xss8m",
        f"-Dmaven.repo.local={REPOSITORY}",
        *(f"-D{name}=true" for name in SKIPPED),
    ]
)
"""Of Maven's own machine, which lives for seconds: little compiling of itself. Tests run in others."""

MVN = ("mvn", "-B", "-ntp")
STUB = "MergemillStubTest"
"""Name of an empty test class: with it Surefire fetches what runs the real ones."""
_NO_TESTS = f"-Dtest={STUB} -DfailIfNoTests=false -Dsurefire.failIfNoSpecifiedTests=false"
_FETCH = "mvn -B -q org.apache.maven.plugins:maven-dependency-plugin:3.6.1:get -Dtransitive=false"

ONLINE = '[ "$(ls /sys/class/net)" != lo ]'
"""Without network Maven would wait long for each thing it cannot have."""

_READ_BY_POMS = re.compile(r"(^|/)(\.mvn/[^/]+|pom\.xml)$")


def manifests(tree: Tree, reactor: Reactor) -> list[str]:
    """The poms and Maven's own settings in the tree."""
    settings = [path for path in tree.glob("*.mvn/*") if _READ_BY_POMS.search(path) and not path.endswith(".jar")]
    return sorted({*settings, *(pom.path for pom in reactor.poms.values())})


def dependency_steps(reactor: Reactor, modules: Sequence[str], suffix: str) -> list[str]:
    """Fill the local repository by building an empty class and running an empty test in each module.

    What is only resolved where sources are (generators, say) may be missing afterwards: the source step fetches it.

    Args:
        reactor: all poms.
        modules: folders of those to be built (with what they need), none for all.
        suffix: of the language's files.
    """
    folders = list(stub_folders(reactor, reactor.modules()))
    main, test = [one for one, _ in folders], [one for _, one in folders]
    kinds = {"java"} | {suffix}
    stubs = "".join(
        f'for folder in {quoted(_of_kind(places, kind))}; do mkdir -p "$folder"'
        f" && echo '{_stub(name, kind)}' > \"$folder/{name}.{kind}\" || exit 1; done\n"
        for places, name in ((main, "MergemillStub"), (test, STUB))
        for kind in sorted(kinds)
    )
    build = f"{' '.join(MVN)} -fae -Dmaven.test.failure.ignore=true test {_NO_TESTS}{_chosen(reactor, modules)}"
    return [
        f"mkdir -p {REPOSITORY}",
        *(_released(*one[:3]) for one in reactor.snapshots()),
        stubs + f"{_into(reactor)}{build} || echo 'the poms alone were not enough for every module'",
        # Without these notes Maven does not ask which server a file once came from.
        f"find {REPOSITORY} \\( -name _remote.repositories -o -name '*.lastUpdated' \\) -delete",
        f"test -n \"$(find {REPOSITORY} -name '*.jar' -print -quit)\"",
        'find . -mindepth 1 -delete && rm -rf "$HOME/.m2"',
        f"chown -R 1000:1000 {REPOSITORY}",
    ]


def _of_kind(folders: Sequence[str], kind: str) -> list[str]:
    """The folders where files of this kind lie: `src/main/kotlin` for `src/main/java`."""
    return [re.sub(r"(^|/)java$", rf"\1{_LANGUAGES.get(kind, kind)}", folder) for folder in folders]


_LANGUAGES = {"kt": "kotlin"}


def _stub(name: str, kind: str) -> str:
    return f"public class {name} {{ }}" if kind == "java" else f"class {name}{kind.capitalize()}"


def _released(group: str, artifact: str, version: str) -> str:
    """What a snapshot became once it was released, under the snapshot's name; servers forget snapshots."""
    final = version.removesuffix("-SNAPSHOT")
    place = f"{REPOSITORY}/{group.replace('.', '/')}/{artifact}"
    copies = " && ".join(
        f"{{ ! [ -f {place}/{final}/{artifact}-{final}.{end} ]"
        f" || cp {place}/{final}/{artifact}-{final}.{end} {place}/{version}/{artifact}-{version}.{end}; }}"
        for end in ("pom", "jar")
    )
    got = f"{_FETCH} -Dartifact={group}:{artifact}:{final}"
    return f"(cd / && {{ {got}:pom; {got}:jar; }}; mkdir -p {place}/{version} && {copies})"


def source_steps(reactor: Reactor, modules: Sequence[str]) -> list[str]:
    """Compile tree and tests, offline when the dependency layer has everything, else with network."""
    holders = [f"{folder}/" if folder else "" for folder in modules or reactor.modules()]
    places = quoted([f"{folder}target/test-classes" for folder in holders])
    made = f"echo 'public class {STUB} {{ }}' > /tmp/{STUB}.java && javac -d /tmp /tmp/{STUB}.java"
    each = f'for folder in {places}; do mkdir -p "$folder" && cp /tmp/{STUB}.class "$folder/"; done'
    left = f"-name '{STUB}*' -o -path '*/target/surefire-reports/*'"
    after = [
        f"find . -path ./.git -prune -o \\( {left} \\) -type f -exec rm {{}} +",
        f'rm -rf "$HOME/.m2" && chown -R -h --from=0 1000:1000 {REPOSITORY}',
    ]
    build = f'{_into(reactor)}{" ".join(MVN)} "$@" test {_NO_TESTS}{_chosen(reactor, modules)}'
    # One step, so that it can be tried without network (builders.layers.offline_first).
    compiled = (
        f"compiled() {{ ({build}); }}\n{made} && {each} && {{ compiled --offline -q || {{ {ONLINE} && compiled; }}; }}"
    )
    return [" && ".join([compiled, *after])]


def _into(reactor: Reactor) -> str:
    return f"cd {quoted([reactor.top])} && " if reactor.top else ""


def _chosen(reactor: Reactor, modules: Sequence[str]) -> str:
    inside = [posixpath.relpath(module or ".", reactor.top or ".") for module in modules]
    return f" -pl {quoted([','.join(inside)])} -am" if modules else ""
