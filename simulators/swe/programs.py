"""Programs that are simulated: the programs that a tree without environment cannot run."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from backends.sandbox.mounts import Mount

_BY_LANGUAGE: Mapping[str, str] = {
    "python": (
        "python python2 python3 pypy pypy3 ipython pip pip3 pipx pytest py.test tox nox uv uvx poetry pdm hatch pipenv "
        "conda mamba virtualenv coverage mypy pyright ruff black isort flake8 pylint pre-commit django-admin "
        "sphinx-build"
    ),
    "javascript": (
        "node nodejs npm npx yarn pnpm bun bunx deno tsc ts-node tsx jest vitest mocha ava tap eslint prettier "
        "webpack vite"
    ),
    "jvm": "java javac jar jshell mvn gradle ant kotlin kotlinc scala sbt",
    "c": "gcc g++ cc c++ clang clang++ make gmake cmake ctest ninja meson bazel gdb autoconf automake autoreconf",
    "others": (
        "go gofmt cargo rustc rustfmt rustup dotnet msbuild swift swiftc php composer phpunit ruby irb rake gem bundle "
        "bundler rspec rails perl prove cpan cpanm lua luajit luarocks busted elixir iex mix erl rebar3 julia Rscript "
        "ghc cabal stack dart flutter zig nim crystal"
    ),
    "machine": "apt apt-get yum dnf apk brew sqlite3 psql mysql redis-cli",
}
PROGRAMS = tuple(sorted({name for names in _BY_LANGUAGE.values() for name in names.split()}))
"""Names of the programs for which the simulator answers; any other that is not there is not found."""
FOLDER = "/usr/local/bin"
"""Where they stand in the container, so that a shell finds them first."""
SOURCE = Path(__file__).with_name("program.bash")
MASK_COMMAND = (
    f"for folder in /usr/bin /bin /usr/sbin; do masks=(); for name in {' '.join(PROGRAMS)}; do "
    f'[ -e "$folder/$name" ] && masks+=({FOLDER}/"$name"); done; '
    '[ ${#masks[@]} = 0 ] || ln -sf "${masks[@]}" "$folder/"; done 2>/dev/null; true'
)
"""Line of Bash that puts them in the place of those that an image has elsewhere."""


_SHARED = frozenset(
    os.path.realpath(f"/usr/bin/{name}") for name in ("bash", "sh", "env", "busybox", "coreutils", "git")
)
"""Programs with many names, which the real commands need."""


def make_program_mounts(folder: Path, *, of_host: bool) -> list[Mount]:
    """Make the programs in a new folder of this machine and return the folders to mount.

    Args:
        folder: does not exist yet.
        of_host: whether the container has the programs of this machine, which no command inside can replace.
    """
    folder.mkdir()
    name = SOURCE.stem
    shutil.copyfile(SOURCE, folder / name)
    (folder / name).chmod(0o755)
    for program in PROGRAMS:
        (folder / program).symlink_to(name)
    mounts = [Mount(source=str(folder), target=FOLDER)]
    if of_host:
        mounts += [Mount(source=str(folder / name), target=path) for path in _find_host_programs()]
    return mounts


def _find_host_programs() -> list[str]:
    """Return the files of this machine's system folders that are such programs, links resolved."""
    programs = set()
    for folder in ("/usr/bin", "/usr/sbin"):
        for program in PROGRAMS:
            path = os.path.realpath(f"{folder}/{program}")
            if path.startswith("/usr/") and Path(path).is_file():
                programs.add(path)
    return sorted(programs - _SHARED)
