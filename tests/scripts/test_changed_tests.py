"""The tests that a change can reach: imports, names in strings, conftest.py files, packages of other files, git."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers import TinyRepo

SCRIPT = Path(__file__).parents[2] / "scripts" / "changed-tests"
FILES = {
    "pyproject.toml": "[project]\nname = 'shop'\n[project.scripts]\nshop = 'shop.cli:main'\n",
    "README.md": "A shop.\n",
    "shop/__init__.py": "NAME = 'shop'\n",
    "shop/cli.py": "def main():\n    from shop.orders import store\n",
    "shop/prices.py": "TAX = 1\n",
    "shop/orders/__init__.py": "",
    "shop/orders/store.py": "from . import text\nfrom ..prices import TAX\n",
    "shop/orders/text.py": "",
    "shop/orders/schema.sql": "",
    "shop/plugins/__init__.py": "",
    "shop/plugins/paypal.py": "",
    "shop/loader.py": "KIND = 'shop.plugins.paypal:pay'\n",
    "client/shop_client/__init__.py": "",
    "client/shop_client/api.py": "",
    "docs/guide.md": "",
    "deploy/compose.yml": "",
    "scripts/tidy": "",
    "tests/__init__.py": "",
    "tests/conftest.py": "import pytest\nfrom tests.server import Server\n\n@pytest.fixture\ndef server():\n    pass\n",
    "tests/server.py": "class Server:\n    pass\n",
    "tests/helpers.py": "",
    "tests/orders/conftest.py": "import pytest\nimport shop.prices\n\n@pytest.fixture\ndef order():\n    pass\n",
    "tests/orders/data/old.json": "",
    "tests/orders/test_store.py": "from shop.orders import store\nfrom tests.helpers import x\n",
    "tests/orders/test_text.py": "def test(order):\n    import shop.orders.text\n",
    "tests/test_prices.py": "import shop.prices\n\ndef test(server):\n    pass\n",
    "tests/test_command.py": "COMMAND = ['shop', 'list']\n",
    "tests/test_loader.py": "import shop.loader\n",
    "tests/test_client.py": "CODE = 'from shop_client.api import get'\n",
    "tests/docs/test_pages.py": "",
    "tests/test_compose.py": "FILE = ROOT / 'deploy' / 'compose.yml'\n",
    "tests/test_script.py": "SCRIPT = 'scripts/tidy'\n",
}
ORDERS = ["orders/test_store", "orders/test_text", "test_command"]


@pytest.fixture
def repo(tmp_path: Path) -> TinyRepo:
    repo = TinyRepo(tmp_path / "repo")
    repo.commit("Open the shop", FILES)
    return repo


def select(repo: TinyRepo, *words: str) -> list[str]:
    """Return the selected files without their folder and suffix."""
    command = [sys.executable, SCRIPT, "--root", repo.path, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [line.removeprefix("tests/").removesuffix(".py") for line in done.stdout.splitlines()]


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("shop/orders/store.py", ["orders/test_store", "test_command"]),
        ("shop/orders/text.py", ORDERS),
        ("shop/prices.py", [*ORDERS, "test_prices"]),  # one test by a fixture of its folder
        ("shop/cli.py", ["test_command"]),
        ("shop/__init__.py", [*ORDERS, "test_loader", "test_prices"]),
        ("shop/orders/schema.sql", ORDERS),
        ("shop/plugins/paypal.py", ["test_loader"]),
        ("client/shop_client/api.py", ["test_client"]),
        ("client/shop_client/__init__.py", ["test_client"]),
        ("docs/guide.md", ["docs/test_pages"]),
        ("README.md", ["docs/test_pages"]),
        ("deploy/compose.yml", ["test_compose"]),
        ("scripts/tidy", ["test_script"]),
        ("tests/helpers.py", ["orders/test_store"]),
        ("tests/server.py", ["test_prices"]),
        ("tests/orders/conftest.py", ["orders/test_text"]),
        ("tests/orders/data/old.json", ["orders/test_store", "orders/test_text"]),
        ("tests/test_prices.py", ["test_prices"]),
        ("tests/conftest.py", ["tests"]),
        ("pyproject.toml", ["tests"]),
    ],
)
def test_a_changed_file_reaches_what_uses_it(repo: TinyRepo, file: str, expected: list[str]) -> None:
    repo.write({file: FILES[file] + "\n"})
    assert select(repo) == expected


def test_a_change_is_what_differs_from_the_base(repo: TinyRepo) -> None:
    assert select(repo) == []
    repo.git("switch", "-q", "-c", "work")
    repo.commit("Change a script", {"scripts/tidy": "tidy\n"})
    repo.write({"docs/new.md": "new\n", "deploy/compose.yml": "new\n"})
    assert select(repo) == ["docs/test_pages", "test_compose", "test_script"]
    assert select(repo, "HEAD") == ["docs/test_pages", "test_compose"]
    repo.git("switch", "-q", "main")  # uncommitted work on main itself
    assert select(repo) == ["docs/test_pages", "test_compose"]
    repo.git("branch", "-m", "main", "trunk")  # no main: uncommitted work
    assert select(repo) == ["docs/test_pages", "test_compose"]


def test_a_deleted_module_counts_as_its_package(repo: TinyRepo) -> None:
    repo.write({"shop/orders/text.py": None})
    assert select(repo) == ORDERS
    repo.write({"tests/test_prices.py": None})
    assert "test_prices" not in select(repo)


def test_an_unknown_base_is_an_error(repo: TinyRepo) -> None:
    command = [sys.executable, SCRIPT, "--root", repo.path, "nowhere"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 128
    assert "nowhere" in done.stderr
    assert "Traceback" not in done.stderr
