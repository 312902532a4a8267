"""Maven poms with the declarations of a Gradle build, for machines that cannot reach the build's Gradle distribution.

Only declarations are translated: modules, dependencies, language levels, options of compilers and tests. Plug-ins that
do not change what is compiled or tested are left out, and so is everything that a script computes. Where a dependency
or a plug-in has no equivalent there is no translation, and its obstacle names file and line.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from languages.jvm import maven
from languages.jvm.gradle import LEVEL, GradleBuild
from languages.jvm.gradle_scripts import (
    CONFIGURATIONS,
    Block,
    Catalog,
    Declaration,
    expand,
    find_end,
    find_variable,
    read_catalog,
    read_declarations,
    read_script,
    read_settings_catalogs,
    read_variables,
)
from languages.jvm.translated_poms import Artifact, ModulePom, render_aggregator
from languages.rendering import quote_words
from languages.source_tree import SourceTree
from taskdb.records import Evidence

ROOT_MODULE = "_root"
"""Folder of the root project's pom: the top pom only lists modules."""

_NO_EQUIVALENT = re.compile(
    r"^(com\.android\.\S+|org\.jetbrains\.kotlin\.(multiplatform|android|js|kapt|native\S*)|kotlin-(kapt|multiplatform|android)"
    r"|com\.google\.devtools\.ksp|com\.google\.protobuf|antlr|scala|java-gradle-plugin|kotlin-dsl|`kotlin-dsl`"
    r"|java-test-fixtures|org\.jetbrains\.intellij\S*|io\.quarkus|io\.micronaut\S*|fabric-loom|net\.minecraftforge\S*"
    r"|com\.github\.gmazzo\.buildconfig|org\.openapi\.generator|com\.squareup\.(wire|sqldelight)|org\.xtext\S*)$"
)
"""Plug-ins that generate code, or compile for something else than the JVM."""
_JVM = re.compile(r"^(java|java-library|java-base|application|groovy|war|org\.jetbrains\.kotlin\.jvm|kotlin)$")
_COMPILER_PLUGINS = {
    "org.jetbrains.kotlin.plugin.serialization": ("kotlinx-serialization", "kotlin-maven-serialization"),
    "org.jetbrains.kotlin.plugin.allopen": ("all-open", "kotlin-maven-allopen"),
    "org.jetbrains.kotlin.plugin.spring": ("spring", "kotlin-maven-allopen"),
    "org.jetbrains.kotlin.plugin.noarg": ("no-arg", "kotlin-maven-noarg"),
    "org.jetbrains.kotlin.plugin.jpa": ("jpa", "kotlin-maven-noarg"),
}
_PLUGIN = re.compile(
    r"(?:\bid\s*\(?\s*[\"'](?P<id>[\w.-]+)[\"']\s*\)?|\bkotlin\(\s*[\"'](?P<kotlin>[\w.]+)[\"']\s*\)"
    r"|\balias\s*\(?\s*(?P<alias>[\w.]+)\s*\)?|`(?P<quoted>[\w-]+)`|^\s*(?P<bare>java|application|groovy|war|signing)\s*$)"
    r"(?:\s*\.?\s*version\s*\(?\s*(?P<version>\"[^\"]+\"|'[^']+'|[\w.]+(?:\(\))?)\s*\)?)?(?P<absent>\s*\.?apply\(?\s*false)?",
    re.MULTILINE,
)
_APPLY = re.compile(
    r"\bapply\s*\(?\s*plugin\s*[:=]\s*[\"']([\w.-]+)[\"']|\b(?:pluginManager|plugins)\.apply\(\s*[\"']([\w.-]+)[\"']"
    r"|\bapply\(\s*[\"']([\w.-]+)[\"']\s*\)"
)
_APPLY_FROM = re.compile(r"\bapply\s*\(?\s*from\s*[:=]\s*(?:[\w.]*file\s*\(\s*)?[\"']([^\"']+)[\"']")
_INCLUDE = re.compile(r"\binclude\b\s*\(?((?:\s*[\"'][^\"']+[\"']\s*,?)+)")
_PROJECT_DIR = re.compile(
    r"project\(\s*[\"']([^\"']+)[\"']\s*\)\.projectDir\s*=\s*(?:file\s*\(|(?:new\s+)?File\s*\(\s*(?:[\w.]+\s*,)?)\s*[\"']([^\"']+)"
)
_ROOT = re.compile(r"^(\$\{?(rootDir|rootProject\.projectDir|rootProject\.rootDir|projectDir|project\.rootDir)\}?)?/*")
_WRAPPED = re.compile(
    r"^(allprojects|afterEvaluate|project\.afterEvaluate|plugins\.with\w+.*|pluginManager\.withPlugin.*|with\(.*|configure<.*)$"
)
_BUILD_ONLY = (
    r"^(buildscript|pluginManagement|publishing|dependencyResolutionManagement|nexusPublishing|mavenPublishing)\b"
)
_OTHER_PROJECTS = r"^(allprojects|subprojects|configure\s*\(|project\s*\()"
_COORDINATES = re.compile(r"^([\w.-]+):([\w.-]+)(?::([^:@\s]+))?(?::([\w.-]+))?(?:@(\w+))?$")
_PROJECT = re.compile(
    r"^(?:dependencies\.)?project\s*\((?:\s*path\s*[:=])?\s*[\"']([^\"']+)[\"'](.*)\)(.*)$", re.DOTALL
)
_FRAMEWORK = re.compile(r"\b(useJUnitPlatform|useJUnitJupiter|useTestNG)\b")
_TEST_SUITE = r"^test$|[\"']test[\"']|\btest by getting\b"
_SUITE_FRAMEWORK = re.compile(r"\b(useJUnitJupiter|useJUnit|useTestNG)\s*\(([^)]*)\)")
_SUITE_ARTIFACTS = {
    "useJUnitJupiter": ("org.junit.jupiter", "junit-jupiter"),
    "useJUnit": ("junit", "junit"),
    "useTestNG": ("org.testng", "testng"),
}
"""Call of a test suite -> artifact that it adds; without a version it is a default of Gradle's."""
_LITERAL = re.compile(r"\"([^\"\n]*)\"|'([^'\n]*)'")
_SYSTEM_PROPERTY = re.compile(
    r"\bsystemProperty\s*\(?\s*[\"']([\w.-]+)[\"']\s*,\s*(?:[\"']([^\"'\n]*)[\"']|(true|false|\d+)\b)"
)
_DYNAMIC = re.compile(r"\+|latest\.|^\[|^\(")
_ADDED_TASK = re.compile(r"^task\b|\b(register|create|registering|creating|maybeCreate)\b")
_COMPILATION = r"\bcompile(Test)?Java\b|\bJavaCompile\b"
_TESTING = r"^(tasks\.)?test$|\bTest\b[>)]|named[^\n]*\btest\b"
_LEVELS = (
    re.compile(r"\brelease\b(?:\.set)?[\s=(]*(\d{1,2})\b"),
    re.compile(r"\b(?:target|source)Compatibility\b[^\n]*?(?:VERSION_|[\s=('\"])(?:1[._])?(\d{1,2})\b"),
    LEVEL,
)
"""Declarations of the language level, the most specific first."""
_STYLE = re.compile(r"^-(Xlint|Werror|Xdoclint|W|nowarn|g$|proc:)")


class ObstacleError(Exception):
    """Part of the build has no equivalent; the message names it with file and line."""


@dataclass(frozen=True, kw_only=True)
class GradleTranslation:
    """A Gradle build as poms, or why there are none."""

    poms: tuple[tuple[str, str], ...] = ()
    """(path relative to the folder of the poms, text)."""
    folders: tuple[tuple[str, str], ...] = ()
    """(source folder, test folder) of each module, for Java, relative to the root of the tree."""
    modules: tuple[str, ...] = ()
    """Folders of the modules, in the order of `folders`."""
    is_partial: bool = False
    """Whether modules are left out."""
    evidence: tuple[Evidence, ...] = ()
    obstacle: str = ""
    """Parts that have no equivalent, in a single line; empty if `poms` are complete."""


def translate(build: GradleBuild, workdir: str, changed_folders: Sequence[str] = ()) -> GradleTranslation:
    """Return the poms of a build whose tree is in `workdir`.

    Modules that have no equivalent are left out, unless they are in `changed_folders` or a module of these needs them.
    """
    try:
        return _Translator(build, workdir).translate(changed_folders)
    except ObstacleError as obstacle:
        return GradleTranslation(obstacle=str(obstacle))


@dataclass(frozen=True, kw_only=True)
class _Plugin:
    name: str
    version: str
    block: Block
    line: int


@dataclass(frozen=True, kw_only=True)
class _Module:
    path: str
    """Gradle's path, such as `:core`; `:` for the root project."""
    folder: str
    """Relative to the root of the tree."""
    blocks: tuple[Block, ...]
    """Text that applies to the module: its own script, those that it applies, and the root's blocks for it."""
    plugins: tuple[_Plugin, ...]

    def find(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Return the first match in its blocks, the module's own blocks first."""
        return next((match for block in self.blocks if (match := pattern.search(block.body))), None)

    def iterate_blocks(self, pattern: str) -> Iterator[Block]:
        """Yield the blocks whose header matches, at any depth, but none of tasks that scripts add."""
        queue = list(self.blocks)
        while queue:
            for block in queue.pop(0).list_blocks():
                if _ADDED_TASK.search(block.header):
                    continue
                if re.search(pattern, block.header):
                    yield block
                else:
                    queue.append(block)


@dataclass(frozen=True)
class _Translator:
    build: GradleBuild
    workdir: str

    @property
    def tree(self) -> SourceTree:
        return self.build.tree

    def translate(self, changed_folders: Sequence[str]) -> GradleTranslation:
        modules = {path: module for path, module in self.modules.items() if self.sources[path]}
        if not modules:
            raise ObstacleError("no project of the Gradle build has sources below src/main or src/test")
        poms, obstacles = self._describe_modules(modules)
        changed = [path for path, module in modules.items() if module.folder in changed_folders]
        for path in [*changed, *([] if poms else obstacles)]:
            if path in obstacles:
                raise ObstacleError(obstacles[path])
        kept = {path: modules[path] for path in poms}
        used = {plugin.name: plugin for module in kept.values() for plugin in module.plugins}
        left_out = [
            Evidence(choice="module", value=path, path=modules[path].folder, line=0, note=f"left out: {obstacle}")
            for path, obstacle in obstacles.items()
        ]
        places = {path: self._locate(module) for path, module in kept.items()}
        listed = [posixpath.relpath(posixpath.dirname(path), self.build.folder or ".") for path in places.values()]
        top = posixpath.join(self.build.folder, "pom.xml")
        return GradleTranslation(
            poms=((top, render_aggregator(listed)), *((places[path], pom.render()) for path, pom in poms.items())),
            folders=tuple(
                (posixpath.join(module.folder, "src/main/java"), posixpath.join(module.folder, "src/test/java"))
                for module in kept.values()
            ),
            modules=tuple(module.folder for module in kept.values()),
            is_partial=bool(obstacles),
            evidence=(
                *(
                    Evidence(choice="plugin", value=name, path=plugin.block.path, line=plugin.line, note="left out")
                    for name, plugin in sorted(used.items())
                    if not _JVM.match(name) and name not in _COMPILER_PLUGINS and not self._find_convention(name)
                ),
                *left_out,
            ),
        )

    def _describe_modules(self, modules: Mapping[str, _Module]) -> tuple[dict[str, ModulePom], dict[str, str]]:
        """Return the poms of modules, and why the others have none; both by Gradle's path."""
        poms: dict[str, ModulePom] = {}
        obstacles: dict[str, str] = {}
        for path, module in modules.items():
            try:
                poms[path] = self._describe(module)
            except ObstacleError as obstacle:
                obstacles[path] = str(obstacle)
        while True:
            # A module that needs a module without a pom has none, either, until no further module is affected.
            artifacts = {_name_artifact(path): reason for path, reason in obstacles.items()}
            dependent = {
                path: artifacts[dependency.artifact]
                for path, pom in poms.items()
                for dependency in pom.dependencies
                if dependency.group == "translated" and dependency.artifact in artifacts
            }
            if not dependent:
                return poms, obstacles
            obstacles |= dependent
            poms = {path: pom for path, pom in poms.items() if path not in dependent}

    def _locate(self, module: _Module) -> str:
        folder = posixpath.join(self.build.folder, ROOT_MODULE) if module.path == ":" else module.folder
        return posixpath.join(folder, "pom.xml")

    @cached_property
    def sources(self) -> dict[str, list[str]]:
        """Gradle's path of a module -> its source files."""
        files = [path for path in self.tree.entries if path.endswith((".java", ".kt"))]
        starts = {
            name: tuple(f"{posixpath.join(module.folder, 'src', kind)}/" for kind in ("main", "test"))
            for name, module in self.modules.items()
        }
        return {name: [path for path in files if path.startswith(start)] for name, start in starts.items()}

    # Scripts

    @cached_property
    def catalog(self) -> Catalog:
        """All catalogs of the build."""
        pattern = posixpath.join(self.build.folder, "gradle/*.versions.toml")
        catalogs = [
            read_catalog(posixpath.basename(path).removesuffix(".versions.toml"), self.tree.read(path))
            for path in self.tree.glob(pattern)
        ]
        settings = self._find_script(self.build.folder, ["settings"])
        catalogs += read_settings_catalogs(settings) if settings else ()
        return Catalog(
            libraries={key: value for part in catalogs for key, value in part.libraries.items()},
            bundles={key: value for part in catalogs for key, value in part.bundles.items()},
            plugins={key: value for part in catalogs for key, value in part.plugins.items()},
            versions={key: value for part in catalogs for key, value in part.versions.items()},
        )

    @cached_property
    def scripts(self) -> dict[str, Block]:
        """Path -> script, the root's first."""
        paths = sorted(self.build.list_build_scripts(), key=lambda path: (path.count("/"), path))
        return {path: read_script(path, text) for path, text in self.tree.read_many(paths).items()}

    @cached_property
    def variables(self) -> dict[str, str]:
        properties = self.tree.read(posixpath.join(self.build.folder, "gradle.properties"))
        return {**self.catalog.versions, **read_variables(list(self.scripts.values()), properties)}

    def _find_script(self, folder: str, names: Sequence[str]) -> Block | None:
        paths = [posixpath.join(folder, f"{name}{suffix}") for name in names for suffix in (".gradle", ".gradle.kts")]
        return next((self.scripts[path] for path in paths if path in self.scripts), None)

    @cached_property
    def modules(self) -> dict[str, _Module]:
        """Gradle's path -> module, the root first."""
        root = self.build.folder
        settings = self._find_script(root, ["settings"])
        text = settings.body if settings else ""
        places = {":": root}
        for match in _INCLUDE.finditer(text):
            for name in re.findall(r"[\"']([^\"']+)[\"']", match[1]):
                path = ":" + name.strip(":/").replace("/", ":")
                places[path] = posixpath.join(root, path.strip(":").replace(":", "/"))
        for path, folder in _PROJECT_DIR.findall(text):
            places[f":{path.strip(':')}"] = posixpath.normpath(posixpath.join(root, _ROOT.sub("", folder)))
        return {path: self._read_module(path, folder) for path, folder in places.items()}

    def _read_module(self, path: str, folder: str) -> _Module:
        top = self._find_script(self.build.folder, ["build"])
        own = top if path == ":" else self._find_script(folder, ["build", posixpath.basename(folder)])
        blocks = [own.remove_blocks(_OTHER_PROJECTS)] if own else []
        for block in top.find_blocks(_OTHER_PROJECTS) if top else ():
            named = re.match(r"project\s*\(\s*[\"']([^\"']+)", block.header)
            if named:
                applies = named[1].strip(":") == path.strip(":")
            else:
                applies = block.header.startswith("allprojects") or path != ":"
            if applies:
                blocks.append(block)
        blocks = [block.remove_blocks(_BUILD_ONLY) for block in blocks]
        plugins: list[_Plugin] = []
        queue, seen = list(blocks), {block.path for block in blocks if not block.header}
        while queue:
            block = queue.pop(0)
            applied = list(self._read_plugins(block))
            plugins += applied
            scripts = [self._find_applied(block, target) for target in _APPLY_FROM.findall(block.body)]
            scripts += [self._find_convention(plugin.name) for plugin in applied]
            for script in scripts:
                # Scripts may apply each other in a circle.
                if script and script.path not in seen:
                    seen.add(script.path)
                    queue.append(script.remove_blocks(_BUILD_ONLY))
                    blocks.append(queue[-1])
        return _Module(path=path, folder=folder, blocks=tuple(blocks), plugins=tuple(plugins))

    def _find_applied(self, block: Block, target: str) -> Block | None:
        relative = _ROOT.sub("", target)
        for folder in (posixpath.dirname(block.path), self.build.folder):
            script = self.scripts.get(posixpath.normpath(posixpath.join(folder, relative)))
            if script:
                return script
        return None

    def _find_convention(self, plugin: str) -> Block | None:
        """Return the script of a plug-in that the build itself contains."""
        pattern = re.compile(rf"/src/main/(kotlin|groovy)/(.+/)?{re.escape(plugin)}\.gradle(\.kts)?$")
        return next((script for path, script in self.scripts.items() if pattern.search(f"/{path}")), None)

    def _read_plugins(self, block: Block) -> Iterator[_Plugin]:
        for group in block.find_blocks(r"^plugins$"):
            for match in _PLUGIN.finditer(group.body):
                name, version = self._name_plugin(match)
                if not match["absent"]:
                    yield _Plugin(name=name, version=version, block=group, line=group.find_line(match.start()))
        for match in _APPLY.finditer(block.body):
            name = _lengthen(match[1] or match[2] or match[3])
            yield _Plugin(name=name, version="", block=block, line=block.find_line(match.start()))

    def _name_plugin(self, match: re.Match[str]) -> tuple[str, str]:
        if match["alias"]:
            return self.catalog.plugins.get(re.sub(r"\.get\(\)$", "", match["alias"]), (match["alias"], ""))
        name = f"org.jetbrains.kotlin.{match['kotlin']}" if match["kotlin"] else ""
        version = match["version"] or ""
        literal = _LITERAL.fullmatch(version)
        text = (literal[1] or literal[2]) if literal else (find_variable(version, self.variables) or "")
        return _lengthen(name or match["id"] or match["quoted"] or match["bare"]), expand(text, self.variables) or ""

    @cached_property
    def kotlin_version(self) -> str:
        """Version of the Kotlin plug-in; empty if none is declared."""
        for script in self.scripts.values():
            for group in (script, *script.find_blocks(r"^(buildscript|pluginManagement)")):
                blocks = [*group.find_blocks(r"^plugins$"), *group.find_blocks(r"^(allprojects|subprojects)")]
                for block in blocks:
                    for match in _PLUGIN.finditer(block.body):
                        name, version = self._name_plugin(match)
                        if name.startswith("org.jetbrains.kotlin.") and version:
                            return version
            classpath = re.search(r"org\.jetbrains\.kotlin:kotlin-gradle-plugin:([^\"'\s)]+)", script.body)
            if classpath and (on_classpath := expand(classpath[1], self.variables)):
                return on_classpath
        plugins = dict(self.catalog.plugins.values())
        library = next(
            (library for library in self.catalog.libraries.values() if ":kotlin-gradle-plugin:" in library), ""
        )
        return plugins.get("org.jetbrains.kotlin.jvm", "") or library.rpartition(":")[2]

    # Poms

    def _describe(self, module: _Module) -> ModulePom:
        for plugin in module.plugins:
            if _NO_EQUIVALENT.match(plugin.name):
                raise ObstacleError(f"{plugin.block.path}:{plugin.line}: plug-in {plugin.name} has no Maven equivalent")
        sources = self.sources[module.path]
        kotlin = self.kotlin_version if any(path.endswith(".kt") for path in sources) else ""
        if any(path.endswith(".kt") for path in sources) and not kotlin:
            raise ObstacleError(f"{module.folder or '.'}: the version of the Kotlin plug-in is computed")
        dependencies, boms, constraints = self._read_dependencies(module, kotlin)
        level, test_level = self._read_levels(module)
        compilation, testing = (list(module.iterate_blocks(pattern)) for pattern in (_COMPILATION, _TESTING))
        arguments = [option for block in compilation for option in self._read_options(block, "compilerArgs")]
        names = {plugin.name for plugin in module.plugins}
        return ModulePom(
            artifact=_name_artifact(module.path),
            basedir=posixpath.join(self.workdir, module.folder).rstrip("/"),
            dependencies=tuple(dependencies),
            boms=tuple(boms),
            constraints=tuple(constraints),
            level=level,
            test_level=test_level,
            compiler_arguments=tuple(argument for argument in arguments if not _STYLE.match(argument)),
            processes_annotations=any(
                "nnotationProcessor" in dependency.configuration for dependency in self._declare(module)
            ),
            jvm_arguments=tuple(option for block in testing for option in self._read_options(block, "jvmArgs")),
            test_properties=tuple(self._read_test_properties(module)),
            excluded_groups=tuple(self._read_tags(module, "excludeTags")),
            groups=tuple(self._read_tags(module, "includeTags")),
            kotlin=kotlin,
            kotlin_level=self._read_kotlin_level(module) or level,
            kotlin_arguments=tuple(
                option
                for block in module.blocks
                for option in self._read_options(block, "freeCompilerArgs")
                if not option.startswith("-Werror")
            ),
            compiler_plugins=tuple(_COMPILER_PLUGINS[name] for name in sorted(names & _COMPILER_PLUGINS.keys())),
        )

    @staticmethod
    def _read_levels(module: _Module) -> tuple[str, str]:
        """Return the language levels of sources and tests; empty if they are those of the JDK, or the same."""
        test = [match for block in module.iterate_blocks("compileTestJava") if (match := LEVEL.search(block.body))]
        compilation = "\n".join(block.body for block in module.iterate_blocks(_COMPILATION))
        level = _LEVELS[0].search(compilation) or module.find(_LEVELS[1]) or module.find(LEVEL)
        return (level[1] if level else ""), (test[0][1] if test else "")

    @staticmethod
    def _read_kotlin_level(module: _Module) -> str:
        match = module.find(re.compile(r"jvmTarget[\w.\s=({'\"]*?(?:JVM_|1\.)?(\d{1,2})\b|jvmToolchain\s*\(\s*(\d+)"))
        return (match[1] or match[2]) if match else ""

    @staticmethod
    def _read_options(block: Block, name: str) -> Iterator[str]:
        """Yield the literal options that a property of a task gets."""
        for match in re.finditer(rf"\b{name}\b", block.body):
            for literal in _LITERAL.finditer(block.body[match.end() : find_end(block.body, match.end())]):
                text = literal[1] or literal[2] or ""
                if text and "$" not in text:
                    yield text

    def _read_test_properties(self, module: _Module) -> Iterator[tuple[str, str]]:
        for block in module.blocks:
            for match in _SYSTEM_PROPERTY.finditer(block.body):
                value = expand(match[2] or match[3] or "", self.variables)
                if value is not None:
                    yield match[1], value

    @staticmethod
    def _read_tags(module: _Module, name: str) -> Iterator[str]:
        for block in module.blocks:
            for match in re.finditer(rf"\b{name}\s*\(?([^\n)}}]*)", block.body):
                yield from (literal[1] or literal[2] for literal in _LITERAL.finditer(match[1]))

    # Dependencies

    def _declare(self, module: _Module) -> Iterator[Declaration]:
        for block in module.blocks:
            queue = [block]
            while queue:
                for inner in queue.pop(0).list_blocks():
                    if inner.header == "dependencies":
                        yield from read_declarations(inner)
                    elif _WRAPPED.match(inner.header):
                        queue.append(inner)
                    elif inner.header == "testing":
                        yield from self._declare_suite(inner)

    @staticmethod
    def _declare_suite(testing: Block) -> Iterator[Declaration]:
        """Yield the dependencies of the suite `test` of the plug-in jvm-test-suite."""
        suites = [suite for group in testing.find_blocks(r"^suites$") for suite in group.find_blocks(_TEST_SUITE)]
        for suite in suites:
            for match in _SUITE_FRAMEWORK.finditer(suite.body):
                artifact = _SUITE_ARTIFACTS[match[1]]
                notation = f"group: '{artifact[0]}', name: '{artifact[1]}', version: {match[2].strip()}"
                yield Declaration("testImplementation", notation, suite.path, suite.find_line(match.start()))
            for block in suite.find_blocks(r"^dependencies$"):
                for declaration in read_declarations(block):
                    # `project()` is the project itself, which Maven's tests always see.
                    if declaration.notation != "project()":
                        name = declaration.configuration
                        yield replace(declaration, configuration=f"test{name[0].upper()}{name[1:]}")

    def _read_dependencies(self, module: _Module, kotlin: str) -> tuple[list[Artifact], list[Artifact], list[Artifact]]:
        """Return (dependencies, imported BOMs, constraints)."""
        dependencies: list[Artifact] = []
        boms = list(self._read_managed_boms(module))
        for declaration in self._declare(module):
            for artifact in self._resolve(declaration, module, kotlin):
                (boms if declaration.is_platform else dependencies).append(artifact)
        constraints = [
            artifact
            for block in module.iterate_blocks(r"^constraints$")
            for declaration in read_declarations(Block("dependencies", block.body, block.path, block.line))
            for artifact in self._resolve(declaration, module, kotlin)
        ]
        managed = {(constraint.group, constraint.artifact) for constraint in constraints}
        for artifact in dependencies:
            if not artifact.version and not boms and (artifact.group, artifact.artifact) not in managed:
                raise ObstacleError(f"{artifact.origin}: {artifact.group}:{artifact.artifact} has no version")
        if kotlin and not any(dependency.artifact.startswith("kotlin-stdlib") for dependency in dependencies):
            dependencies.append(Artifact("org.jetbrains.kotlin", "kotlin-stdlib", kotlin, "compile", "(kotlin)"))
        return _keep_widest(dependencies), boms, constraints

    def _read_managed_boms(self, module: _Module) -> Iterator[Artifact]:
        names = {plugin.name: plugin.version for plugin in module.plugins}
        if "io.spring.dependency-management" not in names:
            return
        versions = {plugin.name: plugin.version for owner in self.modules.values() for plugin in owner.plugins}
        boot = names.get("org.springframework.boot") or versions.get("org.springframework.boot")
        for block in module.blocks:
            for match in re.finditer(r"\bmavenBom\s*\(?\s*[\"']([\w.-]+):([\w.-]+):([^\"']+)[\"']", block.body):
                version = expand(match[3], self.variables)
                if version:
                    yield Artifact(match[1], match[2], version, "import", block.path)
        if boot:
            yield Artifact("org.springframework.boot", "spring-boot-dependencies", boot, "import", "(plugin)")

    def _resolve(self, declaration: Declaration, module: _Module, kotlin: str) -> Iterator[Artifact]:
        """Yield the artifacts of a declaration.

        Raises:
            ObstacleError: it cannot be read, or is not an artifact.
        """
        origin = f"{declaration.path}:{declaration.line}"
        scope, notation = CONFIGURATIONS.get(declaration.configuration, "test"), declaration.notation
        scope = "import" if declaration.is_platform else scope
        if project := self._read_project(notation):
            target, is_test = project
            if target not in self.modules:
                raise ObstacleError(f"{origin}: {notation} is not in the settings")
            if self.sources[target]:
                kind = "test-jar" if is_test else ""
                yield Artifact("translated", _name_artifact(target), "1", scope, origin, type=kind)
            return
        if re.match(r"^(sourceSets\b|[\w.]*sourceSets\.\w+\.output)", notation):
            return
        for text in self._list_coordinates(notation, module, origin):
            match = _COORDINATES.match(text.replace("!!", ""))
            if (
                match is None
                or match[5] not in (None, "jar")
                or "+" in (match[3] or "")
                or "latest" in (match[3] or "")
            ):
                raise ObstacleError(f"{origin}: the dependency `{notation[:80]}` has no Maven equivalent")
            # Surefire adds the launcher that fits the engine.
            if match[2] == "junit-platform-launcher":
                continue
            version = match[3] or (kotlin if match[1] == "org.jetbrains.kotlin" else "")
            yield Artifact(
                match[1], match[2], version, scope, origin, classifier=match[4] or "", exclusions=declaration.exclusions
            )

    def _read_project(self, notation: str) -> tuple[str, bool] | None:
        """Return (Gradle's path, whether it is on the tests) of a dependency on another project."""
        if match := _PROJECT.match(notation):
            is_test = bool(re.search(r"\btests?\b|[tT]est(Output|Artifacts?|Classes|Jar|s)?[\"']", match[2] + match[3]))
            return f":{match[1].strip(':')}", is_test
        if match := re.match(r"^projects\.([\w.]+)$", notation):
            wanted = match[1].replace(".", "").lower()
            return next(((p, False) for p in self.modules if re.sub("[:_-]", "", p).lower() == wanted), None)
        return None

    def _list_coordinates(self, notation: str, module: _Module, origin: str) -> list[str]:
        notation = re.sub(r"\.(get|asProvider)\(\)$", "", notation)
        if match := re.match(r"^kotlin\(\s*[\"']([\w-]+)[\"'](?:\s*,\s*[\"']([^\"']+)[\"'])?\s*\)$", notation):
            name = f"kotlin-{match[1]}"
            if match[1] == "test":
                name = f"kotlin-test-{self._name_kotlin_test(module)}"
            return [f"org.jetbrains.kotlin:{name}" + (f":{match[2]}" if match[2] else "")]
        if notation in self.catalog.bundles:
            return list(self.catalog.bundles[notation])
        if notation in self.catalog.libraries:
            # Coordinates in a catalogue of settings may contain references, so they are read like other notations.
            notation = f'"{self.catalog.libraries[notation]}"'
        if re.match(r"(group|name)\s*[:=]", notation):
            keys = dict(re.findall(r"(\w+)\s*[:=]\s*([\"'][^\"']*[\"']|[\w.]+)", notation))
            parts = [self._read_text(keys.get(key, '""')) for key in ("group", "name", "version", "classifier")]
            if None not in parts:
                return [":".join(part for part in parts if part)]
        text = self._read_text(notation)
        if text is None or ":" not in text:
            raise ObstacleError(f"{origin}: the dependency `{notation[:80]}` cannot be read")
        if text.startswith("org.jetbrains.kotlin:kotlin-test") and text.count(":") == 1 and text.endswith("-test"):
            text += f"-{self._name_kotlin_test(module)}"
        return [text]

    def _read_text(self, expression: str) -> str | None:
        """Return the text of a literal, a sum of literals and variables, or a variable."""
        parts = []
        for part in re.split(r"\s*\+\s*(?=[\"'\w])", expression.strip()):
            literal = _LITERAL.fullmatch(part)
            text = (literal[1] or literal[2] or "") if literal else find_variable(part, self.variables)
            parts.append(None if text is None else expand(text, self.variables))
        return None if None in parts else "".join(part or "" for part in parts)

    @staticmethod
    def _name_kotlin_test(module: _Module) -> str:
        match = module.find(_FRAMEWORK)
        return {"useTestNG": "testng"}.get(match[1], "junit5") if match else "junit"


def _lengthen(name: str) -> str:
    return "org.jetbrains.kotlin.jvm" if name == "kotlin" else name


def _name_artifact(path: str) -> str:
    return path.strip(":").replace(":", "-") or "root-project"


def _keep_widest(artifacts: Sequence[Artifact]) -> list[Artifact]:
    """Return each artifact once, with the scope that is visible in most places."""
    order = ["compile", "provided", "runtime", "test"]
    kept: dict[tuple[str, ...], Artifact] = {}
    for artifact in artifacts:
        other = kept.get(artifact.key)
        if other is None:
            kept[artifact.key] = artifact
            continue
        scopes = {other.scope, artifact.scope}
        widest = "compile" if scopes == {"provided", "runtime"} else min(scopes, key=order.index)
        version = artifact.version or other.version
        kept[artifact.key] = replace(other, scope=widest, version=version)
    return list(kept.values())


@dataclass(frozen=True, kw_only=True)
class TranslatedBuild:
    """A build of certain modules with the poms."""

    steps: maven.MavenSteps
    paths: tuple[str, ...]
    """Folders of the modules to test; empty for all of the tree."""


def render_build(
    translation: GradleTranslation, folder: str, changed_folders: Sequence[str], suffix: str
) -> TranslatedBuild | None:
    """Return the build with poms that take the place of a Gradle build; None if there are none.

    Args:
        translation: the poms.
        folder: folder of the Gradle build.
        changed_folders: folders of the modules to build, with the modules that they depend on; all if none of them has
            a pom.
        suffix: suffix of the language's files.
    """
    if not translation.poms:
        return None
    modules = tuple(module for module in translation.modules if module in changed_folders)
    command = quote_words(maven.make_translated_command(folder))
    selection = f" -pl {quote_words([','.join(posixpath.relpath(m, folder or '.') for m in modules)])} -am"
    selection = selection if modules else ""
    files = [(posixpath.join(maven.TRANSLATED, path), text) for path, text in translation.poms]
    write = [
        f"mkdir -p {shlex.quote(posixpath.dirname(path))} && cat > {shlex.quote(path)} <<'END_OF_POM'\n{text}END_OF_POM"
        for path, text in files
    ]
    steps = maven.MavenSteps(
        dependencies=(
            f"mkdir -p {maven.REPOSITORY}",
            *write,
            *maven.render_download_steps(translation.folders, suffix, command, selection),
        ),
        source=(maven.render_compile_step(modules or translation.modules, command, selection),),
    )
    listed = translation.modules if translation.is_partial and folder not in translation.modules else ()
    return TranslatedBuild(steps=steps, paths=modules or listed)
