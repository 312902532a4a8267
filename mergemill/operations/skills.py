"""Check of a user's own skill files."""

from __future__ import annotations

from pathlib import Path

from builders.repair.skill_files import list_skill_files, read_skills
from core.errors import InputError


def check_skill_files(folder: Path) -> tuple[int, int, list[InputError]]:
    """Read the skill files of a folder; return their number, the number of valid skills, and an error per bad file.

    Raises:
        InputError: there is no such folder.
    """
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder")
    files = list_skill_files(folder)
    errors, n_valid = [], 0
    for path in files:
        try:
            n_valid += len(read_skills(path))
        except InputError as error:
            errors.append(error)
    return len(files), n_valid, errors
