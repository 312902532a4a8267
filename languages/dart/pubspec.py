"""Parser of pubspec.yaml, the metadata of a Dart package. Read as text, never executed."""

from __future__ import annotations

import re
from collections.abc import Iterator

from languages import yaml_nodes
from languages.draft import Dependency, Role
from languages.facts import SourcedValue
from languages.source_tree import SourceTree

NAME = "pubspec.yaml"
_TABLES = {"dependencies": Role.RUNTIME, "dev_dependencies": Role.TEST}


class Pubspec:
    """A pubspec.yaml; empty if it is missing or damaged."""

    def __init__(self, tree: SourceTree, folder: str) -> None:
        self.folder = folder
        self.path = f"{folder}/{NAME}" if folder else NAME
        self._document = yaml_nodes.load_yaml(tree.read(self.path))

    @property
    def name(self) -> str:
        """Name of the package; empty if it has none."""
        return self._document["name"].text

    @property
    def sdk_bound(self) -> SourcedValue | None:
        """The range of SDK versions, such as `>=2.12.0 <4.0.0` or `^3.0.0`."""
        node = self._document["environment"]["sdk"]
        return SourcedValue(text=node.text, path=self.path, line=node.line) if node.text else None

    @property
    def flutter_line(self) -> int:
        """Line with which the package requires Flutter; 0 if it does not."""
        for table in _TABLES:
            for key, value in self._document[table].items():
                if key.text in ("flutter", "flutter_test") or value["sdk"].text == "flutter":
                    return key.line
        return 0

    def list_dependencies(self) -> Iterator[Dependency]:
        """Yield the packages of pub.dev that the package names, with their ranges; pub installs them."""
        for table, role in _TABLES.items():
            for key, value in self._document[table].items():
                if value["path"] or value["git"] or value["sdk"]:
                    continue
                text = re.sub(r"\s+", " ", f"{key.text} {value['version'].text or value.text}").strip()
                yield Dependency(role=role, source=SourcedValue(text=text, path=self.path, line=key.line))
