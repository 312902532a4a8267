"""`mergemill skills`: known build failures with their repairs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from core.errors import InputError
from core.settings.tasks import BuildSettings
from core.text import format_count
from mergemill.cli import output
from mergemill.cli.commands import COMMANDS
from mergemill.cli.options import JsonOption, with_settings

app = typer.Typer(help=COMMANDS["skills"].summary, add_completion=False)


@app.command("list")
@with_settings("skills")
def list_skills(as_json: JsonOption = False, *, build: BuildSettings) -> None:
    """List skills with their languages, edits and origin.

    Example: mergemill skills list --skills my-skills
    """
    rows = [_build_row(skill) for skill in _load_skills(build)]
    output.print_rows(rows, ("name", "languages", "edits", "from"), as_lines=as_json, nothing="no skills")


@app.command("show")
@with_settings("skills")
def show_skill(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the skill.")],
    as_json: JsonOption = False,
    *,
    build: BuildSettings,
) -> None:
    """Show one skill: its conditions, its edits and its text.

    Example: mergemill skills show header-ffi
    """
    from builders.repair.skill_files import format_skill  # noqa: PLC0415 - reading commands need no builders

    by_name = {skill.name: skill for skill in _load_skills(build)}
    if name not in by_name:
        near = ", ".join(other for other in by_name if name.partition("-")[0] in other)
        raise InputError(f"there is no skill {name}", advice=f"perhaps {near}" if near else "mergemill skills list")
    skill = by_name[name]
    if as_json:
        output.print_json(_build_row(skill) | {"header": skill.header.model_dump(mode="json"), "text": skill.body})
    else:
        output.print_text(format_skill(skill))


@app.command("check")
def check_skills(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder of files NAME.md and tables *.yaml.")],
) -> None:
    """Check a folder of your own skills: one line for each invalid file.

    Example: mergemill skills check my-skills
    """
    from mergemill.operations.skills import check_skill_files  # noqa: PLC0415 - only this command reads skill files

    n_files, n_valid, errors = check_skill_files(folder)
    for error in errors:
        output.print_message(error.format_line())
    if errors:
        raise InputError(f"{len(errors)} of {n_files} skill files are invalid", advice="docs/guide/build/skills.md")
    output.print_text(f"{format_count(n_valid, 'skill')}, all valid")


def _load_skills(build: BuildSettings) -> Any:
    from builders.repair.skill_files import BUILTIN_SKILLS, load_skills  # noqa: PLC0415

    return load_skills(BUILTIN_SKILLS, *([build.skills] if build.skills else ()))


def _build_row(skill: Any) -> dict[str, Any]:
    from builders.repair.skill_files import BUILTIN_SKILLS  # noqa: PLC0415

    edits = dict.fromkeys(str(edit["edit"]) for edit in skill.header.do)
    return {
        "name": skill.name,
        "languages": " ".join(skill.header.when.languages) or "any",
        "edits": " ".join(edits) or "text only",
        "from": "mergemill" if skill.path.parent == BUILTIN_SKILLS else str(skill.path.parent),
    }
