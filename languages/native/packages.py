"""Libraries: names used in build files, and the Debian packages that provide them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from languages.facts import SourcedValue
from languages.source_tree import SourceTree
from languages.workflows import read_jobs

DEBIAN = {
    "zlib": "zlib1g-dev",
    "openssl": "libssl-dev",
    "curl": "libcurl4-openssl-dev",
    "libcurl": "libcurl4-openssl-dev",
    "gtest": "libgtest-dev",
    "googletest": "libgtest-dev",
    "gmock": "libgmock-dev",
    "catch2": "catch2",
    "catch2-with-main": "catch2",
    "benchmark": "libbenchmark-dev",
    "libxml2": "libxml2-dev",
    "libxml-2.0": "libxml2-dev",
    "expat": "libexpat1-dev",
    "png": "libpng-dev",
    "libpng": "libpng-dev",
    "jpeg": "libjpeg-dev",
    "tiff": "libtiff-dev",
    "bzip2": "libbz2-dev",
    "liblzma": "liblzma-dev",
    "zstd": "libzstd-dev",
    "libzstd": "libzstd-dev",
    "lz4": "liblz4-dev",
    "liblz4": "liblz4-dev",
    "snappy": "libsnappy-dev",
    "brotli": "libbrotli-dev",
    "sqlite3": "libsqlite3-dev",
    "postgresql": "libpq-dev",
    "libpq": "libpq-dev",
    "fmt": "libfmt-dev",
    "spdlog": "libspdlog-dev",
    "nlohmann_json": "nlohmann-json3-dev",
    "eigen3": "libeigen3-dev",
    "protobuf": "libprotobuf-dev protobuf-compiler",
    "absl": "libabsl-dev",
    "ogg": "libogg-dev",
    "vorbis": "libvorbis-dev",
    "boost": "libboost-all-dev",
    "oniguruma": "libonig-dev",
    "onig": "libonig-dev",
    "ncurses": "libncurses-dev",
    "curses": "libncurses-dev",
    "readline": "libreadline-dev",
    "libevent": "libevent-dev",
    "libuv": "libuv1-dev",
    "gmp": "libgmp-dev",
    "check": "check",
    "cmocka": "libcmocka-dev",
    "cunit": "libcunit1-dev",
    "cppunit": "libcppunit-dev",
    "doctest": "doctest-dev",
    "glib-2.0": "libglib2.0-dev",
    "ffi": "libffi-dev",
    "libffi": "libffi-dev",
    "yaml-cpp": "libyaml-cpp-dev",
    "pugixml": "libpugixml-dev",
    "rapidjson": "rapidjson-dev",
    "gflags": "libgflags-dev",
    "glog": "libgoogle-glog-dev",
    "jansson": "libjansson-dev",
    "json-c": "libjson-c-dev",
    "pcre": "libpcre3-dev",
    "pcre2": "libpcre2-dev",
    "libpcre2-8": "libpcre2-dev",
    "libsodium": "libsodium-dev",
    "uuid": "uuid-dev",
    "bison": "bison",
    "flex": "flex",
    "perl": "perl",
    "tcl": "tcl",
    "range-v3": "librange-v3-dev",
    "tinyxml2": "libtinyxml2-dev",
    "cxxopts": "libcxxopts-dev",
    "cli11": "libcli11-dev",
}
"""Lower-case name used by find_package, pkg-config or Meson -> Debian packages."""

FROM_CI = re.compile(r"^(lib[a-z0-9.+-]+-dev|zlib1g-dev|tcl[0-9.]*|tclsh|procps|locales|gawk|bc|file|xxd)$")
"""Matches the packages installed by CI that tests may need and Debian may have."""

_LIBRARY_CALLS = (
    re.compile(r"^[^#\n]*?\bfind_package\s*\(\s*([\w.-]+)(?P<rest>[^)]*)\)", re.IGNORECASE | re.MULTILINE),
    re.compile(
        r"^[^#\n]*?\bpkg_(?:check|search)_modules?\s*\(\s*\w+\s+(?:REQUIRED|QUIET|IMPORTED_TARGET|\s)*([\w.-]+)",
        re.IGNORECASE | re.MULTILINE,
    ),
    re.compile(r"^[^#\n]*?\bPKG_CHECK_MODULES\(\s*\[?\w+\]?\s*,\s*\[?([\w.-]+)", re.MULTILINE),
    re.compile(r"^[^#\n]*?\bdependency\(\s*'([\w.-]+)'", re.MULTILINE),
    re.compile(r"^[^#\n]*?\bAC_CHECK_LIB\(\s*\[?([\w.-]+)", re.MULTILINE),
)
_BUNDLED = re.compile(r"(^|/)(third_?party|3rd_?party|vendor|external|extern|deps|examples?|docs?|fuzz\w*|bench\w*)/")


def find_libraries(tree: SourceTree) -> tuple[SourcedValue, ...]:
    """Return the Debian packages of the libraries required by build files, each once."""
    packages: dict[str, SourcedValue] = {}
    for path, text in tree.read_many(_read_build_files(tree)).items():
        for pattern in _LIBRARY_CALLS:
            for match in pattern.finditer(text):
                for name in DEBIAN.get(match[1].lower(), "").split():
                    line = text.count("\n", 0, match.start(1)) + 1
                    packages.setdefault(name, SourcedValue(text=name, path=path, line=line))
    return tuple(packages.values())


def _read_build_files(tree: SourceTree) -> list[str]:
    names = re.compile(r"(^|/)(CMakeLists\.txt|[^/]+\.cmake|configure\.(ac|in)|meson\.build)$")
    return sorted(path for path in tree.entries if names.search(path) and not _BUNDLED.search(path))


def find_ci_packages(tree: SourceTree) -> Iterator[SourcedValue]:
    """Yield the Debian packages installed by CI that builds and tests may need."""
    seen = set()
    for job in read_jobs(tree):
        for package in () if job.is_auxiliary else job.list_system_packages():
            if FROM_CI.match(package.text) and package.text not in seen:
                seen.add(package.text)
                yield package
