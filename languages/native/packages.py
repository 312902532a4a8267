"""Libraries: what build files call them, and Debian's packages."""

from __future__ import annotations

import re
from collections.abc import Iterator

from languages.facts import Wanted
from languages.tree import Tree
from languages.workflows import jobs

DEBIAN = {
    "zlib": "zlib1g-dev", "openssl": "libssl-dev", "curl": "libcurl4-openssl-dev", "libcurl": "libcurl4-openssl-dev",
    "gtest": "libgtest-dev", "googletest": "libgtest-dev", "gmock": "libgmock-dev", "catch2": "catch2",
    "catch2-with-main": "catch2",
    "benchmark": "libbenchmark-dev", "libxml2": "libxml2-dev", "libxml-2.0": "libxml2-dev", "expat": "libexpat1-dev",
    "png": "libpng-dev", "libpng": "libpng-dev", "jpeg": "libjpeg-dev", "tiff": "libtiff-dev", "bzip2": "libbz2-dev",
    "liblzma": "liblzma-dev", "zstd": "libzstd-dev", "libzstd": "libzstd-dev", "lz4": "liblz4-dev",
    "liblz4": "liblz4-dev", "snappy": "libsnappy-dev", "brotli": "libbrotli-dev", "sqlite3": "libsqlite3-dev",
    "postgresql": "libpq-dev", "libpq": "libpq-dev", "fmt": "libfmt-dev", "spdlog": "libspdlog-dev",
    "nlohmann_json": "nlohmann-json3-dev", "eigen3": "libeigen3-dev", "protobuf": "libprotobuf-dev protobuf-compiler",
    "absl": "libabsl-dev", "ogg": "libogg-dev", "vorbis": "libvorbis-dev", "boost": "libboost-all-dev",
    "oniguruma": "libonig-dev", "onig": "libonig-dev", "ncurses": "libncurses-dev", "curses": "libncurses-dev",
    "readline": "libreadline-dev", "libevent": "libevent-dev", "libuv": "libuv1-dev", "gmp": "libgmp-dev",
    "check": "check", "cmocka": "libcmocka-dev", "cunit": "libcunit1-dev", "cppunit": "libcppunit-dev",
    "doctest": "doctest-dev", "glib-2.0": "libglib2.0-dev", "ffi": "libffi-dev", "libffi": "libffi-dev",
    "yaml-cpp": "libyaml-cpp-dev", "pugixml": "libpugixml-dev", "rapidjson": "rapidjson-dev", "gflags": "libgflags-dev",
    "glog": "libgoogle-glog-dev", "jansson": "libjansson-dev", "json-c": "libjson-c-dev", "pcre": "libpcre3-dev",
    "pcre2": "libpcre2-dev", "libpcre2-8": "libpcre2-dev", "libsodium": "libsodium-dev", "uuid": "uuid-dev",
    "bison": "bison", "flex": "flex", "perl": "perl", "tcl": "tcl", "range-v3": "librange-v3-dev",
    "tinyxml2": "libtinyxml2-dev", "cxxopts": "libcxxopts-dev", "cli11": "libcli11-dev",
}  # fmt: skip
"""Names of find_package, pkg-config and Meson, in small letters -> Debian's packages."""

FROM_CI = re.compile(r"^(lib[a-z0-9.+-]+-dev|zlib1g-dev|tcl[0-9.]*|tclsh|procps|locales|gawk|bc|file|xxd)$")
"""Of what CI installs, the packages that tests may need and Debian may have."""

_ASKED = (
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


def libraries(tree: Tree) -> tuple[Wanted, ...]:
    """Debian's packages of the libraries that build files ask for, each once."""
    found: dict[str, Wanted] = {}
    for path, text in tree.read_many(_build_files(tree)).items():
        for pattern in _ASKED:
            for match in pattern.finditer(text):
                for name in DEBIAN.get(match[1].lower(), "").split():
                    line = text.count("\n", 0, match.start(1)) + 1
                    found.setdefault(name, Wanted(text=name, path=path, line=line))
    return tuple(found.values())


def _build_files(tree: Tree) -> list[str]:
    names = re.compile(r"(^|/)(CMakeLists\.txt|[^/]+\.cmake|configure\.(ac|in)|meson\.build)$")
    return sorted(path for path in tree.entries if names.search(path) and not _BUNDLED.search(path))


def of_ci(tree: Tree) -> Iterator[Wanted]:
    """Debian packages that CI's jobs install, of the kinds that builds and tests need."""
    seen = set()
    for job in jobs(tree):
        for wanted in () if job.is_beside else job.system_packages():
            if FROM_CI.match(wanted.text) and wanted.text not in seen:
                seen.add(wanted.text)
                yield wanted
