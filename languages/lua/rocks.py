"""Rocks that a Lua project requires: rockspecs, lines of CI and loaded modules. Nothing is executed."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from languages.facts import SourcedValue
from languages.source_tree import SourceTree
from languages.workflows import Job

_TABLE = re.compile(
    r"^\s*(?:dependencies|build_dependencies|test_dependencies)\s*=\s*\{(?P<body>[^}]*)\}", re.MULTILINE
)
_REQUIREMENT = re.compile(r"""["'](?P<name>[\w./-]+)(?P<range>[^"']*)["']""")
_MODULE = re.compile(
    r"""(?:\[\s*["'](?P<quoted>[\w.-]+)["']\s*\]|\b(?P<plain>\w+))\s*=\s*["'](?:\./)?(?P<path>[^"'\s]+\.lua)["']"""
)
_LOAD = re.compile(r"""\brequire\s*\(?\s*["']([\w-]+)(?:\.[\w.-]+)?["']""")
_INSTALL = re.compile(r"\bluarocks\s+(?:--?[\w-]+(?:=\S+)?\s+)*install\s+(?P<words>[^&|;>]+)")
_MODULES = {
    "argparse": "argparse",
    "bit32": "bit32",
    "cjson": "lua-cjson",
    "compat53": "compat53",
    "cqueues": "cqueues",
    "dkjson": "dkjson",
    "inspect": "inspect",
    "lfs": "luafilesystem",
    "lpeg": "lpeg",
    "ltn12": "luasocket",
    "lyaml": "lyaml",
    "md5": "md5",
    "mime": "luasocket",
    "pl": "penlight",
    "posix": "luaposix",
    "rex_pcre": "lrexlib-pcre",
    "socket": "luasocket",
    "ssl": "luasec",
    "term": "lua-term",
    "zlib": "lua-zlib",
}
"""First part of a module's name -> its rock, where code commonly loads it without a rockspec."""
_PACKAGES = {
    "lrexlib-pcre": "lua-rex-pcre",
    "lrexlib-posix": "lua-rex-posix",
    "lua_cliargs": "lua-cliargs",
    "lyaml": "lua-yaml",
    "lzlib": "lua-zlib",
    "luaossl": "lua-luaossl",
    "luassert": "lua-luassert",
    "luajson": "lua-json",
    "luaevent": "lua-event",
    "lua-ev": "lua-ev",
    "mediator_lua": "lua-mediator",
    "lsqlite3": "lua-sqlite3",
}
"""Rock -> Debian package, where the naming rule does not apply."""


def find_rockspec(tree: SourceTree, folder: str) -> str:
    """Return the rockspec of the development version, else the last one by name; empty if there is none."""
    prefix = f"{folder}/" if folder else ""
    paths = sorted(p for p in tree.glob(f"{prefix}*.rockspec") if "/" not in p.removeprefix(prefix))
    paths = paths or sorted(p for p in tree.glob(f"{prefix}rockspec*/*.rockspec"))
    return next((p for p in paths if re.search(r"-(scm|dev|git|master|main)-?", p)), paths[-1] if paths else "")


def read_requirements(tree: SourceTree, rockspec: str) -> Iterator[SourcedValue]:
    """Yield the requirements of a rockspec as written, such as `penlight >= 1.5` or `lua >= 5.1`."""
    text = _drop_comments(tree.read(rockspec))
    for table in _TABLE.finditer(text):
        for match in _REQUIREMENT.finditer(table["body"]):
            line = text.count("\n", 0, table.start("body") + match.start()) + 1
            yield SourcedValue(text=f"{match['name']}{match['range']}".strip(), path=rockspec, line=line)


def read_installed(jobs: list[Job]) -> Iterator[SourcedValue]:
    """Yield the rocks that CI jobs with tests install by name."""
    for job in jobs:
        for shell in () if job.is_auxiliary else job.lines:
            for match in _INSTALL.finditer(shell.text):
                words = [word for word in match["words"].split() if re.fullmatch(r"[A-Za-z][\w.-]*", word)]
                if words and not words[0].endswith(".rockspec"):
                    yield SourcedValue(text=words[0], path=job.path, line=shell.line)


def find_used_rocks(tree: SourceTree, folder: str) -> list[SourcedValue]:
    """Return known rocks whose modules the code loads, each once; without modules of the tree itself."""
    prefix, rocks = f"{folder}/" if folder else "", dict[str, SourcedValue]()
    paths = [path for path in sorted(tree.entries) if path.startswith(prefix) and path.endswith(".lua")]
    own_names = {re.sub(r"(/init)?\.lua$", "", path).rpartition("/")[2] for path in paths}
    for path, text in tree.read_many(paths[:3000]).items():
        for match in _LOAD.finditer(text):
            if (rock := _MODULES.get(match[1])) and match[1] not in own_names:
                line = text.count("\n", 0, match.start()) + 1
                rocks.setdefault(rock, SourcedValue(text=rock, path=path, line=line))
    return list(rocks.values())


def list_module_paths(tree: SourceTree, folder: str, rockspec: str) -> tuple[list[str], bool]:
    """Return (patterns of LUA_PATH for the modules of a rockspec, whether they find all of them).

    `["a.b"] = "src/a/b.lua"` gives `src/?.lua`.
    """
    patterns: dict[str, None] = {}
    is_complete = True
    for match in _MODULE.finditer(_drop_comments(tree.read(rockspec))):
        if not tree.is_file(posixpath.join(folder, match["path"])):
            continue  # another field, such as the address of a repository
        module = (match["quoted"] or match["plain"]).replace(".", "/")
        path = re.sub(r"/init$", "", match["path"].removesuffix(".lua"))
        ending = match["path"][len(path) :]
        if path == module or path.endswith(f"/{module}"):
            patterns[f"{path[: len(path) - len(module)]}?{ending}"] = None
        else:
            is_complete = False
    return list(patterns), is_complete


def has_native_code(tree: SourceTree, rockspec: str) -> bool:
    """Return whether a rockspec compiles something."""
    text = _drop_comments(tree.read(rockspec))
    return bool(re.search(r"""["'][^"'\s]+\.(c|cc|cpp)["']|\btype\s*=\s*["'](make|cmake|command)["']""", text))


def _drop_comments(text: str) -> str:
    return re.sub(r"(?m)--(?!\[\[).*$", "", text)


def list_debian_names(rock: str) -> tuple[str, ...]:
    """Return the Debian packages that may contain a rock, most likely first."""
    if rock in _PACKAGES:
        return (_PACKAGES[rock],)
    name = rock.lower().replace("_", "-").removesuffix(".lua").removesuffix("-lua")
    plain = re.sub(r"^lua-?", "", name)
    return tuple(dict.fromkeys((f"lua-{plain}", f"lua-{name}")))
