"""Reads the declarations of Gradle's scripts, without running them.

Blocks, plug-ins, variables, catalogs, dependencies.

Both dialects, Groovy and Kotlin, are read by the same patterns. A value that is computed cannot be read.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

_COMMENT = re.compile(
    r"'''.*?'''|\"\"\".*?\"\"\"|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|//[^\n]*|/\*.*?\*/", re.DOTALL
)
_STRING = re.compile(r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'")
_REFERENCE = re.compile(r"\$\{([^}]+)\}|\$([A-Za-z_]\w*(?:\.\w+)*)")
_QUALIFIER = re.compile(r"^(?:(?:rootProject|project|ext|extra|this|rootProject\.extra|versions\.of)\.)+")
_LOOKUP = re.compile(r"(?:property|extra|findProperty|properties|ext)\s*[\[(]\s*[\"']([\w.-]+)[\"']\s*[\])]")
_ASSIGNMENT = re.compile(
    r"(?:^|[\s{;.(])(?:(?:def|val|var|String|const val|final)\s+)?(?:ext\.|extra\.)?[\"']?([A-Za-z_][\w.]*)[\"']?"
    r"(?:\s*:\s*String)?\s*(?:=|\bby\s+extra\s*\(|\bby\s+extra\s*\{)\s*(\"[^\"\n]*\"|'[^'\n]*')"
)
_EXTRA = re.compile(r"\b(?:extra|ext|set)\s*[\[(]\s*[\"'](\w+)[\"']\s*(?:\]\s*=|,)\s*(\"[^\"\n]*\"|'[^'\n]*')")
_MAP = re.compile(r"(?:^|[\s.])(\w+)\s*(?:\+?=)\s*(?:\[|mapOf\()([^\[\]{}]*?:[^\[\]{}]*?)[\])]", re.DOTALL)
_ENTRY = re.compile(r"[\"']?([\w.-]+)[\"']?\s*(?::|\bto\b)\s*(\"[^\"\n]*\"|'[^'\n]*')")


@dataclass(frozen=True)
class Block:
    """A block `header { body }`, or a whole script, whose header is empty."""

    header: str
    body: str
    path: str
    line: int
    """1-based line on which the body starts."""

    def list_blocks(self) -> list[Block]:
        """Return the blocks in the body that are not inside another."""
        return [
            Block(header, self.body[start:end], self.path, self.line + self.body.count("\n", 0, start))
            for header, start, end in _iterate_blocks(self.body)
        ]

    def find_blocks(self, pattern: str) -> list[Block]:
        """Return the blocks in the body whose header matches."""
        return [block for block in self.list_blocks() if re.search(pattern, block.header)]

    def remove_blocks(self, pattern: str) -> Block:
        """Return the block without those in it whose header matches; lines keep their numbers."""
        body = self.body
        for header, start, end in _iterate_blocks(self.body):
            if re.search(pattern, header):
                body = body[:start] + re.sub(r"[^\n]", " ", body[start:end]) + body[end:]
        return Block(self.header, body, self.path, self.line)

    def find_line(self, offset: int) -> int:
        """Return the line of an offset in the body."""
        return self.line + self.body.count("\n", 0, offset)


def read_script(path: str, text: str) -> Block:
    """Return a script as a block without comments."""
    return Block("", _COMMENT.sub(_drop_comment, text), path, 1)


def _drop_comment(match: re.Match[str]) -> str:
    # Spaces keep the offsets, from which line numbers are computed.
    return re.sub(r"[^\n]", " ", match[0]) if match[0].startswith(("//", "/*")) else match[0]


def _iterate_blocks(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield (header, start, end) of each block that is not inside another."""
    masked = _STRING.sub(lambda match: '"' + " " * (len(match[0]) - 2) + '"', text)
    # Braces in strings open no blocks; the mask keeps all offsets.
    depth = start = 0
    for match in re.finditer(r"[{}]", masked):
        if match[0] == "{":
            if depth == 0:
                start = match.end()
            depth += 1
        elif depth:
            depth -= 1
            if depth == 0:
                before = text[: start - 1].rstrip()
                yield before[max(before.rfind(mark) for mark in "\n;{}") + 1 :].strip(), start, match.start()


@dataclass(frozen=True)
class Catalog:
    """Version catalogs: accessor (`libs.junit.api`) -> coordinates; accessors use dots alone."""

    libraries: Mapping[str, str] = field(default_factory=dict)
    bundles: Mapping[str, Sequence[str]] = field(default_factory=dict)
    plugins: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Accessor -> (id, version)."""
    versions: Mapping[str, str] = field(default_factory=dict)


def read_catalog(name: str, text: str) -> Catalog:
    """Return the catalog of a file `NAME.versions.toml`; an empty catalog if it is not valid."""
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return Catalog()
    versions = {key: _read_version(value) for key, value in content.get("versions", {}).items()}
    libraries = {key: _read_library(value, versions) for key, value in content.get("libraries", {}).items()}
    return Catalog(
        libraries={_name_accessor(name, key): value for key, value in libraries.items()},
        bundles={
            _name_accessor(f"{name}.bundles", key): [
                libraries[reference] for reference in value if reference in libraries
            ]
            for key, value in content.get("bundles", {}).items()
        },
        plugins={
            _name_accessor(f"{name}.plugins", key): _read_plugin(value, versions)
            for key, value in content.get("plugins", {}).items()
        },
        versions={_name_accessor(f"{name}.versions", key): value for key, value in versions.items()},
    )


def read_settings_catalogs(settings: Block) -> Iterator[Catalog]:
    """Yield the catalogs that a settings script declares itself; their texts may refer to variables."""
    for outer in settings.find_blocks(r"^dependencyResolutionManagement\b"):
        for group in outer.find_blocks(r"^versionCatalogs\b"):
            for block in group.list_blocks():
                name = re.search(r"create\s*\(\s*[\"'](\w+)", block.header)
                yield _read_declared_catalog(name[1] if name else block.header, block.body)


def _read_declared_catalog(name: str, text: str) -> Catalog:
    versions = dict(re.findall(r"\bversion\s*\(?\s*[\"']([\w.-]+)[\"']\s*,\s*[\"']([^\"']+)[\"']", text))
    word = r"\s*,\s*[\"']([^\"']+)[\"']"
    number = r"\s*\)\s*\.\s*(version|versionRef)\s*\(?\s*[\"']([^\"']+)"
    pattern = rf"\blibrary\s*\(?\s*[\"']([\w.-]+)[\"']{word}(?:{word}{number})?"
    libraries = {}
    for key, group, artifact, kind, version in re.findall(pattern, text):
        declared = versions.get(version, "") if kind == "versionRef" else version
        libraries[_name_accessor(name, key)] = f"{group}:{artifact}:{declared}" if artifact else group
    return Catalog(
        libraries=libraries,
        versions={_name_accessor(f"{name}.versions", key): value for key, value in versions.items()},
    )


def _name_accessor(name: str, key: str) -> str:
    return f"{name}.{re.sub('[-_]', '.', key)}"


def _read_version(value: Any) -> str:
    if isinstance(value, Mapping):
        return str(next((value[key] for key in ("strictly", "require", "prefer") if key in value), ""))
    return str(value)


def _find_version(entry: Mapping[str, Any], versions: Mapping[str, str]) -> str:
    version = entry.get("version", "")
    if isinstance(version, Mapping) and "ref" in version:
        return versions.get(str(version["ref"]), "")
    return _read_version(version)


def _read_library(value: Any, versions: Mapping[str, str]) -> str:
    if not isinstance(value, Mapping):
        return str(value)
    module = value.get("module") or f"{value.get('group', '')}:{value.get('name', '')}"
    version = _find_version(value, versions)
    return f"{module}:{version}" if version else str(module)


def _read_plugin(value: Any, versions: Mapping[str, str]) -> tuple[str, str]:
    if not isinstance(value, Mapping):
        name, _, version = str(value).partition(":")
        return name, version
    return str(value.get("id", "")), _find_version(value, versions)


def read_variables(scripts: Sequence[Block], properties: str) -> dict[str, str]:
    """Return name -> text of the variables that scripts and gradle.properties assign, with references substituted."""
    variables = dict(re.findall(r"^\s*([\w.-]+)\s*[=:]\s*(\S.*?)\s*$", properties, re.MULTILINE))
    for script in scripts:
        for name, value in (*_ASSIGNMENT.findall(script.body), *_EXTRA.findall(script.body)):
            variables.setdefault(_QUALIFIER.sub("", name), value[1:-1])
        for name, body in _MAP.findall(script.body):
            for key, value in _ENTRY.findall(body):
                variables.setdefault(f"{name}.{key}", value[1:-1])
    return {name: expand(value, variables) or value for name, value in variables.items()}


def expand(text: str, variables: Mapping[str, str]) -> str | None:
    """Return a text with its references substituted; None if a reference is unknown."""
    # References may be circular, so the substitution ends after a few rounds.
    for _ in range(4):
        unknown = False

        def substitute(match: re.Match[str]) -> str:
            nonlocal unknown
            value = find_variable(match[1] or match[2], variables)
            unknown = unknown or value is None
            return value or ""

        expanded = _REFERENCE.sub(substitute, text)
        if unknown:
            return None
        if expanded == text:
            return text
        text = expanded
    return None


def find_variable(expression: str, variables: Mapping[str, str]) -> str | None:
    """Return the text of a variable, given as `name`, `rootProject.ext.name` or `property("name")`."""
    expression = expression.strip()
    if match := _LOOKUP.search(expression):
        return variables.get(match[1])
    name = _QUALIFIER.sub("", re.sub(r"\.(get|toString|asProvider)\(\)", "", expression))
    return variables.get(name)


CONFIGURATIONS = {
    "api": "compile",
    "implementation": "compile",
    "compile": "compile",
    "compileOnly": "provided",
    "compileOnlyApi": "provided",
    "annotationProcessor": "provided",
    "runtimeOnly": "runtime",
    "runtime": "runtime",
    "testImplementation": "test",
    "testApi": "test",
    "testCompile": "test",
    "testCompileOnly": "test",
    "testRuntimeOnly": "test",
    "testRuntime": "test",
    "testAnnotationProcessor": "test",
}
"""Configuration of Gradle -> scope of Maven.

Tests see more than they do in Gradle: the code that is only for compilation.
"""

_NAMES = "|".join(sorted(CONFIGURATIONS, key=len, reverse=True))
_DECLARATION = re.compile(rf"(?:^|[\n;{{])[ \t]*[\"']?({_NAMES})[\"']?[ \t]*(?=[\s(])")


@dataclass(frozen=True)
class Declaration:
    """A declared dependency."""

    configuration: str
    notation: str
    """What is declared, such as `'g:a:1'`, `libs.junit` or `project(':core')`, without wrappers such as `platform`."""
    path: str
    line: int
    is_platform: bool = False
    exclusions: tuple[tuple[str, str], ...] = ()
    """(group, artifact) of the artifact that is excluded, `*` for any."""


def read_declarations(block: Block) -> Iterator[Declaration]:
    """Yield the dependencies that a block `dependencies` declares, constraints excluded."""
    block = block.remove_blocks(r"^(constraints|components|modules)\b")
    for match in _DECLARATION.finditer(block.body):
        end = find_end(block.body, match.end())
        arguments = block.body[match.end() : end].strip()
        if not arguments or arguments.startswith(("{", "=", ".")):
            continue
        closure = re.match(r"\s*\{((?:[^{}]|\{[^{}]*\})*)\}", block.body[end:])
        exclusions = tuple(_read_exclusions(closure[1])) if closure else ()
        if arguments.startswith("(") and arguments.endswith(")"):
            arguments = arguments[1:-1].strip()
        line = block.find_line(match.start(1))
        is_map = re.match(r"(group|name)\s*[:=]", arguments)
        for argument in [arguments] if is_map else _split_arguments(arguments):
            wrapper = re.fullmatch(r"(?:enforcedP|p)latform\s*\((.*)\)", argument, re.DOTALL)
            notation = wrapper[1].strip() if wrapper else argument
            yield Declaration(match[1], notation, block.path, line, wrapper is not None, exclusions)


def find_end(text: str, start: int) -> int:
    """Return where a call's arguments end: at a closure or the end of a line on which no bracket is open."""
    depth, index = 0, start
    masked = _STRING.sub(lambda match: '"' + " " * (len(match[0]) - 2) + '"', text[start:])
    for index, character in enumerate(masked):
        if character in "([":
            depth += 1
        elif character in ")]":
            depth -= 1
            if depth < 0:
                return start + index
        elif depth == 0 and (character in "{};" or (character == "\n" and not masked[:index].rstrip().endswith(","))):
            return start + index
    return start + index + 1


def _split_arguments(text: str) -> list[str]:
    parts, depth, last = [], 0, 0
    masked = _STRING.sub(lambda match: '"' + " " * (len(match[0]) - 2) + '"', text)
    for index, character in enumerate(masked):
        depth += (character in "([") - (character in ")]")
        if character == "," and depth == 0:
            parts.append(text[last:index])
            last = index + 1
    return [part.strip() for part in (*parts, text[last:]) if part.strip()]


def _read_exclusions(closure: str) -> Iterator[tuple[str, str]]:
    for match in re.finditer(r"\bexclude\b([^\n}]*)", closure):
        group, module = (re.search(rf"{key}\s*[:=]\s*[\"']([^\"']+)", match[1]) for key in ("group", "module"))
        if group or module:
            yield (group[1] if group else "*"), (module[1] if module else "*")
