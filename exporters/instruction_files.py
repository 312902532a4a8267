"""Instruction tasks in a bundle: which a format with an agent's log can carry, and the files of agent and verifier.

The agent's image gets the instructions in the files that agents read by themselves, outside of the base commit and of
the patch that is collected. The verifier's image gets a Python of its own, with the grammars that the checks read.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from dockerfiles.render import UV_VERSION
from evaluation.instructions.agent_log import write_agent_log
from evaluation.instructions.guidance_files import (
    MCP_SERVER,
    SERVER_SCRIPT,
    SERVER_TOOLS,
    build_skill_files,
    build_tool_files,
)
from evaluation.instructions.log_grader import CHECKS_FILE, LOG
from evaluation.instructions.repository_text import render_addition, render_cut, render_text
from evaluation.instructions.submission import InstructionSubmission, read_submission
from evaluation.instructions.wording import SOURCE_NAMES, gather_texts
from exporters import task_files
from exporters.verifier_archive import pack_checks, render_requirements
from languages.registry import LANGUAGES
from taskdb.records.instructions import JUDGED, InstructionOracle, InstructionSource

if TYPE_CHECKING:
    from backends.services import Services
    from taskdb.records import Task

CARRIED_SOURCES = frozenset((InstructionSource.REPOSITORY, InstructionSource.SKILL, InstructionSource.TOOL))
"""Sources besides the first message of the user that Harbor has a place for, whatever the agent."""
UNDECIDED_CHECKS = frozenset(("calls-explained",))
"""Checks of whole answers: logs of some agents have a step for each call."""
REPOSITORY_FILES = ("AGENTS.md", "CLAUDE.md", "QWEN.md")
"""Files of a repository that agents read by themselves."""
READERS = ("claude-code", "codex", "opencode", "qwen-code")
"""Names, in their logs, of the agents whose programs were seen to read one of REPOSITORY_FILES."""
GUIDANCE_FOLDER = "/opt/mergemill/guidance"
SKILLS_FOLDER = f"{GUIDANCE_FOLDER}/skills"
AGENT_LOG = "/logs/agent/trajectory.json"
"""Log that an agent of Harbor writes."""
DUTIFUL = "dutiful"
"""Name of the agent of the gold submission's log."""

ADD_FILES = """
# Instructions for the agent, in files that are no part of the base commit.
COPY guidance {folder}
{run}"""
ADD_TEXT = "RUN bash {folder}/add.sh\n"
ADD_CHECKS = """
# The checks of instructions: a Python of their own, one that is here or that uv fetches, and the grammars.
COPY requirements.txt /opt/mergemill/checks/requirements.txt
RUN command -v uv > /dev/null || python3 -m pip install --quiet --no-cache-dir --root-user-action=ignore uv=={uv} || \
{{ apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3-venv && \
python3 -m venv /opt/mergemill/uv && /opt/mergemill/uv/bin/pip install --quiet --no-cache-dir uv=={uv} && \
ln -s /opt/mergemill/uv/bin/uv /usr/local/bin/uv; }}
RUN cd /opt/mergemill/checks && export UV_NO_CACHE=1 UV_LINK_MODE=copy UV_PYTHON_INSTALL_DIR=$PWD/python && \
uv --no-config venv --quiet --python '>=3.11' env && \
uv --no-config pip install --quiet --python env/bin/python --requirement requirements.txt
COPY . /tests
RUN rm /tests/{tree}
"""
_ADD_TEXTS = """\
#!/bin/bash
# Appends the instructions to the files that agents read; to a file with several names once.
set -e
cd {workdir}
declare -A added
"""
_ADD_TEXT = """\
file=$(readlink -m -- {path})
if [ -z "${{added[$file]:-}}" ]; then
added[$file]=1
mkdir -p {folder}
cp {guidance}/text {folder}/text
(
{addition})
fi
"""
_CUT_TEXTS = """\
#!/bin/bash
# Cuts the instructions out of git's index, after the tree was added to it. $1: folder to work in.
cp -r {guidance}/repository "$1/repository" || exit
"""
_DIFF = "git diff --cached --binary"
_COLLECT_LOG = """
log={log}; kept={kept}; rm -rf -- "$kept"; [ ! -f "$log" ] || [ -L "$log" ] || cp -P -- "$log" "$kept"
"""


def explain_uncarried(oracle: InstructionOracle) -> str | None:
    """Return the needs of an instruction task that Harbor does not meet; None where it meets all."""
    if oracle.published is not None:
        return "a published checklist has neither tests nor a solution"
    missing = oracle.sources - CARRIED_SOURCES
    needs = ["a further turn of the user"] if InstructionSource.TURN in missing else []
    needs += [SOURCE_NAMES[source] for source in InstructionSource if source in missing - {InstructionSource.TURN}]
    checks = {constraint.check for constraint in oracle.constraints if not constraint.overridden_by}
    needs += ["a model for a judged check"] if JUDGED in checks else []
    needs += [f"whole answers for the check {check}" for check in sorted(checks & UNDECIDED_CHECKS)]
    return f"its instructions need {', '.join(needs)}, which Harbor has no place for" if needs else None


def build_guidance_files(task: Task, oracle: InstructionOracle) -> dict[str, bytes]:
    """Return path -> content of the files that GUIDANCE_FOLDER of the agent's image has; none for none."""
    files = build_skill_files("skills", oracle.skills)
    files |= {path.removeprefix("/"): content for path, content in build_tool_files("", oracle.tools).items()}
    if text := gather_texts(oracle)[InstructionSource.REPOSITORY]:
        files |= {"text": render_text(text), **_render_scripts(task.require_plan().workdir)}
    return files


def _render_scripts(workdir: str) -> dict[str, bytes]:
    adding, cutting = _ADD_TEXTS.format(workdir=shlex.quote(workdir)), _CUT_TEXTS.format(guidance=GUIDANCE_FOLDER)
    for path in REPOSITORY_FILES:
        folder = f"{GUIDANCE_FOLDER}/repository/{path}"
        addition = render_addition(workdir, path, folder)
        adding += _ADD_TEXT.format(path=path, folder=folder, guidance=GUIDANCE_FOLDER, addition=addition)
        cutting += render_cut(f'"$1"/repository/{path}') + "\n"
    adding += "chown -R -h --from=0 1000:1000 .\n"
    return {"add.sh": adding.encode(), "cut.sh": cutting.encode()}


def extend_agent_dockerfile(text: str, guidance: Collection[str]) -> str:
    """Return the Dockerfile of the agent's image with the files of `guidance`, which lie in a folder of that name."""
    run = ADD_TEXT.format(folder=GUIDANCE_FOLDER) if "add.sh" in guidance else ""
    return text + ADD_FILES.format(folder=GUIDANCE_FOLDER, run=run) if guidance else text


def extend_verifier_dockerfile(text: str, tree: str) -> str:
    """Return the Dockerfile of the verifier's image: the environment, the checks, and the files of the verifier.

    Args:
        text: Dockerfile of the environment.
        tree: name of the archive of the tree in the build context.
    """
    return text + ADD_CHECKS.format(uv=UV_VERSION, tree=tree)


def describe_guidance(guidance: Collection[str]) -> dict[str, Any]:
    """Return the keys of Harbor's environment that name skills and tools."""
    keys: dict[str, Any] = {}
    if any(path.startswith("skills/") for path in guidance):
        keys["skills_dir"] = SKILLS_FOLDER
    if SERVER_SCRIPT in guidance:
        arguments = [f"{GUIDANCE_FOLDER}/{name}" for name in (SERVER_SCRIPT, SERVER_TOOLS)]
        keys["mcp_servers"] = [
            {"name": MCP_SERVER, "transport": "stdio", "command": "python3", "args": arguments},
        ]
    return keys


def render_collection(command: str, guidance: Collection[str]) -> str:
    """Return the command that collects the patch, without the texts of the instructions, and the agent's log."""
    if "cut.sh" in guidance:
        cut = f'git update-ref refs/heads/main "$base" && bash {GUIDANCE_FOLDER}/cut.sh "$made" || exit'
        command = command.replace(_DIFF, f"{cut}\n{_DIFF}")
    return (command + _COLLECT_LOG.format(log=AGENT_LOG, kept=LOG)).strip()


def build_check_files(task: Task, oracle: InstructionOracle, services: Services) -> Mapping[str, bytes]:
    """Return path -> content of the verifier's files, besides the Dockerfile and what it copies.

    All artifacts of the task are among them, so that a bundle can be read back.
    """
    get = services.artifacts.get
    language = LANGUAGES.get(task.language)
    checks = {
        "oracle": oracle.model_dump(mode="json"),
        "workdir": task.require_plan().workdir,
        "suffixes": language.suffixes if language else (),
        "readers": READERS,
    }
    return {
        task_files.RECORD_FILE: task_files.encode_record(task),
        "test.patch": get(task.test_patch),
        "gold.patch": get(task.gold_patch),
        **({"setup.patch": get(task.setup_patch)} if task.setup_patch else {}),
        **task_files.build_grader_files(task, services),
        "dutiful.json": get(oracle.require_dutiful()),
        **{f"careless/{script.constraint}.json": get(script.submission) for script in oracle.careless},
        CHECKS_FILE: (json.dumps(checks, indent=1) + "\n").encode(),
        "checks.pyz": pack_checks(),
        "requirements.txt": render_requirements().encode(),
        "test.sh": task_files.read_container_file("instructions.sh"),
    }


def load_dutiful(oracle: InstructionOracle, services: Services) -> InstructionSubmission:
    """Return the submission that solves the task and follows every instruction."""
    return read_submission(services.artifacts.get(oracle.require_dutiful()))


def render_log(oracle: InstructionOracle, submission: InstructionSubmission) -> bytes:
    """Return the log of a script's submission, as if the texts of the repository had been given to it."""
    given = gather_texts(oracle)[InstructionSource.REPOSITORY]
    return write_agent_log(submission.list_answers(), agent=DUTIFUL, given=[given] if given else [])
