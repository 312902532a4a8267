"""Base images: the catalog, interpreters of this machine, and the properties of every base."""

from __future__ import annotations

import contextlib
import io
import re
import tarfile
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from backends.clones import CloneStore
from backends.sandbox.docker import DockerSandbox
from backends.services import Services
from builders import bases, catalog, debootstrap, interpreters
from core.config import Settings
from core.errors import InputError
from languages.registry import LANGUAGES
from taskdb.artifacts import Artifacts

PYTHON = catalog.get_release("python", "3.11")


@pytest.fixture
def services(tmp_path) -> Services:
    return Services(
        settings=Settings(store=tmp_path / "store"),
        sandbox=DockerSandbox(),
        clones=CloneStore(tmp_path),
        artifacts=Artifacts(tmp_path / "artifacts"),
    )


@pytest.fixture
def installations(tmp_path, monkeypatch):
    """Create folders like those of pyenv and uv."""
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    monkeypatch.setenv("UV_PYTHON_INSTALL_DIR", str(tmp_path / "uv"))

    def install(folder: str, version: str, *others: str) -> None:
        for path in (f"bin/python{version}", *others):
            file = tmp_path / folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("x")
            file.chmod(0o755)

    return install


def test_the_error_for_an_unknown_version_lists_the_available_ones():
    with pytest.raises(InputError) as raised:
        catalog.get_release("python", "2.7")
    assert "3.11" in raised.value.advice
    with pytest.raises(InputError):
        catalog.list_releases("cobol")


def test_official_images_are_pinned_by_digest_where_the_catalog_has_one():
    assert catalog.get_official_image(PYTHON).startswith("python@sha256:")
    assert catalog.get_official_image(catalog.get_release("python", "3.7")) == "python:3.7-slim-bookworm"


def test_versions_are_listed_oldest_first():
    numbers = [tuple(map(int, release.version.split("."))) for release in catalog.list_releases("python")]
    assert numbers == sorted(numbers)
    assert {catalog.get_default_version("python")} <= {release.version for release in catalog.list_releases("python")}


def test_a_base_is_named_after_its_recipe():
    base_recipe = bases.BaseRecipe(
        language="python",
        version="3.11",
        method="debian",
        source="bookworm",
        python="/usr/bin/python3.11",
        release=PYTHON,
    )
    other = replace(base_recipe, source="trixie")
    assert base_recipe.name.startswith("mergemill/base:python3.11-debian-")
    assert base_recipe.name != other.name


@pytest.mark.parametrize("name", LANGUAGES)
def test_the_bases_of_every_language_have_valid_image_names(name):
    for release in LANGUAGES[name].releases:
        image = bases.BaseRecipe(
            language=name, version=release.version, method="debian", source="bookworm", release=release
        )
        assert re.fullmatch(r"[\w/]+:[A-Za-z0-9_][\w.-]{0,127}", image.name)


def test_the_newest_interpreter_of_a_version_is_found(installations):
    installations("pyenv/versions/3.8.2", "3.8")
    installations("pyenv/versions/3.8.18", "3.8")
    installations("pyenv/versions/mine-3.9", "3.9")
    installations("uv/cpython-3.12.4-linux-x86_64-gnu", "3.12")
    newest = interpreters.find_interpreters()
    assert {version: release.patch for version, release in newest.items()} == {"3.8": 18, "3.12": 4}
    assert (newest["3.8"].standalone, newest["3.12"].standalone) == (False, True)


def test_an_interpreter_is_copied_to_its_own_prefix_without_installed_packages(installations):
    lib = "lib/python3.8"
    installations(
        "pyenv/versions/3.8.2",
        "3.8",
        f"{lib}/os.py",
        f"{lib}/site-packages/numpy/a.py",
        f"{lib}/test/test_os.py",
        f"{lib}/test/support/__init__.py",
        f"{lib}/unittest/test/a.py",
        f"{lib}/__pycache__/os.pyc",
        "bin/black",
    )
    interpreter = interpreters.find_interpreters()["3.8"]
    out = io.BytesIO()
    interpreters.write_tar(interpreter, out)
    out.seek(0)
    with tarfile.open(fileobj=out) as tar:
        files = {"/" + entry.name for entry in tar if entry.isreg()}
        assert all(entry.uid == 0 and entry.mode & 0o555 == 0o555 for entry in tar if entry.isdir())
    inside = {path.removeprefix(f"{interpreter.prefix}/") for path in files}
    assert inside == {"bin/python3.8", f"{lib}/os.py", f"{lib}/test/support/__init__.py", f"{lib}/unittest/test/a.py"}


@pytest.mark.docker
def test_runs_with_different_stores_make_a_base_once(tmp_path, services, monkeypatch):
    name = f"mergemill-test/base:{uuid.uuid4().hex[:12]}"
    recipe = bases.BaseRecipe(
        language="python",
        version="3.11",
        method="debian",
        source="bookworm",
        python="/usr/bin/python3.11",
        release=PYTHON,
    )
    monkeypatch.setattr(bases.BaseRecipe, "name", name)
    monkeypatch.setattr(bases, "open_root_file_system", fake := FakeDebootstrap())
    stores = [
        replace(services, settings=Settings(store=tmp_path / store), sandbox=DockerSandbox()) for store in ("a", "b")
    ]
    try:
        with ThreadPoolExecutor() as pool:
            base, other = pool.map(lambda store: bases.MAKERS["debian"](recipe, store), stores)
        assert base == other
        assert fake.calls == 1
    finally:
        services.images.remove(name)


class FakeDebootstrap:
    """Replacement of debootstrap that slowly makes a root file system of one file."""

    def __init__(self) -> None:
        self.calls = 0

    @contextlib.contextmanager
    def __call__(self, *_: object) -> Iterator[io.BytesIO]:
        self.calls += 1
        time.sleep(0.5)
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as tar:
            tar.addfile(tarfile.TarInfo("file"))
        out.seek(0)
        yield out


@pytest.mark.docker
@pytest.mark.parametrize("version", ["3.11", "3.8"])
def test_a_base_runs_its_python_for_the_test_user(services, version):
    if version not in bases.list_available_versions("python", services):
        pytest.skip(f"this machine cannot make a base of Python {version}")
    base = bases.ensure_base("python", version, services)
    python = base.labels[bases.PYTHON_LABEL]
    script = f"""
        {python} -c 'import sys, ssl, sqlite3, ctypes, lzma; print(*sys.version_info[:2])'
        uv venv -q --python {python} ~/v && ~/v/bin/python -c 'print(1)'
        git config --system safe.directory; gcc --version >/dev/null; echo $LANG; id -u; echo ~
    """
    result = services.sandbox.run(
        base.name,
        ["bash", "-ec", script],
        limits=services.test_limits(),
        user="mergemill",
        env={"HOME": "/home/mergemill"},
    )
    assert result.output.splitlines() == [version.replace(".", " "), "1", "*", "C.UTF-8", "1000", "/home/mergemill"]


UNCOMPILED = """
import email.message, importlib.util, os, sys, unittest, xml.etree.ElementTree
files = [module.__file__ for module in sys.modules.values() if getattr(module, "__file__", None)]
print(*[file for file in files if file.endswith(".py") and not os.path.exists(importlib.util.cache_from_source(file))])
"""


@pytest.mark.docker
@pytest.mark.parametrize("version", ["3.11", "3.8"])
def test_a_base_has_the_bytecode_of_its_library(services, version):
    """The tests' user cannot write it, so each test process would compile all that it imports."""
    if version not in bases.list_available_versions("python", services):
        pytest.skip(f"this machine cannot make a base of Python {version}")
    base = bases.ensure_base("python", version, services)
    python = base.labels[bases.PYTHON_LABEL]
    result = services.sandbox.run(
        base.name, [python, "-I", "-c", UNCOMPILED], limits=services.test_limits(), user="mergemill"
    )
    assert (result.exit_code, result.output) == (0, "\n")


def test_the_name_of_a_debian_base_does_not_depend_on_the_compilation_of_other_libraries(monkeypatch):
    recipes = [
        bases.BaseRecipe(language="python", version="3.11", method=method, source="s", python="/p", release=PYTHON)
        for method in ("debian", "host", "official")
    ]
    names = [recipe.name for recipe in recipes]
    monkeypatch.setattr(bases, "render_library_compilation", lambda python: f"{python} -m other")
    assert [recipe.name == name for recipe, name in zip(recipes, names, strict=True)] == [True, False, False]


@pytest.mark.docker
def test_an_existing_base_is_not_made_again(services):
    first = bases.ensure_base("python", "3.11", services)
    started = time.monotonic()
    assert bases.ensure_base("python", "3.11", services) == first
    assert bases.ensure_bases("python", ("3.11",), services) == [first]
    assert time.monotonic() - started < 2


@pytest.mark.docker
def test_a_base_that_another_machine_made_is_used_where_none_can_be_made(services, monkeypatch):
    first = bases.ensure_base("python", "3.11", services)
    monkeypatch.setattr(bases, "find_missing_requirement", lambda: "debootstrap is not installed")
    assert bases.ensure_base("python", "3.11", services) == first
    assert "3.11" in bases.list_available_versions("python", services)
    known = {recipe.method for recipe in bases.list_recipes("python", PYTHON, "auto")}
    assert known == {"official"}


@pytest.mark.docker
def test_an_unreachable_registry_is_not_tried_again(services):
    recipe = bases.BaseRecipe(
        language="python", version="3.11", method="official", source="127.0.0.1:9/x:1", python="/p", release=PYTHON
    )
    assert bases.MAKERS["official"](recipe, services) is None
    started = time.monotonic()
    assert services.images.pull("127.0.0.1:9/x:2", seconds=30) is False
    assert time.monotonic() - started < 0.1


@pytest.mark.docker
@pytest.mark.slow
@pytest.mark.skipif(debootstrap.find_missing_requirement() is not None, reason="needs root and debootstrap")
def test_an_older_debian_provides_its_own_python(services):
    recipe = bases.BaseRecipe(
        language="python",
        version="3.9",
        method="debian",
        source="bullseye",
        python="/usr/bin/python3.9",
        release=catalog.get_release("python", "3.9"),
    )
    image = bases.MAKERS["debian"](recipe, services)
    result = services.sandbox.run(
        image.name, ["/usr/bin/python3.9", "-c", "import ssl, sqlite3"], limits=services.test_limits()
    )
    assert (result.exit_code, image.layer_bytes < 450_000_000) == (0, True)
