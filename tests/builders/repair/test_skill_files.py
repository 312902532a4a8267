from __future__ import annotations

from pathlib import Path

import pytest

from builders.repair.skills import OURS, load, read
from mergemill.errors import InputError
from tests.cli import mergemill

GOOD = """\
---
when:
  languages: [python]
  log: 'acme\\.h: No such file|No module named .(?P<module>acme_\\w+)'
do:
  - {edit: add-dependency, requirement: 'acme-sdk'}
---
Our SDK is on the index of the company.
"""


def test_a_folder_of_ones_own_wins_by_name(tmp_path: Path) -> None:
    (tmp_path / "acme.md").write_text(GOOD)
    (tmp_path / "header-ffi.md").write_text(GOOD)
    (tmp_path / "README.md").write_text("no skill")
    known = {skill.name: skill for skill in load(OURS, tmp_path)}
    assert known["acme"].body == "Our SDK is on the index of the company."
    assert known["header-ffi"].path.parent == tmp_path
    assert len(known) == len(load(OURS)) + 1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("---\nwhen", "when"), r"a\.md:1: a skill begins with YAML"),
        (("languages: [python]", "languages: [cobol]"), r"a\.md:3: when\.languages: .*cobol"),
        (("(?P<module>", "(?P<module"), r"a\.md:4: when\.log: .*no regular expression"),
        (("add-dependency", "add-magic"), r"a\.md:\d+: do: .*add-magic"),
        (("'acme-sdk'", "'{package}'"), r"a\.md:\d+: \{package\} is no group"),
        (("'acme-sdk'", "'{module|table}'"), r"a\.md:\d+: .*asks for a `table`"),
        (("requirement", "requirements"), r"a\.md:\d+: do: .*requirement"),
        (("  log:", "  logs:"), r"a\.md:\d+: when\.logs: Extra inputs"),
        (("do:\n", "do: [\n"), r"a\.md:\d+: "),
        (("Our SDK is on the index of the company.\n", ""), r"there is no text"),
    ],
)
def test_what_is_wrong_with_a_file_is_told_with_its_line(tmp_path: Path, change: tuple[str, str], said: str) -> None:
    path = tmp_path / "a.md"
    assert change[0] in GOOD
    path.write_text(GOOD.replace(*change))
    with pytest.raises(InputError, match=said):
        read(path)


def test_the_command_lists_shows_and_checks(tmp_path: Path) -> None:
    (tmp_path / "acme.md").write_text(GOOD)
    assert "all good" in mergemill("skills", "check", str(tmp_path), cwd=tmp_path).out
    assert "acme" in mergemill("skills", "list", "--skills", str(tmp_path), cwd=tmp_path).out
    assert "libffi-dev" in mergemill("skills", "show", "header-ffi", cwd=tmp_path).out
    (tmp_path / "bad.md").write_text("nothing")
    wrong = mergemill("skills", "check", str(tmp_path), cwd=tmp_path)
    assert wrong.code == 3
    assert "bad.md:1:" in wrong.err
