"""Text of the poms that take the place of a Gradle build."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

COMPILER = "3.11.0"
SUREFIRE = "3.2.5"
"""Releases that run on the Maven of every base image."""

_NAMESPACE = 'xmlns="http://maven.apache.org/POM/4.0.0"'


@dataclass(frozen=True)
class Artifact:
    """A dependency, BOM or constraint."""

    group: str
    artifact: str
    version: str
    """Empty if a BOM or constraint has it."""
    scope: str
    origin: str
    """File and line."""
    type: str = ""
    classifier: str = ""
    exclusions: tuple[tuple[str, str], ...] = ()

    @property
    def key(self) -> tuple[str, ...]:
        """Properties that Maven distinguishes artifacts by."""
        return self.group, self.artifact, self.type, self.classifier

    def render(self) -> str:
        """Return the element `dependency`."""
        values = {
            "groupId": self.group,
            "artifactId": self.artifact,
            "version": self.version,
            "type": "pom" if self.scope == "import" else self.type,
            "classifier": self.classifier,
            "scope": self.scope,
        }
        exclusions = "".join(
            f"<exclusion><groupId>{escape(group)}</groupId><artifactId>{escape(artifact)}</artifactId></exclusion>"
            for group, artifact in self.exclusions
        )
        return f"<dependency>{_render_values(values)}{_wrap('exclusions', exclusions)}</dependency>"


@dataclass(frozen=True, kw_only=True)
class ModulePom:
    """Contents of a module's pom."""

    artifact: str
    basedir: str
    """Folder of the module in the image."""
    dependencies: tuple[Artifact, ...]
    boms: tuple[Artifact, ...]
    constraints: tuple[Artifact, ...]
    level: str
    """Language level; empty for that of the JDK."""
    test_level: str
    """Language level of tests; empty if it is the same."""
    compiler_arguments: tuple[str, ...]
    processes_annotations: bool
    jvm_arguments: tuple[str, ...]
    test_properties: tuple[tuple[str, str], ...]
    groups: tuple[str, ...]
    excluded_groups: tuple[str, ...]
    kotlin: str
    """Version of Kotlin; empty if there are no Kotlin sources."""
    kotlin_level: str
    kotlin_arguments: tuple[str, ...]
    compiler_plugins: tuple[tuple[str, str], ...]
    """(plug-in, artifact) of Kotlin's compiler plug-ins."""

    def render(self) -> str:
        """Return the pom."""
        managed = [
            *(constraint.render() for constraint in self.constraints if constraint.version),
            *(bom.render() for bom in self.boms),
        ]
        main, test = f"{self.basedir}/src/main", f"{self.basedir}/src/test"
        plugins = [self._render_kotlin()] if self.kotlin else []
        plugins += [self._render_compiler(), self._render_surefire()]
        return (
            f"<project {_NAMESPACE}><modelVersion>4.0.0</modelVersion>\n"
            f"<groupId>translated</groupId><artifactId>{self.artifact}</artifactId><version>1</version>\n"
            "<properties><project.build.sourceEncoding>UTF-8</project.build.sourceEncoding></properties>\n"
            f"{_wrap('dependencyManagement', _wrap('dependencies', _join(managed)))}"
            f"{_wrap('dependencies', _join(dependency.render() for dependency in self.dependencies))}\n"
            f"<build><directory>{escape(self.basedir)}/target</directory>\n"
            f"<sourceDirectory>{escape(main)}/java</sourceDirectory>\n"
            f"<testSourceDirectory>{escape(test)}/java</testSourceDirectory>\n"
            f"<resources><resource><directory>{escape(main)}/resources</directory></resource></resources>\n"
            "<testResources><testResource>"
            f"<directory>{escape(test)}/resources</directory></testResource></testResources>\n"
            f"<plugins>\n{_join(plugins)}</plugins></build></project>\n"
        )

    def _render_compiler(self) -> str:
        level = _name_level(self.level)
        arguments = [*self.compiler_arguments, *(() if self.processes_annotations else ("-proc:none",))]
        values = {
            "source": level,
            "target": level,
            "testSource": _name_level(self.test_level or self.level),
            "testTarget": _name_level(self.test_level or self.level),
        }
        configuration = (
            _render_values(values)
            + _wrap("compilerArgs", "".join(f"<arg>{escape(argument)}</arg>" for argument in arguments))
            # Everything is compiled on the class path, as Gradle does for a language level below 9.
            + "<excludes><exclude>module-info.java</exclude></excludes>"
            + "<testExcludes><testExclude>module-info.java</testExclude></testExcludes>"
        )
        executions = ""
        if self.kotlin:  # Kotlin first: it reads Java's sources, Java's compiler reads Kotlin's classes.
            executions = "<executions>" + "".join(
                f"<execution><id>default-{goal}</id><phase>none</phase></execution>"
                f"<execution><id>java-{goal}</id><phase>{phase}</phase><goals><goal>{goal}</goal></goals></execution>"
                for goal, phase in (("compile", "compile"), ("testCompile", "test-compile"))
            )
            executions += "</executions>"
        return _render_plugin("org.apache.maven.plugins", "maven-compiler-plugin", COMPILER, configuration, executions)

    def _render_surefire(self) -> str:
        properties = "".join(f"<{name}>{escape(value)}</{name}>" for name, value in self.test_properties)
        values = {
            "workingDirectory": self.basedir,
            "argLine": " ".join(self.jvm_arguments),
            "groups": ",".join(self.groups),
            "excludedGroups": ",".join(self.excluded_groups),
            "useModulePath": "false",
            "failIfNoTests": "false",
        }
        configuration = (
            _render_values(values)
            + "<includes><include>**/*.java</include></includes>"  # Gradle looks at classes, not at their names.
            + _wrap("systemPropertyVariables", properties)
        )
        return _render_plugin("org.apache.maven.plugins", "maven-surefire-plugin", SUREFIRE, configuration)

    def _render_kotlin(self) -> str:
        level = self.kotlin_level
        executions = "<executions>" + "".join(
            f"<execution><id>{goal}</id><phase>{goal}</phase><goals><goal>{goal}</goal></goals><configuration><sourceDirs>"
            f"<dir>{escape(self.basedir)}/src/{kind}/kotlin</dir><dir>{escape(self.basedir)}/src/{kind}/java</dir>"
            "</sourceDirs></configuration></execution>"
            for goal, kind in (("compile", "main"), ("test-compile", "test"))
        )
        configuration = (
            (f"<jvmTarget>{_name_level(level)}</jvmTarget>" if level else "")
            + _wrap("args", "".join(f"<arg>{escape(argument)}</arg>" for argument in self.kotlin_arguments))
            + _wrap("compilerPlugins", "".join(f"<plugin>{name}</plugin>" for name, _ in self.compiler_plugins))
        )
        artifacts = _join(
            f"<dependency><groupId>org.jetbrains.kotlin</groupId><artifactId>{artifact}</artifactId>"
            f"<version>{self.kotlin}</version></dependency>"
            for artifact in sorted({artifact for _, artifact in self.compiler_plugins})
        )
        rest = f"{executions}</executions>{_wrap('dependencies', artifacts)}"
        return _render_plugin("org.jetbrains.kotlin", "kotlin-maven-plugin", self.kotlin, configuration, rest)


def render_aggregator(modules: Sequence[str]) -> str:
    """Return the pom that lists the modules, given by their folders."""
    listed = _join(f"<module>{escape(module)}</module>" for module in modules)
    return (
        f"<project {_NAMESPACE}><modelVersion>4.0.0</modelVersion>\n"
        "<groupId>translated</groupId><artifactId>translated</artifactId><version>1</version>\n"
        f"<packaging>pom</packaging><modules>\n{listed}</modules></project>\n"
    )


def _name_level(level: str) -> str:
    """Return a level as compilers name it: 8 is `1.8`; that of the JDK if it is empty."""
    if not level:
        return "${java.specification.version}"
    return f"1.{level}" if int(level) <= 8 else level


def _render_plugin(group: str, artifact: str, version: str, configuration: str, rest: str = "") -> str:
    values = {"groupId": group, "artifactId": artifact, "version": version}
    return f"<plugin>{_render_values(values)}\n<configuration>{configuration}</configuration>\n{rest}</plugin>"


def _render_values(values: dict[str, str]) -> str:
    return "".join(f"<{name}>{escape(value)}</{name}>" for name, value in values.items() if value)


def _wrap(name: str, content: str) -> str:
    return f"<{name}>{content}</{name}>" if content else ""


def _join(elements: Iterable[str]) -> str:
    return "".join(f"{element}\n" for element in elements)
