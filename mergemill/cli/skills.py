"""`skills`: what mergemill knows of builds that fail, and whether files of your own are skills."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from mergemill.cli import output
from mergemill.cli.options import Json, with_settings
from mergemill.config import Settings
from mergemill.errors import InputError

skills = typer.Typer(help="List and check skills: what mends builds that fail.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(skills, name="skills")


@skills.command("list")
@with_settings("skills")
def list_skills(as_json: Json = False, *, settings: Settings) -> None:
    """List skills: languages, what they look for, what they do."""
    found = [_row(skill) for skill in _loaded(settings)]
    output.rows(found, ("name", "languages", "edits", "from"), as_lines=as_json, nothing="no skills")


@skills.command("show")
@with_settings("skills")
def show(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A skill's name.")],
    as_json: Json = False,
    *,
    settings: Settings,
) -> None:
    """Show one skill: when it applies, what it edits, what it tells."""
    known = {skill.name: skill for skill in _loaded(settings)}
    if name not in known:
        near = ", ".join(other for other in known if name.partition("-")[0] in other)
        raise InputError(f"there is no skill {name}", advice=f"perhaps {near}" if near else "mergemill skills list")
    if as_json:
        skill = known[name]
        output.as_json(_row(skill) | {"header": skill.header.model_dump(mode="json"), "text": skill.body})
    else:
        output.text(known[name].path.read_text(encoding="utf-8").rstrip())


@skills.command("check")
def check(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder of files NAME.md.")],
) -> None:
    """Check your own skills: a line for each file that is none."""
    from builders.repair.skills import read  # noqa: PLC0415 - reading commands need no builders

    if not folder.is_dir():
        raise InputError(f"{folder} is no folder")
    wrong, good = [], 0
    for path in sorted(folder.glob("*.md")):
        if path.name == "README.md":
            continue
        try:
            read(path)
            good += 1
        except InputError as error:
            wrong.append(error.line())
    for line in wrong:
        output.tell(line)
    if wrong:
        raise InputError(f"{len(wrong)} of {good + len(wrong)} files are no skills", advice="docs/skills.md")
    output.text(f"{good} skills, all good")


def _loaded(settings: Settings) -> Any:
    from builders.repair.skills import OURS, load  # noqa: PLC0415

    return load(OURS, *([settings.skills] if settings.skills else ()))


def _row(skill: Any) -> dict[str, Any]:
    from builders.repair.skills import OURS  # noqa: PLC0415

    kinds = dict.fromkeys(str(one["edit"]) for one in skill.header.do)
    return {
        "name": skill.name,
        "languages": " ".join(skill.header.when.languages) or "any",
        "edits": " ".join(kinds) or "tells",
        "from": "mergemill" if skill.path.parent == OURS else str(skill.path.parent),
    }
