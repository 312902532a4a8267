"""The client as users have it: a built wheel, alone in an environment without mergemill."""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.client.frameworks import ADAPTERS, SHARED, VERSIONS
from tests.client.test_sources import ROWS, write_bundle
from tests.taskdb.lineages import make_url
from tests.taskdb.listing import make_listing

CLIENT = Path(__file__).parents[2] / "client"
SCRIPT = """
import json, sys
from importlib.util import find_spec
before = set(sys.modules)
import mergemill_client, mergemill_client.queue, mergemill_client.repetition
loaded = {name.partition(".")[0] for name in set(sys.modules) - before} - sys.stdlib_module_names
names = {}
for url in sys.argv[1:]:
    with mergemill_client.open(url) as database:
        names[url] = [task["name"] for task in database.tasks(language="python,go", sample=9, per_repo=4)]
installed = [name for name in ("mergemill", "taskdb", "sqlalchemy", "pandas") if find_spec(name)]
print(json.dumps({"loaded": sorted(loaded), "installed": installed, "names": list(names.values())}))
"""


def run(*command: object) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter of an environment in which only the client's wheel is installed."""
    folder = tmp_path_factory.mktemp("client")
    shutil.copytree(CLIENT, folder / "source", ignore=shutil.ignore_patterns("__pycache__"))
    uv = Path(sys.executable).with_name("uv")
    run(uv, "build", "--wheel", "--offline", "--out-dir", folder / "dist", folder / "source")
    run(uv, "venv", "--python", sys.executable, folder / "venv")
    interpreter = folder / "venv" / "bin" / "python"
    (wheel,) = (folder / "dist").glob("mergemill_client-*.whl")
    run(uv, "pip", "install", "--offline", "--python", interpreter, wheel)
    return interpreter


def test_the_wheel_reads_tasks_without_mergemill(python: Path, tmp_path: Path) -> None:
    make_listing(make_url(tmp_path), ROWS).close()
    write_bundle(tmp_path / "bundle")
    body = json.loads(run(python, "-I", "-c", SCRIPT, make_url(tmp_path), tmp_path / "bundle"))
    assert body["loaded"] == ["mergemill_client"]
    assert body["installed"] == []
    assert body["names"][0] == body["names"][1]
    assert len(body["names"][0]) == 9


def test_a_missing_extra_is_named(python: Path, tmp_path: Path) -> None:
    write_bundle(tmp_path / "bundle")
    for call, extra in (("to_pandas", "pandas"), ("to_arrow", "arrow")):
        code = (
            "import sys, mergemill_client\n"
            f"try: mergemill_client.open(sys.argv[1]).tasks().{call}()\n"
            "except mergemill_client.ClientError as error: print(error)"
        )
        assert f"mergemill-client[{extra}]" in run(python, "-I", "-c", code, tmp_path / "bundle")
    code = "import mergemill_client; mergemill_client.open('postgresql://localhost/x')"
    done = subprocess.run([python, "-I", "-c", code], capture_output=True, text=True, check=False)
    assert "mergemill-client[postgres]" in done.stderr
    done = subprocess.run(
        [python, "-I", "-c", "import mergemill_client.training"], capture_output=True, text=True, check=False
    )
    assert "mergemill-client[train]" in done.stderr


def test_the_client_imports_nothing_of_mergemill() -> None:
    for path in CLIENT.rglob("*.py"):
        training = {"torch", path.stem} if path.parent.name == "training" else set()
        adapter = {"torch", "fastapi", "skyrl_gym", path.stem} if path.parent.name == "adapters" else set()
        simulated = {path.stem} if path.parent.name == "simulated" else set()
        optional = {"pandas", "pyarrow", "psycopg"} | training | adapter | simulated
        for node in ast.walk(ast.parse(path.read_text())):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            modules += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            foreign = {module.partition(".")[0] for module in modules} - sys.stdlib_module_names
            assert foreign <= optional | {"mergemill_client"}, path


def test_every_adapter_is_in_the_table_with_the_version_that_runs_it() -> None:
    names = {path.stem for path in ADAPTERS.glob("*.py")} - set(SHARED)
    assert names == set(VERSIONS)
    page = (CLIENT.parent / "docs/guide/verify/rewards.md").read_text()
    for name, version in VERSIONS.items():
        row = next(line for line in page.splitlines() if f"`mergemill_client/adapters/{name}.py`" in line)
        assert version.split("==")[1] in row, name
