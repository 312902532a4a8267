"""Parser of composer.json: packages, PHP range and autoloaded folders. Read as JSON, never executed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from languages.draft import Dependency, Role
from languages.facts import SourcedValue, find_line
from languages.source_tree import SourceTree

_FRAMEWORK = "phpunit/phpunit"
_OTHERS = {
    "phpspec/prophecy": ("php-phpspec-prophecy", "php-prophecy"),
    "phpspec/prophecy-phpunit": ("php-phpspec-prophecy-phpunit",),
    "nikic/php-parser": ("php-parser", "php-nikic-php-parser"),
    "mikey179/vfsstream": ("php-vfsstream",),
    "nesbot/carbon": ("php-nesbot-carbon", "php-carbon"),
}
"""Package -> Debian packages, where the naming rule does not apply."""


class ComposerProject:
    """A composer.json; empty if it is missing or invalid."""

    def __init__(self, tree: SourceTree, folder: str) -> None:
        self.path = f"{folder}/composer.json" if folder else "composer.json"
        self.text = tree.read(self.path)
        try:
            content = json.loads(self.text or "{}")
        except ValueError:
            content = {}
        self.data: dict[str, Any] = content if isinstance(content, dict) else {}

    def get_table(self, *keys: str) -> dict[str, Any]:
        """Return a nested object; empty if it is missing."""
        value: Any = self.data
        for key in keys:
            value = value.get(key, {}) if isinstance(value, dict) else {}
        return value if isinstance(value, dict) else {}

    @property
    def name(self) -> str:
        """Such as `monolog/monolog`; empty if it has none."""
        return str(self.data.get("name", ""))

    @property
    def php_constraint(self) -> SourcedValue | None:
        """The PHP range that the project requires."""
        constraint = self.get_table("require").get("php")
        if not isinstance(constraint, str):
            return None
        return SourcedValue(text=constraint, path=self.path, line=find_line(self.text, '"php"'))

    @property
    def platform_php(self) -> SourcedValue | None:
        """The PHP version for which Composer resolves."""
        version = self.get_table("config", "platform").get("php")
        if not isinstance(version, str):
            return None
        return SourcedValue(text=version, path=self.path, line=find_line(self.text, f'"{version}"'))

    @property
    def has_phpunit(self) -> bool:
        """Whether PHPUnit is among the packages."""
        return any(_FRAMEWORK in self.get_table(key) for key in ("require", "require-dev"))

    def list_dependencies(self) -> Iterator[Dependency]:
        """Yield the required packages and extensions; PHP itself is skipped."""
        for key, role in (("require", Role.RUNTIME), ("require-dev", Role.TEST)):
            for name in self.get_table(key):
                if name != "php" and re.fullmatch(r"[a-z0-9_.-]+/[a-z0-9_.-]+|ext-[\w-]+", name):
                    source = SourcedValue(text=name, path=self.path, line=find_line(self.text, f'"{name}"'))
                    yield Dependency(role=role, source=source)


def list_debian_names(package: str) -> tuple[str, ...]:
    """Return the Debian packages that may contain a Packagist package or an extension, most likely first."""
    if package in _OTHERS:
        return _OTHERS[package]
    if package.removeprefix("ext-") in ("dom", "simplexml", "xml", "xmlreader", "xmlwriter", "xsl"):
        return ("php-xml",)
    if package.startswith("ext-"):
        return (f"php-{package.removeprefix('ext-').lower()}",)
    vendor, _, name = package.partition("/")
    name = name.replace("_", "-").replace(".", "-")
    if vendor == "sebastian":
        return (f"phpunit-{name}", f"php-{name}")
    plain = name if name.startswith("php-") else f"php-{name}"
    return (plain,) if vendor in (name, "phpunit") else (f"php-{vendor}-{name}", plain)
