"""Which Perl modules a project names, and where: cpanfile, Makefile.PL, Build.PL, dist.ini. Nothing is executed."""

from __future__ import annotations

import re
from collections.abc import Iterator

from languages.facts import Wanted
from languages.tree import Tree

_MODULE = r"[A-Za-z_]\w*(?:::\w+)*"
_CALL = re.compile(
    rf"""^\s*(?:requires|test_requires|build_requires|author_requires|recommends|configure_requires)\s*\(?\s*"""
    rf"""["'](?P<name>{_MODULE})["'](?:\s*(?:=>|,)\s*["']?(?P<version>[\d._v]+)["']?)?"""
)
_PAIR = re.compile(
    r"""(?:^|[{(,\s])["']?(?P<name>[A-Z]\w*(?:::\w+)+|(?<=["'])[A-Z]\w+)["']?\s*=>\s*["']?v?(?P<version>\d[\d._]*)["']?"""
)
_INI = re.compile(rf"^(?P<name>{_MODULE})\s*=\s*v?(?P<version>\d[\d._]*)")
_USE = re.compile(r"^\s*(?:use|require)\s+(?P<name>[A-Z]\w*(?:::\w+)*)\b", re.MULTILINE)
_CORE = frozenset({
    "B", "Carp", "Config", "Cwd", "DB", "Data::Dumper", "Digest::MD5", "Digest::SHA", "DynaLoader", "Encode",
    "English", "Errno", "Exporter", "Fcntl", "FindBin", "File::Basename", "File::Copy", "File::Find", "File::Glob",
    "File::Path", "File::Spec", "File::Spec::Functions", "File::Temp", "Getopt::Long", "Getopt::Std", "HTTP::Tiny",
    "I18N::LangTags", "IO::File", "IO::Handle", "IO::Select", "IO::Socket", "IPC::Open2", "IPC::Open3", "JSON::PP",
    "List::Util", "MIME::Base64", "Math::BigFloat", "Math::BigInt", "Module::CoreList", "Module::Load", "POSIX",
    "Pod::Usage", "Scalar::Util", "Socket", "Storable", "Symbol", "Sys::Hostname", "TAP::Harness",
    "Term::ANSIColor", "Test::Builder", "Test::Builder::Tester", "Test::Harness", "Test::More", "Test::Simple",
    "Test::Tester", "Text::Abbrev", "Text::ParseWords", "Text::Tabs", "Text::Wrap", "Tie::Array", "Tie::Hash",
    "Time::HiRes", "Time::Local", "Time::Piece", "Unicode::Normalize", "XSLoader", "ExtUtils::MakeMaker",
    "ExtUtils::Manifest",
})  # fmt: skip
"""Modules that come with Perl, as far as code often names them."""
_PACKAGES = {
    "LWP": "libwww-perl", "HTTP::Request": "libhttp-message-perl",
    "LWP::UserAgent": "libwww-perl", "LWP::Simple": "libwww-perl", "HTTP::Response": "libhttp-message-perl",
    "HTTP::Headers": "libhttp-message-perl", "HTTP::Status": "libhttp-message-perl",
    "YAML::XS": "libyaml-libyaml-perl", "DBD::SQLite": "libdbd-sqlite3-perl", "HTML::Entities": "libhtml-parser-perl",
    "Date::Parse": "libtimedate-perl", "Date::Format": "libtimedate-perl", "Types::Standard": "libtype-tiny-perl",
    "Mojo": "libmojolicious-perl", "Mojo::Base": "libmojolicious-perl", "Test::Mojo": "libmojolicious-perl",
    "Template": "libtemplate-perl", "URI::Escape": "liburi-perl", "Module::Build": "libmodule-build-perl",
    "Test::Fatal": "libtest-fatal-perl", "Test2::V0": "libtest2-suite-perl", "Test2::Suite": "libtest2-suite-perl",
    "Text::CSV_XS": "libtext-csv-xs-perl", "Encode::Locale": "libencode-locale-perl", "GD": "libgd-perl",
}  # fmt: skip
"""Module -> Debian package, where the rule does not lead to it."""


def named(tree: Tree, folder: str) -> list[Wanted]:
    """The modules that the project's files name, each once, `Name` or `Name~1.2`; Perl itself left out."""
    at = f"{folder}/" if folder else ""
    found: dict[str, Wanted] = {}
    for path, patterns in (
        (f"{at}cpanfile", (_CALL,)),
        (f"{at}Makefile.PL", (_CALL, _PAIR)),
        (f"{at}Build.PL", (_PAIR,)),
        (f"{at}dist.ini", (_INI,)),
    ):
        for name, wanted in _in_file(tree, path, patterns):
            found.setdefault(name, wanted)
    own = _own(tree)
    return [wanted for name, wanted in found.items() if name not in own and not _is_core(name)]


def _in_file(tree: Tree, path: str, patterns: tuple[re.Pattern[str], ...]) -> Iterator[tuple[str, Wanted]]:
    section = ""
    for number, line in enumerate(tree.read(path).splitlines(), 1):
        heading = re.match(r"\s*\[\s*(.*?)\s*\]", line)
        section = heading[1] if heading and path.endswith(".ini") else section
        if path.endswith(".ini") and (not section.startswith("Prereqs") or "Develop" in section):
            continue
        for match in (match for pattern in patterns for match in pattern.finditer(line.partition("#")[0])):
            version = (match["version"] or "").strip("._")
            text = match["name"] + (f"~{version}" if version.strip("0.v") else "")
            yield match["name"], Wanted(text=text, path=path, line=number)


def used(tree: Tree, folder: str) -> list[Wanted]:
    """The modules that sources and tests load by `use`, each once; those of Perl and its own left out."""
    at = f"{folder}/" if folder else ""
    own, found = _own(tree), dict[str, Wanted]()
    paths = [p for p in sorted(tree.entries) if re.match(rf"{re.escape(at)}(lib|t)/.*\.(pm|t|pl)$", p)]
    for path, text in tree.read_many(paths[:3000]).items():
        code = re.split(r"^__(?:END|DATA)__$", text, maxsplit=1, flags=re.MULTILINE)[0]
        for match in _USE.finditer(code):
            if match["name"] not in own and not _is_core(match["name"]):
                line = code.count("\n", 0, match.start("name")) + 1
                found.setdefault(match["name"], Wanted(text=match["name"], path=path, line=line))
    return list(found.values())


def _own(tree: Tree) -> set[str]:
    """Modules of the tree itself."""
    files = (re.search(r"(?:^|/)(?:lib|t/lib|inc|t)/(.+)\.pm$", path) for path in tree.entries)
    return {match[1].replace("/", "::") for match in files if match}


def _is_core(name: str) -> bool:
    return name in _CORE or name[0].islower() or name.startswith(("CPAN::Meta", "inc::"))


def debian_names(module: str) -> tuple[str, ...]:
    """Debian packages that may carry a module, likeliest first: its own, then those of the names above it."""
    if module in _PACKAGES:
        return (_PACKAGES[module],)
    parts = module.lower().replace("_", "-").split("::")
    above = [parts[:size] for size in range(len(parts), 0, -1)]
    return tuple(f"lib{'-'.join(one)}-perl" for one in above if one != ["test"])
