from __future__ import annotations

from pathlib import Path

import pytest

from builders.repair.edits import dump_edit, parse_edits
from builders.repair.skill_files import BUILTIN_SKILLS, format_skill, load_skills, read_skills
from core.errors import InputError
from tests.cli import run_mergemill

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
TABLE = """\
when: {languages: [python]}
pattern: '{match}: No such file or directory'
do: {edit: add-system-package, name: '{install}'}
skills:
  header-acme:
    match: ['acme\\.h', 'acme/\\w+\\.h']
    log: 'cannot find -lacme'
    install: [libacme-dev, pkg-config]
    text: The SDK of the company.
  header-other:
    when: {versions: ['3.11']}
    log: 'no SDK'
    install: sdk
    text: Another SDK.
"""


def test_a_skill_of_the_users_folder_replaces_the_built_in_one_of_that_name(tmp_path: Path) -> None:
    (tmp_path / "acme.md").write_text(GOOD)
    (tmp_path / "header-ffi.md").write_text(GOOD)
    (tmp_path / "README.md").write_text("no skill")
    by_name = {skill.name: skill for skill in load_skills(BUILTIN_SKILLS, tmp_path)}
    assert by_name["acme"].body == "Our SDK is on the index of the company."
    assert by_name["header-ffi"].path.parent == tmp_path
    assert len(by_name) == len(load_skills(BUILTIN_SKILLS)) + 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("---\nwhen", "when"), r"a\.md:1: a skill begins with YAML"),
        (("languages: [python]", "languages: [cobol]"), r"a\.md:3: when\.languages: .*cobol"),
        (("(?P<module>", "(?P<module"), r"a\.md:4: when\.log: .*no regular expression"),
        (("add-dependency", "add-magic"), r"a\.md:\d+: do: .*add-magic"),
        (("'acme-sdk'", "'{package}'"), r"a\.md:\d+: \{package\} is no group"),
        (("'acme-sdk'", "'{module|table}'"), r"a\.md:\d+: .*refers to a `table`"),
        (("requirement", "requirements"), r"a\.md:\d+: do: .*requirement"),
        (("  log:", "  logs:"), r"a\.md:\d+: when\.logs: Extra inputs"),
        (("do:\n", "do: [\n"), r"a\.md:\d+: "),
        (("Our SDK is on the index of the company.\n", ""), r"there is no text"),
    ],
)
def test_an_invalid_file_is_reported_with_its_line(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    path = tmp_path / "a.md"
    assert change[0] in GOOD
    path.write_text(GOOD.replace(*change))
    with pytest.raises(InputError, match=message):
        read_skills(path)


def test_each_row_of_a_table_is_a_skill_and_can_be_written_as_a_file(tmp_path: Path) -> None:
    (tmp_path / "ours.yaml").write_text(TABLE)
    acme, other = load_skills(tmp_path)
    assert acme.header.when.languages == ("python",)
    assert acme.header.when.log == (
        r"acme\.h: No such file or directory|acme/\w+\.h: No such file or directory|cannot find -lacme",
    )
    assert [dump_edit(edit)["name"] for edit in parse_edits(acme.header.do)] == ["libacme-dev", "pkg-config"]
    assert (other.header.when.languages, other.header.when.versions) == (("python",), ("3.11",))
    file = tmp_path / "written" / "header-acme.md"
    file.parent.mkdir()
    file.write_text(format_skill(acme))
    (written,) = read_skills(file)
    assert (written.header, written.body) == (acme.header, acme.body)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("skills:", "rows:"), r"ours\.yaml:\d+: skills: Field required"),
        (("add-system-package", "add-magic"), r"ours\.yaml:5: do: .*add-magic"),
        (("'no SDK'", "'no (SDK'"), r"ours\.yaml:12: when\.log: .*no regular expression"),
        (("header-other", "Header_Other"), r"ours\.yaml:10: a skill's name is lowercase"),
        (("versions", "version"), r"ours\.yaml:11: when\.version: Extra inputs"),
        (("    install: sdk\n", ""), r"ours\.yaml:\d+: skills\.header-other\.install: Field required"),
    ],
)
def test_an_invalid_table_is_reported_with_its_line(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    path = tmp_path / "ours.yaml"
    assert change[0] in TABLE
    path.write_text(TABLE.replace(*change))
    with pytest.raises(InputError, match=message):
        read_skills(path)


def test_two_skills_of_one_name_in_a_folder_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "header-acme.md").write_text(GOOD)
    (tmp_path / "ours.yaml").write_text(TABLE)
    with pytest.raises(InputError, match=r"ours\.yaml: the skill header-acme is in header-acme\.md as well"):
        load_skills(tmp_path)


def test_the_commands_list_show_and_check_skills(tmp_path: Path) -> None:
    (tmp_path / "acme.md").write_text(GOOD)
    (tmp_path / "ours.yaml").write_text(TABLE)
    assert "3 skills, all valid" in run_mergemill("skills", "check", str(tmp_path), cwd=tmp_path).stdout
    assert "acme" in run_mergemill("skills", "list", "--skills", str(tmp_path), cwd=tmp_path).stdout
    assert "libffi-dev" in run_mergemill("skills", "show", "header-ffi", cwd=tmp_path).stdout
    (tmp_path / "bad.md").write_text("nothing")
    invalid = run_mergemill("skills", "check", str(tmp_path), cwd=tmp_path)
    assert invalid.exit_code == 3
    assert "bad.md:1:" in invalid.stderr
