"""Base images: the catalog, interpreters of this machine, and what every base can do."""

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

from backends.clones import Clones
from backends.sandbox.docker import DockerSandbox
from backends.services import Services
from builders import bases, catalog, debootstrap, interpreters
from languages.registry import all_languages
from mergemill.config import Settings
from mergemill.errors import InputError
from taskdb.artifacts import Artifacts

PYTHON = catalog.release("python", "3.11")


@pytest.fixture
def services(tmp_path) -> Services:
    return Services(
        settings=Settings(store=tmp_path / "store"), sandbox=DockerSandbox(), clones=Clones(tmp_path),
        artifacts=Artifacts(tmp_path / "artifacts"),
    )  # fmt: skip


@pytest.fixture
def installations(tmp_path, monkeypatch):
    """Folders like those of pyenv and uv."""
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    monkeypatch.setenv("UV_PYTHON_INSTALL_DIR", str(tmp_path / "uv"))

    def install(folder: str, version: str, *others: str) -> None:
        for path in (f"bin/python{version}", *others):
            file = tmp_path / folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("x")
            file.chmod(0o755)

    return install


def test_an_unknown_version_names_the_known_ones():
    with pytest.raises(InputError) as raised:
        catalog.release("python", "2.7")
    assert "3.11" in raised.value.advice
    with pytest.raises(InputError):
        catalog.releases("cobol")


def test_official_images_are_named_by_digest_where_there_is_one():
    assert catalog.official_image(PYTHON).startswith("python@sha256:")
    assert catalog.official_image(catalog.release("python", "3.7")) == "python:3.7-slim-bookworm"


def test_versions_are_listed_oldest_first():
    numbers = [tuple(map(int, one.version.split("."))) for one in catalog.releases("python")]
    assert numbers == sorted(numbers)
    assert {catalog.default("python")} <= {one.version for one in catalog.releases("python")}


def test_a_base_is_named_after_its_recipe():
    one = bases.Recipe(
        language="python",
        version="3.11",
        kind="debian",
        source="bookworm",
        python="/usr/bin/python3.11",
        release=PYTHON,
    )
    other = replace(one, source="trixie")
    assert one.name.startswith("mergemill/base:python3.11-debian-")
    assert one.name != other.name


@pytest.mark.parametrize("name", all_languages())
def test_the_bases_of_every_language_have_names_that_engines_take(name):
    for release in all_languages()[name].RELEASES:
        made = bases.Recipe(language=name, version=release.version, kind="debian", source="bookworm", release=release)
        assert re.fullmatch(r"[\w/]+:[A-Za-z0-9_][\w.-]{0,127}", made.name)


def test_the_newest_interpreter_of_a_version_is_found(installations):
    installations("pyenv/versions/3.8.2", "3.8")
    installations("pyenv/versions/3.8.18", "3.8")
    installations("pyenv/versions/mine-3.9", "3.9")
    installations("uv/cpython-3.12.4-linux-x86_64-gnu", "3.12")
    found = interpreters.found()
    assert {version: one.patch for version, one in found.items()} == {"3.8": 18, "3.12": 4}
    assert (found["3.8"].standalone, found["3.12"].standalone) == (False, True)


def test_an_interpreter_travels_to_its_own_prefix_without_other_peoples_packages(installations):
    lib = "lib/python3.8"
    installations(
        "pyenv/versions/3.8.2", "3.8", f"{lib}/os.py", f"{lib}/site-packages/numpy/a.py", f"{lib}/test/test_os.py",
        f"{lib}/test/support/__init__.py", f"{lib}/unittest/test/a.py", f"{lib}/__pycache__/os.pyc", "bin/black",
    )  # fmt: skip
    one = interpreters.found()["3.8"]
    out = io.BytesIO()
    interpreters.write_tar(one, out)
    out.seek(0)
    with tarfile.open(fileobj=out) as tar:
        files = {"/" + entry.name for entry in tar if entry.isreg()}
        assert all(entry.uid == 0 and entry.mode & 0o555 == 0o555 for entry in tar if entry.isdir())
    inside = {path.removeprefix(f"{one.prefix}/") for path in files}
    assert inside == {
        "bin/python3.8", f"{lib}/os.py", f"{lib}/test/support/__init__.py", f"{lib}/unittest/test/a.py"
    }  # fmt: skip


@pytest.mark.docker
def test_runs_with_different_stores_make_a_base_once(tmp_path, services, monkeypatch):
    name = f"mergemill-test/base:{uuid.uuid4().hex[:12]}"
    way = bases.Recipe(
        language="python",
        version="3.11",
        kind="debian",
        source="bookworm",
        python="/usr/bin/python3.11",
        release=PYTHON,
    )
    monkeypatch.setattr(bases.Recipe, "name", name)
    monkeypatch.setattr(bases, "root_file_system", tiny := Suites())
    stores = [
        replace(services, settings=Settings(store=tmp_path / store), sandbox=DockerSandbox()) for store in ("a", "b")
    ]
    try:
        with ThreadPoolExecutor() as pool:
            one, other = pool.map(lambda mine: bases.MAKERS["debian"](way, mine), stores)
        assert one == other
        assert tiny.made == 1
    finally:
        services.sandbox.remove_image(name)


class Suites:
    """In place of debootstrap: a root file system of one file, slowly."""

    def __init__(self) -> None:
        self.made = 0

    @contextlib.contextmanager
    def __call__(self, *_: object) -> Iterator[io.BytesIO]:
        self.made += 1
        time.sleep(0.5)
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as tar:
            tar.addfile(tarfile.TarInfo("file"))
        out.seek(0)
        yield out


@pytest.mark.docker
@pytest.mark.parametrize("version", ["3.11", "3.8"])
def test_a_base_runs_its_python_for_the_test_user(services, version):
    if version not in bases.available("python", services):
        pytest.skip(f"this machine has no way to Python {version}")
    base = bases.ensure_base("python", version, services)
    python = base.labels[bases.PYTHON_LABEL]
    script = f"""
        {python} -c 'import sys, ssl, sqlite3, ctypes, lzma; print(*sys.version_info[:2])'
        uv venv -q --python {python} ~/v && ~/v/bin/python -c 'print(1)'
        git config --system safe.directory; gcc --version >/dev/null; echo $LANG; id -u; echo ~
    """
    ran = services.sandbox.run(
        base.name, ["bash", "-ec", script], limits=services.test_limits(), user="mergemill",
        env={"HOME": "/home/mergemill"},
    )  # fmt: skip
    assert ran.output.splitlines() == [version.replace(".", " "), "1", "*", "C.UTF-8", "1000", "/home/mergemill"]


@pytest.mark.docker
def test_a_base_that_is_there_is_not_made_again(services):
    first = bases.ensure_base("python", "3.11", services)
    started = time.monotonic()
    assert bases.ensure_base("python", "3.11", services) == first
    assert bases.bootstrap("python", ("3.11",), services) == [first]
    assert time.monotonic() - started < 2


@pytest.mark.docker
def test_where_no_registry_answers_the_official_way_is_closed_and_not_tried_again(services):
    way = bases.Recipe(
        language="python", version="3.11", kind="official", source="127.0.0.1:9/x:1", python="/p", release=PYTHON
    )
    assert bases.MAKERS["official"](way, services) is None
    started = time.monotonic()
    assert services.sandbox.pull("127.0.0.1:9/x:2", seconds=30) is False
    assert time.monotonic() - started < 0.1


@pytest.mark.docker
@pytest.mark.slow
@pytest.mark.skipif(debootstrap.can_debootstrap() is not None, reason="needs root and debootstrap")
def test_an_older_debian_gives_its_own_python(services):
    way = bases.Recipe(
        language="python",
        version="3.9",
        kind="debian",
        source="bullseye",
        python="/usr/bin/python3.9",
        release=catalog.release("python", "3.9"),
    )
    made = bases.MAKERS["debian"](way, services)
    ran = services.sandbox.run(
        made.name, ["/usr/bin/python3.9", "-c", "import ssl, sqlite3"], limits=services.test_limits()
    )
    assert (ran.exit_code, made.layer_bytes < 450_000_000) == (0, True)
