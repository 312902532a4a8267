"""Instruction tasks in Harbor's format: what it can carry, and the files of agent, verifier and solution."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

import exporters
from core.errors import InputError
from evaluation.instructions.agent_log import read_agent_log
from exporters.item import ExportItem
from exporters.verifier_archive import list_packed_files, pack_checks, render_requirements
from taskdb.records.instructions import JUDGED, BoundConstraint, InstructionSource, PublishedChecklist
from tests.containers import make_services
from tests.exporters.instructed import DUTIFUL, REPOSITORY, SKILL_READ, TOOL, TURN, bind, make_instructed_task
from tests.exporters.tasks import make_task
from tests.helpers import TinyRepo

SYSTEM = bind("no-sudo", InstructionSource.SYSTEM, "Never use sudo.", "never-command", commands=["sudo"])
REMINDER = bind("no-push", InstructionSource.REMINDER, "Never push.", "never-command", commands=["git push"])
MEMORY = bind("no-cat", InstructionSource.MEMORY, "No cat.", "never-command", commands=["cat"])
JUDGED_ITEM = bind("cause", InstructionSource.TURN, "Name the cause.", JUDGED, question="Is the cause named?")
EXPLAINED = bind("explain-calls", InstructionSource.TURN, "Explain each call.", "calls-explained")


def export(tmp_path: Path, *constraints: BoundConstraint, **changes: Any) -> Path:
    """Export a task with constraints and return its folder."""
    services = make_services(tmp_path)
    task = make_instructed_task(services, tmp_path, constraints, **changes)
    exporters.export_tasks("harbor", [task], {}, tmp_path / "out", services)
    return tmp_path / "out" / task.name


@pytest.mark.parametrize(
    ("constraints", "changes", "needs"),
    [
        ([TURN, SYSTEM], {}, "the system prompt"),
        ([REPOSITORY, REMINDER, MEMORY], {}, "system reminders, memory"),
        ([TURN], {"turns": ("Once more.",)}, "a further turn of the user"),
        ([TURN, JUDGED_ITEM], {}, "a model for a judged check"),
        ([TURN, EXPLAINED], {}, "whole answers for the check calls-explained"),
        ([SYSTEM, JUDGED_ITEM], {"turns": ("More.",)}, "a further turn of the user, the system prompt, a model for"),
    ],
)
def test_a_task_that_needs_more_is_left_out_by_what_it_needs(
    constraints: Sequence[BoundConstraint], changes: dict[str, Any], needs: str, tmp_path: Path
) -> None:
    services = make_services(tmp_path)
    task = make_instructed_task(services, tmp_path, constraints, **changes)
    for format_name in ("harbor", "swebench", "inspect"):
        reason = exporters.FORMATS[format_name].explain_exclusion(task)
        assert reason is not None
        assert reason.startswith(f"its instructions need {needs}") == (format_name == "harbor")
    kept = make_task(services, tmp_path, name="ada__words-2")
    items = [ExportItem(task=exported, certificate=None) for exported in (task, kept)]
    result = exporters.export_items("harbor", items, tmp_path / "out", services)
    (((kind, reason), number),) = result.excluded.items()
    assert (kind, number) == ("instructions", 1)
    assert needs in reason
    with pytest.raises(InputError, match=f"its instructions need {needs}"):
        exporters.export_tasks("harbor", [task], {}, tmp_path / "other", services)


def test_a_published_checklist_is_left_out(tmp_path: Path) -> None:
    published = PublishedChecklist(row="0" * 64, image="bench:1", workdir="/workspace")
    fields = {"dutiful": None, "careless": (), "published": published}
    task = make_instructed_task(make_services(tmp_path), tmp_path, [TURN], **fields)
    reason = exporters.FORMATS["harbor"].explain_exclusion(task)
    assert reason == "a published checklist has neither tests nor a solution"


def test_an_overridden_check_needs_nothing(tmp_path: Path) -> None:
    task = make_instructed_task(
        make_services(tmp_path), tmp_path, [TURN, JUDGED_ITEM.model_copy(update={"overridden_by": TURN.name})]
    )
    assert exporters.FORMATS["harbor"].explain_exclusion(task) is None


def test_instructions_of_the_first_message_alone_need_no_image_of_their_own(tmp_path: Path) -> None:
    folder = export(tmp_path, TURN)
    config = tomllib.loads((folder / "task.toml").read_text())
    assert config["environment"]["docker_image"] == "mergemill/env:words"
    assert not {"skills_dir", "mcp_servers"} & config["environment"].keys()
    assert "guidance" not in (folder / "environment/Dockerfile").read_text()
    assert not (folder / "environment/guidance").exists()


def test_each_source_has_its_place_in_the_agents_image(tmp_path: Path) -> None:
    folder = export(tmp_path, TURN, REPOSITORY, SKILL_READ, TOOL)
    config = tomllib.loads((folder / "task.toml").read_text())
    environment, guidance = config["environment"], folder / "environment/guidance"
    assert "docker_image" not in environment | config["verifier"]["environment"]
    assert environment["skills_dir"] == "/opt/mergemill/guidance/skills"
    (server,) = environment["mcp_servers"]
    assert (server["name"], server["transport"], server["command"]) == ("project", "stdio", "python3")
    assert [path.rpartition("/")[2] for path in server["args"]] == ["mcp_server.py", "mcp_tools.json"]
    assert all((guidance / path.rpartition("/")[2]).is_file() for path in server["args"])
    assert (guidance / "text").read_text() == f"- {REPOSITORY.text}\n"
    assert (guidance / "skills/release/SKILL.md").read_text().startswith('---\nname: "release"\n')
    dockerfile = (folder / "environment/Dockerfile").read_text()
    assert dockerfile.endswith("COPY guidance /opt/mergemill/guidance\nRUN bash /opt/mergemill/guidance/add.sh\n")
    # The texts of the checks and the scripts are the verifier's alone.
    held = b"".join(path.read_bytes() for path in (folder / "environment").rglob("*") if path.is_file())
    assert b"command-after-last-edit" not in held + (folder / "instruction.md").read_bytes()


@pytest.mark.parametrize("own", [{}, {"AGENTS.md": "# Ours\n"}])
@pytest.mark.parametrize("is_link", [False, True])
def test_the_text_is_added_once_to_each_file_that_agents_read(
    own: dict[str, str], is_link: bool, tmp_path: Path
) -> None:
    folder = export(tmp_path, REPOSITORY)
    tree = TinyRepo(tmp_path / "testbed")
    tree.write({"code.py": "", **own})
    if is_link:
        (tree.path / "CLAUDE.md").symlink_to("AGENTS.md")
    tree.commit("Begin", {})
    script = (folder / "environment/guidance/add.sh").read_text()
    local = script.replace("/opt/mergemill/guidance", str(folder / "environment/guidance"))
    local = local.replace("/testbed", str(tree.path)).replace("chown ", "true ")
    subprocess.run(["bash", "-c", local], check=True)
    for name in ("AGENTS.md", "CLAUDE.md", "QWEN.md"):
        assert (tree.path / name).read_text().count(REPOSITORY.text) == 1
    assert (tree.path / "AGENTS.md").read_text().startswith(own.get("AGENTS.md", "- "))
    assert tree.git("status", "--porcelain").split() == (["M", "AGENTS.md"] if own else [])


@pytest.mark.parametrize("own", [{}, {"AGENTS.md": ""}, {"AGENTS.md": "# Ours\n", "CLAUDE.md": "x"}])
def test_the_text_is_no_part_of_the_collected_patch(own: dict[str, str], tmp_path: Path) -> None:
    folder = export(tmp_path, REPOSITORY)
    tree = TinyRepo(tmp_path / "testbed")
    tree.commit("Begin", {"code.py": "a = 1\n", **own})
    guidance = folder / "environment/guidance"
    command = tomllib.loads((folder / "task.toml").read_text())["verifier"]["collect"][0]["command"]
    logs = tmp_path / "logs"
    (logs / "agent").mkdir(parents=True)
    (logs / "artifacts").mkdir()
    (logs / "agent/trajectory.json").write_text("{}")
    cut = guidance / "cut.sh"
    cut.write_text(cut.read_text().replace("/opt/mergemill/guidance", str(guidance)))
    steps = [(guidance / "add.sh").read_text().replace("chown ", "true "), "echo b = 2 >>/testbed/code.py", command]
    for step in steps:
        local = step.replace("/opt/mergemill/guidance", str(guidance)).replace("/testbed", str(tree.path))
        subprocess.run(["bash", "-c", local.replace("/logs/", f"{logs}/")], check=True)
    patch = (logs / "artifacts/model.patch").read_text()
    assert [line for line in patch.splitlines() if line.startswith("+")] == ["+++ b/code.py", "+b = 2"]
    assert patch.count("diff --git") == 1
    assert (logs / "artifacts/trajectory.json").read_text() == "{}"


def test_the_verifier_has_a_context_of_its_own_with_the_checks(tmp_path: Path) -> None:
    folder = export(tmp_path, TURN, REPOSITORY)
    tests = folder / "tests"
    dockerfile = (tests / "Dockerfile").read_text()
    plain = (folder / "environment/Dockerfile").read_text().partition("\n# Instructions")[0]
    assert dockerfile.startswith(plain)
    assert dockerfile.endswith("COPY . /tests\nRUN rm /tests/tree.tar.gz\n")
    assert (tests / "tree.tar.gz").samefile(folder / "environment/tree.tar.gz")
    checks = json.loads((tests / "checks.json").read_text())
    assert (checks["workdir"], checks["suffixes"][0]) == ("/testbed", ".py")
    assert [constraint["name"] for constraint in checks["oracle"]["constraints"]] == [TURN.name, REPOSITORY.name]
    assert (tests / "test.sh").stat().st_mode & 0o111
    assert (tests / "careless" / f"{TURN.name}.json").is_file()
    assert f"tree-sitter-bash=={version('tree-sitter-bash')}\n" in (tests / "requirements.txt").read_text()
    command = tomllib.loads((folder / "task.toml").read_text())["verifier"]["collect"][0]["command"]
    assert 'cp -P -- "$log" "$kept"' in command


def test_the_solution_has_the_log_of_the_dutiful_script(tmp_path: Path) -> None:
    folder = export(tmp_path, TURN, REPOSITORY)
    log = read_agent_log((folder / "solution/trajectory.json").read_bytes())
    assert len(log.answers) == len(DUTIFUL)
    assert REPOSITORY.text in log.given
    script = (folder / "solution/solve.sh").read_text()
    tree = TinyRepo(tmp_path / "testbed")
    tree.commit("Begin", {"words.py": "def count(words):\n    return len(words.split(' '))\n"})
    local = script.replace("cd /testbed", f"cd {tree.path}").replace("/logs/agent", str(tmp_path / "agent"))
    subprocess.run(["bash", "-c", local], check=True)
    assert (tmp_path / "agent/trajectory.json").read_bytes() == (folder / "solution/trajectory.json").read_bytes()
    assert "split()" in (tree.path / "words.py").read_text()


def test_the_packed_checks_import_nothing_from_here(tmp_path: Path) -> None:
    (tmp_path / "checks.pyz").write_bytes(pack_checks())
    program = (
        "import sys; sys.path = [path for path in sys.path if 'site-packages' in path or '/lib/python' in path];"
        f"sys.path.insert(0, {str(tmp_path / 'checks.pyz')!r});"
        "import evaluation.instructions.log_grader;"
        "print(*sorted({m.__file__ for m in sys.modules.values() if getattr(m, '__file__', None)}), sep='\\n')"
    )
    ran = subprocess.run(
        [sys.executable, "-I", "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    files = ran.stdout.splitlines()
    here = str(Path(exporters.__file__).parents[1])
    assert [path for path in files if path.startswith(here) and "site-packages" not in path] == []
    packed = {path.partition("site-packages/")[2].partition("/")[0].removesuffix(".py") for path in files}
    names = {line.partition("==")[0].replace("-", "_") for line in render_requirements().splitlines()}
    known = names | {"yaml", "typing_extensions", "typing_inspection", "annotated_types", "pydantic_core", "markupsafe"}
    assert {name for name in packed if name and not name.startswith("_")} <= known


def test_compiled_files_are_not_packed(tmp_path: Path) -> None:
    for name in ("a.py", "part/b.j2", "__pycache__/a.pyc", "part/__pycache__/b.pyc"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(name.encode())
    assert sorted(list_packed_files(tmp_path)) == [("a.py", b"a.py"), ("part/b.j2", b"part/b.j2")]
