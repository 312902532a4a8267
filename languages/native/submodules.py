"""Libraries that a project expects as source, in a submodule or fetched, and that Debian's packages can replace."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from languages.rendering import quote_words
from languages.source_tree import SourceTree

GOOGLE_SOURCE = "/usr/src/googletest"


@dataclass(frozen=True, kw_only=True)
class PackagedLibrary:
    """A library that Debian packages, for submodules of its repository."""

    url: re.Pattern[str]
    """Matches the end of the submodule's URL or path."""
    package: str
    copies: tuple[tuple[str, str], ...]
    """(folder of the installed package, folder of the library's repository)."""
    source: str = ""
    """Folder of the package that holds the library's source as in its repository, if any."""
    config: str = ""
    """CMake name of the package; empty if the copied folder has a CMakeLists.txt."""
    targets: tuple[str, ...] = ()
    """Targets that its package may define."""


LIBRARIES = (
    PackagedLibrary(
        url=re.compile(r"(^|/)(googletest|gtest|google-?test)(\.git)?/?$", re.IGNORECASE),
        package="googletest",
        copies=((f"{GOOGLE_SOURCE}/.", ""),),
        source=GOOGLE_SOURCE,
    ),
    PackagedLibrary(
        url=re.compile(r"(^|/)doctest(\.git)?/?$", re.IGNORECASE),
        package="doctest-dev",
        copies=(("/usr/include/doctest", ""),),
        config="doctest",
        targets=("doctest::doctest",),
    ),
    PackagedLibrary(
        url=re.compile(r"(^|/)catch2?(\.git)?/?$", re.IGNORECASE),
        package="catch2",
        copies=(("/usr/include/catch2", "single_include/"), ("/usr/include/catch2", "src/")),
        config="Catch2",
        targets=("Catch2::Catch2", "Catch2::Catch2WithMain"),
    ),
    PackagedLibrary(
        url=re.compile(r"(^|/)nlohmann/json(\.git)?/?$|(^|/)nlohmann_json/?$", re.IGNORECASE),
        package="nlohmann-json3-dev",
        copies=(("/usr/include/nlohmann", "include/"), ("/usr/include/nlohmann", "single_include/")),
        config="nlohmann_json",
        targets=("nlohmann_json::nlohmann_json",),
    ),
    PackagedLibrary(
        url=re.compile(r"(^|/)fmt(lib)?(\.git)?/?$", re.IGNORECASE),
        package="libfmt-dev",
        copies=(("/usr/include/fmt", "include/"),),
        config="fmt",
        targets=("fmt::fmt", "fmt::fmt-header-only"),
    ),
)


def find_packaged_submodules(tree: SourceTree) -> dict[str, PackagedLibrary]:
    """Return path -> library of the submodules that a package of Debian can replace."""
    urls = dict(_read_urls(tree.read(".gitmodules")))
    libraries = {path: find_packaged_library(urls.get(path, ""), path) for path in tree.submodules()}
    return {path: library for path, library in libraries.items() if library}


def find_packaged_library(url: str, name: str) -> PackagedLibrary | None:
    """Return the library at a URL, which may be that of an archive of a forge, or of that name."""
    url = re.sub(r"/(archive|releases/download)/.*$", "", url)
    return next((library for library in LIBRARIES if library.url.search(url) or library.url.search(name)), None)


def _read_urls(text: str) -> Iterator[tuple[str, str]]:
    """Yield (path, URL) of the sections of .gitmodules."""
    for section in re.split(r"^\[submodule\b.*\]\s*$", text, flags=re.MULTILINE)[1:]:
        values = dict(re.findall(r"^\s*(path|url)\s*=\s*(\S+)\s*$", section, re.MULTILINE))
        if "path" in values and "url" in values:
            yield values["path"], values["url"]


def render_library_steps(modules: dict[str, PackagedLibrary]) -> list[str]:
    """Return the steps that fill folders (path -> library) with the installed packages."""
    return [_render_step(path, library) for path, library in modules.items()]


def _render_step(path: str, library: PackagedLibrary) -> str:
    commands = []
    for source, folder in library.copies:
        target = f"{path}/{folder}"
        commands.append(f"mkdir -p {quote_words([target])} && cp -r {source} {quote_words([target])}")
    if library.config:
        lines = [f"find_package({library.config} REQUIRED)"]
        for name in library.targets:
            lines += [f"if(TARGET {name})", f"set_target_properties({name} PROPERTIES IMPORTED_GLOBAL TRUE)", "endif()"]
        commands.append(f"printf '%s\\n' {quote_words(lines)} > {quote_words([f'{path}/CMakeLists.txt'])}")
    return " && ".join(commands)
