"""Pages of the reference, written from the code when the site is built: commands, settings, records and views.

`mkdocs build` calls `on_files`; nothing of what it adds is kept in the repository, so it cannot become outdated.
"""

from __future__ import annotations

import ast
import inspect
import re
import tempfile
import textwrap
from pathlib import Path
from typing import Any

import typer
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from pydantic.fields import FieldInfo

from core.config import SECRETS, Settings, describe_settings
from core.settings.group import list_settings
from mergemill.cli import app
from mergemill.cli.lazy_group import iterate_commands
from taskdb import records
from taskdb.records import environments, oracles, questions, simulations, verdicts, worlds
from taskdb.records.base import MEASURED, Part, Record
from taskdb.schema.task_columns import DECLARED, NULLABLE, RANGE_FILTERS, VALUE_TYPES, WORD_FILTERS
from taskdb.schema.views import VIEWS
from taskdb.store import Store


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages to those of the folder."""
    pages = {
        "reference/commands.md": write_commands(),
        "reference/settings.md": write_settings(),
        "reference/records.md": write_records(),
        "reference/views.md": write_views(),
    }
    for name, text in pages.items():
        files.append(File.generated(config, name, content=text))
    return files


def write_commands() -> str:
    """Return a page with every command, its options and their defaults, from typer's own declarations."""
    parts = ["# Commands and options\n\nWritten from the program's own declarations.\n"]
    for path, command in iterate_commands(typer.main.get_command(app)):
        parts.append(f"## `{' '.join(('mergemill', *path))}`\n\n{clean_help(command.help)}\n")
        rows = [row for parameter in command.params if (row := describe_parameter(parameter))]
        if rows:
            parts.append("| option | effect | default |\n|---|---|---|\n" + "\n".join(rows) + "\n")
    return "\n".join(parts)


def clean_help(text: str | None) -> str:
    """Return help text as Markdown: examples keep their lines."""
    text = inspect.cleandoc(text or "").replace("\b", "").replace("\f", "")
    return re.sub(r"(?m)^( *)(\$ .*|mergemill .*)$", r"\1    \2", text)


def describe_parameter(parameter: Any) -> str | None:
    """Return a row of the table of options; None for what help does not show."""
    if getattr(parameter, "hidden", False):
        return None
    if parameter.param_type_name == "argument":
        name, effect = f"`{(parameter.metavar or parameter.name).upper()}`", getattr(parameter, "help", "") or ""
    else:
        name, effect = ", ".join(f"`{option}`" for option in parameter.opts), getattr(parameter, "help", "") or ""
    default = parameter.default
    shown = f"`{default}`" if default not in (None, "", (), False, ...) and not callable(default) else ""
    return f"| {name} | {escape_cell(effect)} | {shown} |"


def escape_cell(text: str) -> str:
    """Return text that stays in one cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")


def write_settings() -> str:
    """Return a page with every setting: option, variable, key of `mergemill.toml`, default."""
    rows = []
    descriptions = describe_settings()
    for name, field in list_settings(Settings).items():
        default = "" if field.default in (None, (), False) else f"`{field.default}`"
        option = "" if name in SECRETS else f"`--{name.replace('_', '-')}`"
        rows.append(f"| {option} | `MERGEMILL_{name.upper()}` | {escape_cell(descriptions[name])} | {default} |")
    intro = (
        "Each setting is an option, an environment variable and a key of `mergemill.toml`, in this order of "
        "precedence. Secrets have no option."
    )
    header = "| option | variable | meaning | default |\n|---|---|---|---|"
    return "\n".join(["# Settings", "", intro, "", header, *rows, ""])


def write_records() -> str:
    """Return a page with every record and its fields, from the classes and the docstrings below their fields."""
    parts = ["# Records\n\nFrozen pydantic models. A record's id is the sha256 of its JSON without measured fields.\n"]
    for module in (records, environments, verdicts, oracles, worlds, simulations, questions):
        docs = read_field_docstrings(module)
        for name, kind in vars(module).items():
            if inspect.isclass(kind) and issubclass(kind, (Record, Part)) and kind.__module__ == module.__name__:
                parts.append(f"## {name}\n\n{inspect.cleandoc(kind.__doc__ or '')}\n")
                rows = [
                    describe_field(field, info, docs.get((name, field), ""))
                    for field, info in kind.model_fields.items()
                ]
                parts.append("| field | type | meaning |\n|---|---|---|\n" + "\n".join(rows) + "\n")
    return "\n".join(parts)


def describe_field(name: str, info: FieldInfo, meaning: str) -> str:
    """Return a row of the table of fields."""
    measured = " *(measured)*" if MEASURED in info.metadata else ""
    return f"| `{name}` | `{escape_cell(format_type(info.annotation))}` | {escape_cell(meaning)}{measured} |"


def format_type(annotation: object) -> str:
    """Return a type as it is written in the code, without modules."""
    text = annotation.__name__ if inspect.isclass(annotation) else str(annotation)
    return re.sub(r"\b(?:[a-z_]+\.)+", "", text)


def read_field_docstrings(module: object) -> dict[tuple[str, str], str]:
    """Return (class, field) -> the string below the field."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(module)))  # type: ignore[arg-type]
    docstrings = {}
    for node in (definition for definition in tree.body if isinstance(definition, ast.ClassDef)):
        for field, below in zip(node.body, node.body[1:], strict=False):
            match field, below:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    docstrings[node.name, name] = text
    return docstrings


def write_views() -> str:
    """Return a page with every documented view and its columns, read from a new database."""
    parts = ["# Views\n\nWhat `mergemill sql` and any database browser may rely on.\n"]
    with (
        tempfile.TemporaryDirectory() as folder,
        Store.open(f"sqlite:///{Path(folder) / 'new.db'}") as store,
        store.read_transaction() as connection,
    ):
        for name in VIEWS:
            columns = [f"`{row[1]}`" for row in connection.exec_driver_sql(f"PRAGMA table_info({name})")]
            parts.append(f"## `{name}`\n\n{describe_task_columns() if name == 'tasks' else ', '.join(columns)}\n")
    return "\n".join(parts)


def describe_task_columns() -> str:
    """Return a table of the columns of tasks: type, meaning, and the option that filters by them."""
    rows = ["| column | type | meaning | filter |", "|---|---|---|---|"]
    for name, declared in DECLARED.items():
        kind = VALUE_TYPES[name].__name__ + (" or null" if name in NULLABLE else "")
        option = f"`--{name.replace('_', '-')}`" if name in {**WORD_FILTERS, **RANGE_FILTERS} else ""
        rows.append(f"| `{name}` | {kind} | {escape_cell(declared.describe('reference'))} | {option} |")
    return "\n".join(rows)
