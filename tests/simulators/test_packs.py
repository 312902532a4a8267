"""Domain packs: those shipped, one of the user's, and a line of error for each way in which one can be malformed."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from core.errors import InputError
from simulators.conversation import DialogueTurn, FunctionCall, TurnRole
from simulators.domains.pack import MAX_POLICY_CHARACTERS, PACKS_FOLDER, list_packs, load_pack
from simulators.exports.formats import render_hermes_turn
from simulators.options import PROFILES
from simulators.post_processing.system_prompt import render_system
from simulators.prompting import ConversationPrompts

TOOL = {"name": "lamp.switch", "description": "Switch a lamp.", "parameters": {"type": "object", "properties": {}}}
TAU2_TOOLS = {
    "airline": 14,
    "retail": 15,
}


def write_pack(folder: Path, *, tools: Any = None, policy: str = "Switch lamps.", **files: str) -> Path:
    """Write a pack; `files`: stem of a TOML file -> its text."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tools.json").write_text(json.dumps([TOOL] if tools is None else tools))
    (folder / "policy.md").write_text(policy)
    for stem, text in files.items():
        (folder / f"{stem}.toml").write_text(text)
    return folder


@pytest.mark.parametrize("name", ["airline", "office", "os", "retail", "swe"])
def test_a_shipped_pack_is_whole(name: str) -> None:
    pack = load_pack(name)
    assert pack.name == name
    assert len(pack.policy) > 400
    assert pack.format.rules
    for tool in pack.tools.values():
        jsonschema.Draft202012Validator.check_schema(tool["parameters"])
        assert set(tool["parameters"]["required"]) <= set(tool["parameters"]["properties"])
    arguments = {name for tool in pack.tools.values() for name in collect_names(tool["parameters"])}
    assert {rule.argument for rule in pack.rules} <= arguments
    assert pack.id_arguments <= arguments
    assert len(pack.tools) == TAU2_TOOLS.get(name, len(pack.tools))


def collect_names(schema: Any) -> set[str]:
    if isinstance(schema, list):
        return {name for item in schema for name in collect_names(item)}
    if not isinstance(schema, dict):
        return set()
    inner = {name for value in schema.values() for name in collect_names(value)}
    return inner | set(schema.get("properties", {}))


def test_the_list_of_packs_is_the_folders(tmp_path: Path) -> None:
    assert list_packs() == ["airline", "office", "os", "retail", "swe"]
    with pytest.raises(InputError, match="there is no domain pack shop") as raised:
        load_pack("shop")
    assert "airline, office, os, retail, swe" in raised.value.advice


def test_a_pack_of_ones_own_has_markers_rules_and_prompts_of_its_own(tmp_path: Path) -> None:
    form = 'parallel_calls = true\nthink = "never"\nrules = ["Lamps are lamps."]\n[markers]\nhuman = "USER>"\n'
    folder = write_pack(tmp_path / "lamps", format=form, validators='ids = ["lamp"]\n')
    (folder / "prompts").mkdir()
    (folder / "prompts" / "system.md.j2").write_text("Write.")
    (folder / "prompts" / "user.md.j2").write_text("{{ mark }}\n{{ example }}\n{{ mark }}\n")
    pack = load_pack(str(folder))
    assert (pack.name, pack.format.parallel_calls, pack.format.think) == ("lamps", True, "never")
    assert pack.markers[TurnRole.HUMAN] == "USER>"
    assert ConversationPrompts(pack, "conversation-1").version == "lamps/prompts"


def test_a_version_changes_with_what_a_pack_holds(tmp_path: Path) -> None:
    first = load_pack(str(write_pack(tmp_path / "lamps")))
    assert load_pack(str(tmp_path / "lamps")).version == first.version
    second = load_pack(str(write_pack(tmp_path / "lamps", policy="Switch no lamps.")))
    assert second.version != first.version


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tools": []}, "is no list of tools"),
        ({"tools": {"lamp": 1}}, "is no list of tools"),
        ({"tools": [{"description": "x", "parameters": {}}]}, "tool 1 has no name"),
        ({"tools": [{"name": "lamp", "description": "x"}]}, "the tool lamp has no schema of its parameters"),
        (
            {"tools": [{"name": "lamp", "description": "x", "parameters": {"type": "lamp"}}]},
            "schema of lamp is malformed",
        ),
        (
            {"tools": [{"name": "lamp", "description": "x", "parameters": {"type": "array"}}]},
            "is not that of an object",
        ),
        ({"tools": [{"name": "lamp", "description": " ", "parameters": {}}]}, "the tool lamp has no description"),
        ({"tools": [TOOL, TOOL]}, "there are two tools lamp.switch"),
        ({"policy": " \n"}, "policy.md is empty"),
        ({"policy": "x" * (MAX_POLICY_CHARACTERS + 1)}, "has 60001 characters, and 60000 are allowed"),
        ({"format": "turns = 3\n"}, "format.toml: turns: extra inputs are not permitted"),
        ({"format": "think = 'always'\n"}, "format.toml: think: input should be"),
        ({"format": "rules = \n"}, "format.toml is no TOML"),
        ({"format": "[markers]\nhuman = 'A'\nassistant = 'AB'\n"}, "markers: each must be distinct"),
        ({"validators": "[[rules]]\nprefix = '#'\n"}, "validators.toml: rules.0.argument: field required"),
        ({"validators": "[[rules]]\nargument = 'x'\npattern = '('\n"}, "the pattern of x is malformed"),
    ],
)
def test_a_malformed_pack_is_one_line(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    folder = write_pack(tmp_path / "lamps", **changes)
    with pytest.raises(InputError) as raised:
        load_pack(str(folder))
    line = raised.value.format_line()
    assert message in line
    assert "\n" not in line
    assert "docs/guide/simulate/simulate.md" in line


@pytest.mark.parametrize("name", ["tools.json", "policy.md"])
def test_a_pack_without_a_file_names_it(tmp_path: Path, name: str) -> None:
    folder = write_pack(tmp_path / "lamps")
    (folder / name).unlink()
    with pytest.raises(InputError, match=f"{name}: No such file"):
        load_pack(str(folder))


def test_a_prompt_folder_without_a_template_names_it(tmp_path: Path) -> None:
    folder = write_pack(tmp_path / "lamps")
    (folder / "prompts").mkdir()
    with pytest.raises(InputError, match=r"has no system\.md\.j2"):
        load_pack(str(folder))


@pytest.mark.parametrize(
    ("target", "before", "after"),
    [
        ("qwen", "# Tools\n", '\n{"name": <function-name>, "arguments": <args-json-object>}\n'),
        ("llama", "Given the following functions, ", '"parameters": dictionary of argument name and its value}'),
    ],
)
def test_a_system_prompt_has_policy_and_tools_in_the_form_of_the_target(
    tmp_path: Path, target: str, before: str, after: str
) -> None:
    pack = load_pack(str(write_pack(tmp_path / "lamps")))
    text = render_system(pack, target)
    assert text.startswith(f"Switch lamps.\n\n{before}")
    assert f"\n{json.dumps({'type': 'function', 'function': TOOL})}" in text
    assert after in text
    assert ("<tools>\n" in text) == (target == "qwen")


@pytest.mark.parametrize(
    ("profile", "target", "text"),
    [
        ("default", "qwen", 'Off.\n<tool_call>\n{"name": "lamp", "arguments": {"on": "ü"}}\n</tool_call>'),
        ("default", "llama", 'Off.\n{"name": "lamp", "parameters": {"on": "ü"}}'),
        ("simia", "llama", 'Off.<tool_call>\n{"name": "lamp", "arguments": {"on": "\\u00fc"}}\n</tool_call>\n'),
    ],
)
def test_calls_are_written_as_the_target_does_but_in_simia(profile: str, target: str, text: str) -> None:
    call = FunctionCall(name="lamp", arguments={"on": "ü"})
    turn = DialogueTurn(role=TurnRole.FUNCTION_CALL, text="Off.", calls=(call,))
    assert render_hermes_turn(turn, replace(PROFILES[profile], target=target)) == text


def copy_pack(folder: Path) -> Path:
    return Path(shutil.copytree(PACKS_FOLDER / "retail", folder))


def test_a_copy_of_a_shipped_pack_is_the_same_pack(tmp_path: Path) -> None:
    assert load_pack(str(copy_pack(tmp_path / "retail"))).version == load_pack("retail").version
