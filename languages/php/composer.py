"""What composer.json says: packages, the range of PHP, and where tests lie. Read as JSON, never executed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from languages.draft import Dependency, Role
from languages.facts import Wanted, line_of
from languages.tree import Tree

_FRAMEWORK = "phpunit/phpunit"
_OTHERS = {
    "phpspec/prophecy": ("php-phpspec-prophecy", "php-prophecy"),
    "phpspec/prophecy-phpunit": ("php-phpspec-prophecy-phpunit",),
    "nikic/php-parser": ("php-parser", "php-nikic-php-parser"),
    "mikey179/vfsstream": ("php-vfsstream",),
    "nesbot/carbon": ("php-nesbot-carbon", "php-carbon"),
}
"""Package -> Debian packages, where the rule does not lead to them."""


class Project:
    """A composer.json; empty when there is none or it cannot be read."""

    def __init__(self, tree: Tree, folder: str) -> None:
        self.path = f"{folder}/composer.json" if folder else "composer.json"
        self.text = tree.read(self.path)
        try:
            read = json.loads(self.text or "{}")
        except ValueError:
            read = {}
        self.data: dict[str, Any] = read if isinstance(read, dict) else {}

    def table(self, *keys: str) -> dict[str, Any]:
        """A nested object; empty when there is none."""
        value: Any = self.data
        for key in keys:
            value = value.get(key, {}) if isinstance(value, dict) else {}
        return value if isinstance(value, dict) else {}

    @property
    def name(self) -> str:
        """Such as `monolog/monolog`; empty when it has none."""
        return str(self.data.get("name", ""))

    @property
    def php(self) -> Wanted | None:
        """The range of PHP it asks for."""
        asked = self.table("require").get("php")
        if not isinstance(asked, str):
            return None
        return Wanted(text=asked, path=self.path, line=line_of(self.text, '"php"'))

    @property
    def platform(self) -> Wanted | None:
        """The PHP that its own resolution is for."""
        asked = self.table("config", "platform").get("php")
        if not isinstance(asked, str):
            return None
        return Wanted(text=asked, path=self.path, line=line_of(self.text, f'"{asked}"'))

    @property
    def brings_phpunit(self) -> bool:
        """Whether PHPUnit is among its packages."""
        return any(_FRAMEWORK in self.table(key) for key in ("require", "require-dev"))

    def dependencies(self) -> Iterator[Dependency]:
        """Packages and extensions that it names; PHP itself left out."""
        for key, role in (("require", Role.RUNTIME), ("require-dev", Role.TEST)):
            for name in self.table(key):
                if name != "php" and re.fullmatch(r"[a-z0-9_.-]+/[a-z0-9_.-]+|ext-[\w-]+", name):
                    wanted = Wanted(text=name, path=self.path, line=line_of(self.text, f'"{name}"'))
                    yield Dependency(role=role, wanted=wanted)


def debian_names(package: str) -> tuple[str, ...]:
    """Debian packages that may carry a package of Packagist or an extension, likeliest first."""
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
