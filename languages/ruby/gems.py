"""Gems that a project requires: Gemfile, gemspecs, and Rakefiles that contain a gemspec. Nothing is executed."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass

from languages.facts import SourcedValue
from languages.source_tree import SourceTree

_GEM = re.compile(
    r"""^\s*(?:\w+\.)?(?:gem|add_dependency|add_runtime_dependency|add_development_dependency)[\s(]+%?q?[<("']+"""
    r"""(?P<name>[A-Za-z][\w.-]*)[>)"']+(?P<rest>.*)$"""
)
_REQUIRE = re.compile(r""":?require(?:\s*=>|:)\s*(?:(false)|["']([\w./-]+)["'])""")
_VERSION = re.compile(r"""["']\s*((?:[<>=~!]+\s*)?\d[\w.]*)\s*["']""")
_FILES = re.compile(r"\b(?:require|require_relative|load|read|readlines|eval_gemfile|instance_eval|file)\b")
_QUOTED = re.compile(r"""["']([\w./-]+)["']""")
_OTHERS = {
    "bundler": ("ruby-bundler",),
    "rake": ("rake",),
    "rubyzip": ("ruby-zip",),
    "jekyll": ("jekyll",),
    "yard": ("yard",),
    "pry": ("pry",),
    "rubocop": ("rubocop",),
    "puma": ("puma",),
    "thin": ("thin",),
    "cucumber": ("cucumber",),
    "racc": ("racc",),
    "asciidoctor": ("ruby-asciidoctor", "asciidoctor"),
    "unicorn": ("unicorn",),
    "rails": ("ruby-rails", "rails"),
    "kramdown": ("ruby-kramdown",),
    "sinatra": ("ruby-sinatra",),
    "rexml": ("ruby-rexml",),
    "ronn": ("ruby-ronn", "ronn"),
    "rouge": ("ruby-rouge",),
    "rmagick": ("ruby-rmagick",),
}
"""Gem -> Debian packages, where the naming rule does not apply."""
HEADERS = {
    "pg": "libpq-dev",
    "mysql2": "default-libmysqlclient-dev",
    "sqlite3": "libsqlite3-dev",
    "ffi": "libffi-dev",
    "nokogiri": "libxml2-dev",
    "rmagick": "libmagickwand-dev",
    "curb": "libcurl4-openssl-dev",
    "psych": "libyaml-dev",
    "charlock_holmes": "libicu-dev",
    "rugged": "libssh2-1-dev",
    "openssl": "libssl-dev",
    "zlib": "zlib1g-dev",
    "ruby-filemagic": "libmagic-dev",
    "libxml-ruby": "libxml2-dev",
    "unf_ext": "g++",
    "puma": "libssl-dev",
}
"""Gem -> Debian package with the headers of its C extension."""


@dataclass(frozen=True, kw_only=True)
class Gem:
    """A gem that a file requires. `source.text` is its name."""

    source: SourcedValue
    requirement: str = ""
    """The first version constraint, such as `~> 5.0`."""
    required: str = ""
    """The `require` option: empty for the gem's name, `false` for none."""


def list_gem_files(tree: SourceTree, folder: str) -> list[str]:
    """Return the files of a project that list gems: its own, and gemspecs of projects below it."""
    prefix = f"{folder}/" if folder else ""
    candidates = [f"{prefix}{name}" for name in ("Gemfile", "gems.rb", "Rakefile", "rakefile")]
    specs = [path for path in tree.glob(f"{prefix}*.gemspec") if path.count("/") - prefix.count("/") < 2]
    return [path for path in candidates if tree.is_file(path)] + specs


def read_gems(tree: SourceTree, paths: list[str]) -> list[Gem]:
    """Return the gems in these files, each once, in order; gems that the tree itself defines are skipped."""
    gems: dict[str, Gem] = {}
    own_gems = {posixpath.basename(path).removesuffix(".gemspec") for path in tree.glob("*.gemspec")}
    for path in paths:
        for number, line in enumerate(tree.read(path).splitlines(), 1):
            match = _GEM.match(line)
            if match and match["name"] not in own_gems and "path:" not in match["rest"]:
                gems.setdefault(match["name"], _parse_gem(match, path, number))
    return list(gems.values())


def _parse_gem(match: re.Match[str], path: str, line: int) -> Gem:
    rest = match["rest"].partition("#")[0]
    version, require_option = _VERSION.search(rest), _REQUIRE.search(rest)
    return Gem(
        source=SourcedValue(text=match["name"], path=path, line=line),
        requirement=version[1] if version else "",
        required=(require_option[1] or require_option[2]) if require_option else "",
    )


def list_debian_names(gem: str) -> tuple[str, ...]:
    """Return the Debian packages that may contain a gem, most likely first."""
    plain = gem.lower().replace("_", "-")
    if gem in _OTHERS:
        return _OTHERS[gem]
    return (f"ruby-{plain}", plain) if plain.startswith("ruby") else (f"ruby-{plain}",)


def list_manifests(tree: SourceTree, folder: str) -> list[str]:
    """Return the files that Bundler reads: Gemfiles, lock files, gemspecs, and files that these load."""
    prefix = f"{folder}/" if folder else ""
    paths = [path for path in list_gem_files(tree, folder) if not path.lower().endswith("rakefile")]
    paths += [
        path for name in ("Gemfile.lock", "gems.locked", ".ruby-version") if tree.is_file(path := f"{prefix}{name}")
    ]
    for path in tuple(paths):
        if not path.endswith((".lock", ".locked")):
            paths += _find_loaded_files(tree, path)
    return sorted(set(paths))


def _find_loaded_files(tree: SourceTree, path: str) -> Iterator[str]:
    folder = posixpath.dirname(path)
    for line in tree.read(path).splitlines():
        for word in _QUOTED.findall(line) if _FILES.search(line) else ():
            for name in (word, f"{word}.rb", f"lib/{word}.rb", f"lib/{word}"):
                resolved = posixpath.normpath(posixpath.join(folder, name.lstrip("/")))
                if tree.is_file(resolved):
                    yield resolved
