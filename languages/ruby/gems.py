"""Which gems a project names, and where: Gemfile, gemspecs, and Rakefiles that hold a gemspec. Nothing is executed."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass

from languages.facts import Wanted
from languages.tree import Tree

_GEM = re.compile(
    r"""^\s*(?:\w+\.)?(?:gem|add_dependency|add_runtime_dependency|add_development_dependency)[\s(]+%?q?[<("']+"""
    r"""(?P<name>[A-Za-z][\w.-]*)[>)"']+(?P<rest>.*)$"""
)
_REQUIRE = re.compile(r""":?require(?:\s*=>|:)\s*(?:(false)|["']([\w./-]+)["'])""")
_VERSION = re.compile(r"""["']\s*((?:[<>=~!]+\s*)?\d[\w.]*)\s*["']""")
_FILES = re.compile(r"\b(?:require|require_relative|load|read|readlines|eval_gemfile|instance_eval|file)\b")
_QUOTED = re.compile(r"""["']([\w./-]+)["']""")
_OTHERS = {
    "bundler": ("ruby-bundler",), "rake": ("rake",), "rubyzip": ("ruby-zip",), "jekyll": ("jekyll",), "yard": ("yard",),
    "pry": ("pry",), "rubocop": ("rubocop",), "puma": ("puma",), "thin": ("thin",), "cucumber": ("cucumber",),
    "racc": ("racc",), "asciidoctor": ("ruby-asciidoctor", "asciidoctor"), "unicorn": ("unicorn",),
    "rails": ("ruby-rails", "rails"), "kramdown": ("ruby-kramdown",), "sinatra": ("ruby-sinatra",),
    "rexml": ("ruby-rexml",), "ronn": ("ruby-ronn", "ronn"), "rouge": ("ruby-rouge",), "rmagick": ("ruby-rmagick",),
}  # fmt: skip
"""Gem -> Debian packages, where the rule does not lead to them."""
HEADERS = {
    "pg": "libpq-dev", "mysql2": "default-libmysqlclient-dev", "sqlite3": "libsqlite3-dev", "ffi": "libffi-dev",
    "nokogiri": "libxml2-dev", "rmagick": "libmagickwand-dev", "curb": "libcurl4-openssl-dev", "psych": "libyaml-dev",
    "charlock_holmes": "libicu-dev", "rugged": "libssh2-1-dev", "openssl": "libssl-dev", "zlib": "zlib1g-dev",
    "ruby-filemagic": "libmagic-dev", "libxml-ruby": "libxml2-dev", "unf_ext": "g++", "puma": "libssl-dev",
}  # fmt: skip
"""Gem -> Debian package with the headers its C part may need."""


@dataclass(frozen=True, kw_only=True)
class Gem:
    """A gem that a file names. `wanted.text` is the name."""

    wanted: Wanted
    requirement: str = ""
    """The first version constraint, such as `~> 5.0`."""
    required: str = ""
    """What `Bundler.require` loads: empty for the gem's name, `false` for nothing."""


def sources(tree: Tree, folder: str) -> list[str]:
    """Files of a project that name gems: its own, and below it the gemspecs of projects that lie in it."""
    at = f"{folder}/" if folder else ""
    named = [f"{at}{name}" for name in ("Gemfile", "gems.rb", "Rakefile", "rakefile")]
    specs = [path for path in tree.glob(f"{at}*.gemspec") if path.count("/") - at.count("/") < 2]
    return [path for path in named if tree.is_file(path)] + specs


def gems(tree: Tree, paths: list[str]) -> list[Gem]:
    """The gems that these files name, each once, in the order of the files; those of the tree itself left out."""
    found: dict[str, Gem] = {}
    own = {posixpath.basename(path).removesuffix(".gemspec") for path in tree.glob("*.gemspec")}
    for path in paths:
        for number, line in enumerate(tree.read(path).splitlines(), 1):
            match = _GEM.match(line)
            if match and match["name"] not in own and "path:" not in match["rest"]:
                found.setdefault(match["name"], _gem(match, path, number))
    return list(found.values())


def _gem(match: re.Match[str], path: str, line: int) -> Gem:
    rest = match["rest"].partition("#")[0]
    version, required = _VERSION.search(rest), _REQUIRE.search(rest)
    return Gem(
        wanted=Wanted(text=match["name"], path=path, line=line),
        requirement=version[1] if version else "",
        required=(required[1] or required[2]) if required else "",
    )


def debian_names(gem: str) -> tuple[str, ...]:
    """Debian packages that may carry a gem, likeliest first."""
    plain = gem.lower().replace("_", "-")
    if gem in _OTHERS:
        return _OTHERS[gem]
    return (f"ruby-{plain}", plain) if plain.startswith("ruby") else (f"ruby-{plain}",)


def manifests(tree: Tree, folder: str) -> list[str]:
    """What Bundler reads to resolve: Gemfiles, locks, gemspecs, and the files of the tree that these load."""
    at = f"{folder}/" if folder else ""
    found = [path for path in sources(tree, folder) if not path.lower().endswith("rakefile")]
    found += [path for name in ("Gemfile.lock", "gems.locked", ".ruby-version") if tree.is_file(path := f"{at}{name}")]
    for path in tuple(found):
        if not path.endswith((".lock", ".locked")):
            found += _loaded(tree, path)
    return sorted(set(found))


def _loaded(tree: Tree, path: str) -> Iterator[str]:
    folder = posixpath.dirname(path)
    for line in tree.read(path).splitlines():
        for word in _QUOTED.findall(line) if _FILES.search(line) else ():
            for name in (word, f"{word}.rb", f"lib/{word}.rb", f"lib/{word}"):
                inside = posixpath.normpath(posixpath.join(folder, name.lstrip("/")))
                if tree.is_file(inside):
                    yield inside
