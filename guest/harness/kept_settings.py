"""Print which changed configuration files may stay: those in which no setting differs that a test runner could read.

    python3 -I -S kept_settings.py GIT... < PATHS > PATHS

Paths end with a NUL and are relative to the current folder. GIT are the words of a git command that reads the tree's
commit. Runs in a container of the task's image as root, on Python 3.6 or later, with the standard library only. A file
that cannot be read or parsed never stays.
"""

import json
import os
import subprocess
import sys

MAX_FILES = 100
MAX_BYTES = 1000 * 1000
PACKAGE_FIELDS = """
version description keywords homepage bugs repository author contributors maintainers funding license files main module
types typings typesVersions exports bin man type sideEffects engines os cpu private publishConfig dependencies
devDependencies peerDependencies peerDependenciesMeta optionalDependencies bundledDependencies eslintConfig eslintIgnore
prettier stylelint husky lint-staged
"""
"""Fields of package.json that no test runner reads. `name` is missing, as a package may shadow another by it."""
PYTHON_TABLES = ("project", "build-system", "dependency-groups")
PYTHON_TOOLS = """
black ruff isort mypy pyright pylint pyupgrade pydocstyle codespell towncrier commitizen bumpversion semantic_release
setuptools setuptools_scm setuptools-scm hatch flit poetry pdm uv cibuildwheel
"""
"""Tables below `tool` that no test runner reads."""
SECTIONS = """
metadata options flake8 isort mypy pycodestyle pydocstyle pylint codespell bdist_wheel sdist egg_info build_sphinx
bumpversion
"""
"""Sections of setup.cfg, and those below them such as `options.extras_require`, that no test runner reads."""


def read_package(text):
    # type: (bytes) -> dict
    """Return the fields of package.json that a test runner may read, and the import map.

    Raises:
        ValueError, AttributeError: it is no JSON object, or one that names a field twice.
    """
    fields = json.loads(text.decode("utf-8"), object_pairs_hook=_make_object)
    return {name: value for name, value in fields.items() if name not in PACKAGE_FIELDS.split()}


def _make_object(pairs):
    # type: (list) -> dict
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a name occurs twice")
    return dict(pairs)


def is_same_package(old, new):
    # type: (bytes, bytes) -> bool
    """Return whether two package.json agree in what a test runner may read; imports may be added."""
    before, after = read_package(old or b"{}"), read_package(new)
    maps = before.pop("imports", {}), after.pop("imports", {})
    return before == after and all(maps[1].get(name) == target for name, target in maps[0].items())


def is_same_pyproject(old, new):
    # type: (bytes, bytes) -> bool
    """Return whether two pyproject.toml agree in what a test runner may read; False where Python cannot read TOML."""
    import tomllib  # noqa: PLC0415 - since Python 3.11

    before, after = (tomllib.loads(text.decode("utf-8")) for text in (old, new))
    own = str(before.get("project", {}).get("name", ""))
    for document in (before, after):
        for name in PYTHON_TABLES:
            document.pop(name, None)
        tools = document.get("tool", {})
        document["tool"] = {
            name: table
            for name, table in tools.items()
            if name not in PYTHON_TOOLS.split() and (name != own or own == "pytest")
        }
    return repr(before) == repr(after)  # unlike `==`, which regards 1 and true as equal


def read_sections(text):
    # type: (bytes) -> list
    """Return the lines of setup.cfg in sections that a test runner may read, whichever way it splits lines."""
    kept, is_harmless = [], False
    for line in text.decode("utf-8").splitlines():
        if line.strip().startswith("["):
            name = line.rstrip()[1:-1]
            is_harmless = (
                line.rstrip() == "[%s]" % name and name.split(".")[0].split(":")[0].split("-")[0] in SECTIONS.split()
            )
        if not is_harmless:
            kept.append(line)
    return kept


def is_same_setup(old, new):
    # type: (bytes, bytes) -> bool
    """Return whether two setup.cfg agree in what a test runner may read."""
    return read_sections(old) == read_sections(new)


COMPARE = {"package.json": is_same_package, "pyproject.toml": is_same_pyproject, "setup.cfg": is_same_setup}


def may_stay(path, git):
    # type: (bytes, list) -> bool
    """Return whether a changed file may stay. Of files that the commit lacks, only package.json may."""
    compare = COMPARE.get(os.path.basename(os.fsdecode(path)))
    if compare is None or os.path.realpath(path) != os.path.join(os.fsencode(os.path.realpath(".")), path):
        return False
    with open(path, "rb") as file:
        new = file.read(MAX_BYTES + 1)
    found = subprocess.run(
        git + [b"cat-file", b"blob", b"HEAD:" + path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False
    )
    if len(new) > MAX_BYTES or (found.returncode != 0 and compare is not is_same_package):
        return False
    return compare(found.stdout, new)


def main(git):
    # type: (list) -> None
    """Print the paths of standard input that may stay."""
    for path in sys.stdin.buffer.read().split(b"\0")[:MAX_FILES]:
        try:
            stays = bool(path) and os.path.isfile(path) and may_stay(path, git)
        except Exception:  # noqa: BLE001, S112 - whatever keeps a file from being compared keeps it from staying
            continue
        if stays:
            sys.stdout.buffer.write(path + b"\0")


if __name__ == "__main__":
    main([os.fsencode(word) for word in sys.argv[1:]])
