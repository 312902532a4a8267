"""Perl modules that a project requires: cpanfile, Makefile.PL, Build.PL, dist.ini. Nothing is executed."""

from __future__ import annotations

import re
from collections.abc import Iterator

from languages.facts import SourcedValue
from languages.source_tree import SourceTree

_MODULE = r"[A-Za-z_]\w*(?:::\w+)*"
_CALL = re.compile(
    rf"""(?:^|[{{;])\s*(?:requires|test_requires|build_requires|author_requires|recommends|suggests|configure_requires)\s*\(?\s*"""
    rf"""["'](?P<name>{_MODULE})["'](?:\s*(?:=>|,)\s*["']?(?P<version>[\d._v]+)["']?)?"""
)
_PAIR = re.compile(
    r"""(?:^|[{(,\s])["']?(?P<name>[A-Z]\w*(?:::\w+)+|(?<=["'])[A-Z]\w+)["']?\s*=>\s*["']?v?(?P<version>\d[\d._]*)["']?"""
)
_BLOCK = re.compile(r"""(?:["']?(?P<name>\w+)["']?\s*=>\s*(?:sub\s*)?)?\{""")
_DEVELOP = frozenset({"develop", "conflicts", "x_breaks"})
"""Blocks of modules that neither the project nor its tests need."""
_OPTIONAL = frozenset({"recommends", "suggests"})
_OPTIONAL_CALL = re.compile(r"(?:^|[{;])\s*(recommends|suggests|author_requires)\b")
_OPTIONAL_SECTION = re.compile(r"Recommends|Suggests")
_INI = re.compile(rf"^(?P<name>{_MODULE})\s*=\s*v?(?P<version>\d[\d._]*)")
_USE = re.compile(r"^\s*(?:use|require)\s+(?P<name>[A-Z]\w*(?:::\w+)*)\b", re.MULTILINE)
_CORE = frozenset(
    {
        "B",
        "Carp",
        "Config",
        "Cwd",
        "DB",
        "Data::Dumper",
        "Digest::MD5",
        "Digest::SHA",
        "DynaLoader",
        "Encode",
        "English",
        "Errno",
        "Exporter",
        "Fcntl",
        "FindBin",
        "File::Basename",
        "File::Copy",
        "File::Find",
        "File::Glob",
        "File::Path",
        "File::Spec",
        "File::Spec::Functions",
        "File::Temp",
        "Getopt::Long",
        "Getopt::Std",
        "HTTP::Tiny",
        "I18N::LangTags",
        "IO::File",
        "IO::Handle",
        "IO::Select",
        "IO::Socket",
        "IPC::Open2",
        "IPC::Open3",
        "JSON::PP",
        "List::Util",
        "MIME::Base64",
        "Math::BigFloat",
        "Math::BigInt",
        "Module::CoreList",
        "Module::Load",
        "POSIX",
        "Pod::Usage",
        "Scalar::Util",
        "Socket",
        "Storable",
        "Symbol",
        "Sys::Hostname",
        "TAP::Harness",
        "Term::ANSIColor",
        "Test::Builder",
        "Test::Builder::Tester",
        "Test::Harness",
        "Test::More",
        "Test::Simple",
        "Test::Tester",
        "Text::Abbrev",
        "Text::ParseWords",
        "Text::Tabs",
        "Text::Wrap",
        "Tie::Array",
        "Tie::Hash",
        "Time::HiRes",
        "Time::Local",
        "Time::Piece",
        "Unicode::Normalize",
        "XSLoader",
        "ExtUtils::MakeMaker",
        "ExtUtils::Manifest",
    }
)
"""Core modules that code commonly loads."""
_PACKAGES = {
    "LWP": "libwww-perl",
    "HTTP::Request": "libhttp-message-perl",
    "LWP::UserAgent": "libwww-perl",
    "LWP::Simple": "libwww-perl",
    "HTTP::Response": "libhttp-message-perl",
    "HTTP::Headers": "libhttp-message-perl",
    "HTTP::Status": "libhttp-message-perl",
    "YAML::XS": "libyaml-libyaml-perl",
    "DBD::SQLite": "libdbd-sqlite3-perl",
    "HTML::Entities": "libhtml-parser-perl",
    "Date::Parse": "libtimedate-perl",
    "Date::Format": "libtimedate-perl",
    "Types::Standard": "libtype-tiny-perl",
    "Mojo": "libmojolicious-perl",
    "Mojo::Base": "libmojolicious-perl",
    "Test::Mojo": "libmojolicious-perl",
    "Template": "libtemplate-perl",
    "URI::Escape": "liburi-perl",
    "Module::Build": "libmodule-build-perl",
    "Test::Fatal": "libtest-fatal-perl",
    "Test2::V0": "libtest2-suite-perl",
    "Test2::Suite": "libtest2-suite-perl",
    "Text::CSV_XS": "libtext-csv-xs-perl",
    "Encode::Locale": "libencode-locale-perl",
    "GD": "libgd-perl",
}
"""Module -> Debian package, where the naming rule does not apply."""


def find_named_modules(tree: SourceTree, folder: str) -> tuple[list[SourcedValue], list[SourcedValue]]:
    """Return (required, recommended) modules of metadata files, each once, as `Name` or `Name~1.2`, without Perl.

    Modules that only the project's developers need (phase `develop`) are left out: tests in `xt` use them.
    """
    prefix = f"{folder}/" if folder else ""
    required: dict[str, SourcedValue] = {}
    recommended: dict[str, SourcedValue] = {}
    for path, patterns in (
        (f"{prefix}cpanfile", (_CALL,)),
        (f"{prefix}Makefile.PL", (_CALL, _PAIR)),
        (f"{prefix}Build.PL", (_PAIR,)),
        (f"{prefix}dist.ini", (_INI,)),
    ):
        for name, module, is_required in _read_file(tree, path, patterns):
            (required if is_required else recommended).setdefault(name, module)
    own_modules = _list_own_modules(tree)
    named = [
        [module for name, module in modules.items() if name not in own_modules and not _is_core(name)]
        for modules in (required, {name: module for name, module in recommended.items() if name not in required})
    ]
    return named[0], named[1]


def _read_file(
    tree: SourceTree, path: str, patterns: tuple[re.Pattern[str], ...]
) -> Iterator[tuple[str, SourcedValue, bool]]:
    """Yield (name, module, whether it is required) of a metadata file."""
    section, blocks = "", _Blocks()
    for number, line in enumerate(tree.read(path).splitlines(), 1):
        code = line.partition("#")[0]
        blocks.enter(code)
        heading = re.match(r"\s*\[\s*(.*?)\s*\]", line)
        section = heading[1] if heading and path.endswith(".ini") else section
        if path.endswith(".ini") and (not section.startswith("Prereqs") or "Develop" in section):
            continue
        if not _DEVELOP & blocks.names:
            is_required = not (
                _OPTIONAL & blocks.names or _OPTIONAL_CALL.search(code) or _OPTIONAL_SECTION.search(section)
            )
            for match in (match for pattern in patterns for match in pattern.finditer(code)):
                version = (match["version"] or "").strip("._")
                text = match["name"] + (f"~{version}" if version.strip("0.v") else "")
                yield match["name"], SourcedValue(text=text, path=path, line=number), is_required
        blocks.leave(code)


class _Blocks:
    """Names of the blocks around a line: `on 'develop' => sub {`, `recommends => {`."""

    def __init__(self) -> None:
        self._stack: list[str] = []

    @property
    def names(self) -> set[str]:
        """Names of the open blocks."""
        return set(self._stack)

    def enter(self, code: str) -> None:
        """Open the blocks that begin in a line."""
        for match in _BLOCK.finditer(code):
            self._stack.append(match["name"] or "")

    def leave(self, code: str) -> None:
        """Close the blocks that end in a line."""
        del self._stack[max(0, len(self._stack) - code.count("}")) :]


def find_used_modules(tree: SourceTree, folder: str) -> list[SourcedValue]:
    """Return the modules loaded with `use`, each once; without core modules and the project's own."""
    prefix = f"{folder}/" if folder else ""
    own_modules, modules = _list_own_modules(tree), dict[str, SourcedValue]()
    paths = [p for p in sorted(tree.entries) if re.match(rf"{re.escape(prefix)}(lib|t)/.*\.(pm|t|pl)$", p)]
    for path, text in tree.read_many(paths[:3000]).items():
        # Documentation and data follow these marks; a `use` in them loads nothing.
        code = re.split(r"^__(?:END|DATA)__$", text, maxsplit=1, flags=re.MULTILINE)[0]
        for match in _USE.finditer(code):
            if match["name"] not in own_modules and not _is_core(match["name"]):
                line = code.count("\n", 0, match.start("name")) + 1
                modules.setdefault(match["name"], SourcedValue(text=match["name"], path=path, line=line))
    return list(modules.values())


def _list_own_modules(tree: SourceTree) -> set[str]:
    """Return the modules that the tree itself defines."""
    files = (re.search(r"(?:^|/)(?:lib|t/lib|inc|t)/(.+)\.pm$", path) for path in tree.entries)
    return {match[1].replace("/", "::") for match in files if match}


def _is_core(name: str) -> bool:
    # Names in lower case are pragmas, which belong to Perl itself.
    return name in _CORE or name[0].islower() or name.startswith(("CPAN::Meta", "inc::"))


def list_debian_names(module: str) -> tuple[str, ...]:
    """Return the Debian packages that may contain a module, most likely first; also those of parent names."""
    if module in _PACKAGES:
        return (_PACKAGES[module],)
    parts = module.lower().replace("_", "-").split("::")
    parents = [parts[:size] for size in range(len(parts), 0, -1)]
    return tuple(f"lib{'-'.join(words)}-perl" for words in parents if words != ["test"])
