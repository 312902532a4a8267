"""What the documentation names is there: paths, Python names, options and their defaults, links, the generated site."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer

from core.config import Settings
from core.settings.group import list_settings
from mergemill.cli import app
from mergemill.cli.lazy_group import iterate_commands
from tests.docs.test_examples import PAGES, ROOT, name_page

PACKAGES = (
    "backends",
    "benchmarks",
    "builders",
    "core",
    "derivers",
    "dockerfiles",
    "docs",
    "evaluation",
    "explorers",
    "exporters",
    "guest",
    "languages",
    "mergemill",
    "miner",
    "mutation",
    "samplers",
    "scripts",
    "simulators",
    "taskdb",
    "tests",
    "training_data",
    "verifiers",
    "worlds",
)
OTHER_TOOLS = frozenset(
    (
        "--allow-agent-host",
        "--apply-chat-template",
        "--list-tests",
        "--before",
        "--browser",
        "--build-arg",
        "--cached",
        "--check",
        "--coins",
        "--config",
        "--results",
        "--resources",
        "--weakened",
        "--drivers",
        "--engine",
        "--goal-hours",
        "--miners",
        "--minimum-release-age",
        "--no-config",
        "--placement",
        "--cpu",
        "--custom-rm-path",
        "--exclude-newer",
        "--help",
        "--ignore",
        "--init",
        "--input-key",
        "--instances",
        "--label-key",
        "--metadata-key",
        "--network",
        "--page",
        "--rounds",
        "--patches",
        "--postgresql",
        "--predictions",
        "--quiet",
        "--runtime",
        "--settle",
        "--raw",
        "--repetitions",
        "--sizes",
        "--repos",
        "--stdin",
        "--strict",
        "--update",
        "--verbose",
        "--version",
        "--workdir",
    )
)
"""Options of git, docker, uv, npm, pytest, Harbor and the benchmarks, and those that stand before every command."""
TO_BE_WRITTEN = frozenset({"languages/shell.py", "tests/languages/examples/shell/"})
"""Files of CONTRIBUTING's walk-through."""
IMAGE_LABELS = frozenset({"mergemill.base", "mergemill.python", "mergemill.recipe"})
"""Labels of Docker images, which look like Python names."""
TELEMETRY = frozenset(
    f"mergemill.{word}"
    for word in ("change", "command", "kind", "reason", "record", "run", "source", "stage", "verdict")
)
"""Attributes of traces and a logger, which look like Python names, too."""
DOTTED_NAME = re.compile(rf"((?:{'|'.join(PACKAGES)})(?:\.\w+)+)(?=\(|$)")
FILE_NAME = re.compile(r"\.(md|py|toml|sh|db|jsonl?|lock|sqlite|patch|xml)$")


def iterate_code(page: Path) -> Iterator[str]:
    """Yield what stands between backticks on a page, without blocks."""
    text = re.sub(r"(?ms)^[ ]*```.*?^[ ]*```", "", page.read_text())
    yield from re.findall(r"`([^`\n]+)`", text)


@cache
def collect_options() -> frozenset[str]:
    """Return every option of every command as it is spelled."""

    group: Any = typer.main.get_command(app)
    commands = [group, *(command for _, command in iterate_commands(group))]
    options = [param for command in commands for param in command.params if param.param_type_name == "option"]
    return frozenset(spelling for option in options for spelling in (*option.opts, *option.secondary_opts))


@pytest.mark.parametrize("page", PAGES, ids=name_page)
def test_every_path_on_a_page_is_there(page: Path) -> None:
    missing = []
    for code in iterate_code(page):
        path = code.split("::")[0].strip()
        top, slash, _ = path.partition("/")
        is_path = slash and top in PACKAGES and re.fullmatch(r"[\w./-]+", path) and not re.search(r"NAME|\.\.\.", path)
        if is_path and path not in TO_BE_WRITTEN and not (ROOT / path).exists():
            missing.append(path)
    assert not missing, f"{name_page(page)} names what is not there: {missing}"


@pytest.mark.parametrize("page", PAGES, ids=name_page)
def test_every_python_name_on_a_page_is_there(page: Path) -> None:
    missing = []
    for code in iterate_code(page):
        name = DOTTED_NAME.match(code)
        if name and name[1] not in IMAGE_LABELS | TELEMETRY and not FILE_NAME.search(name[1]) and not resolves(name[1]):
            missing.append(name[1])
    assert not missing, f"{name_page(page)} names what is not there: {missing}"


def resolves(name: str) -> bool:
    """Return whether a dotted name is a module or something in one."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            item: object = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            fields = getattr(item, "model_fields", None) or getattr(item, "__annotations__", {})
            if not hasattr(item, part) and part not in fields:
                return False
            item = getattr(item, part, None)
        return True
    return False


@pytest.mark.parametrize("page", PAGES, ids=name_page)
def test_every_option_on_a_page_is_there(page: Path) -> None:
    known = collect_options() | OTHER_TOOLS
    named = {option for code in iterate_code(page) for option in re.findall(r"(?<![\w-])--[a-z][a-z0-9-]+", code)}
    assert not named - known, f"{name_page(page)} names options that are not there: {sorted(named - known)}"


@pytest.mark.parametrize("page", PAGES, ids=name_page)
def test_every_default_in_a_table_of_a_page_is_the_programs(page: Path) -> None:
    """In tables with a column `default`, the row of an option has the default of the setting of that name."""
    fields = {
        "--" + name.removesuffix("_dir").replace("_", "-"): setting for name, setting in list_settings(Settings).items()
    }
    wrong = []
    header: list[str] = []
    for line in page.read_text().splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] if line.startswith("|") else []
        if "default" in cells:
            header = cells
        elif not cells:
            header = []
        elif header and (option := re.match(r"`(--[a-z-]+)", cells[0])) and option[1] in fields:
            shown, default = cells[header.index("default")].strip("`"), fields[option[1]].default
            if shown and shown != str(getattr(default, "value", default)):
                wrong.append(f"{option[1]}: {shown}, but it is {default}")
    assert not wrong, f"{name_page(page)}: {wrong}"


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    done = subprocess.run(
        [Path(sys.executable).parent / "mkdocs", "build", "--strict", "--site-dir", tmp_path / "site"],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT), "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    pages = {path.relative_to(tmp_path / "site").as_posix() for path in (tmp_path / "site").rglob("index.html")}
    assert {"start/tutorial/index.html", "reference/commands/index.html", "reference/records/index.html"} <= pages
    commands = (tmp_path / "site" / "reference" / "commands" / "index.html").read_text()
    assert "mergemill tasks list" in commands
    assert "--min-f2p" in commands
