"""EnvScaler's three files: environments, scenarios and trajectories, in the fields of RUC-NLPIR/EnvScaler.

`environments.json` is an object by `env_id`, as its environments for ROLL load it; `scenarios.json` and
`trajectories.json` are lists. Further fields, which its readers ignore, carry the facts that these cannot hold, so that
an import gives the same worlds and scenarios.
"""

from __future__ import annotations

import ast
import json
import re
from typing import Any

from worlds.bundles.contents import ENVIRONMENT, BundledScenario, BundledWorld, Row, WorldConversation
from worlds.bundles.envscaler_checks import build_items
from worlds.program.analysis import ToolKind
from worlds.program.tree import ProgramTree, parse_program

OPERATION_TYPES = {ToolKind.QUERY: "query", ToolKind.CHANGE: "modify"}
_RULES = re.compile(r"^##\s*Rules\s*$", re.MULTILINE)


def build_environment(world: BundledWorld) -> Row:
    """Return the item of a world."""
    definition, analysis, contents = world.definition, world.analysis, world.contents
    summary, introduction, rules = split_documentation(definition.documentation, definition.name)
    tree = parse_program(definition.program)
    return {
        "env_id": definition.name,
        "environment_summary": summary,
        "environment_introduction": introduction,
        "state_space_definition": list_entities(tree),
        "constraints_rules": rules,
        "operation_list": [
            {
                "operation_name": tool.name,
                "operation_description": tool.description,
                "operation_type": OPERATION_TYPES[analysis.kinds[tool.name]],
            }
            for tool in analysis.tools
        ],
        "env_class_name": analysis.class_name,
        "env_class_code": definition.program,
        "env_class_def": extract_class_definition(tree, definition.program),
        "env_structure": build_structure(world, tree),
        "tools": world.function_tools,
        "documentation": definition.documentation,
        "initial_states": dict(definition.states),
        "environment": ENVIRONMENT,
        "license": contents.license,
        "origin": contents.origin,
        "models": list(contents.models),
        "certified_by": contents.certification.by if contents.certification else None,
        "gates": dict(contents.certification.gates) if contents.certification else None,
    }


def build_scenario(world: BundledWorld, scenario: BundledScenario) -> Row:
    """Return the item of a scenario."""
    definition = scenario.definition
    items = build_items(scenario.earning_checks, scenario.kept_checks)
    solution = definition.solution
    return {
        "env_id": world.name,
        "env_class_name": world.analysis.class_name,
        "task_id": definition.name,
        "init_config": definition.state,
        "task": definition.task,
        "checklist": [item["check_item"] for item in items],
        "checklist_with_func": items,
        "checks": [
            {"item": check.item, "function": check.function, "source": check.source} for check in definition.checks
        ],
        "solution": None if solution is None else [call.to_json() for call in solution],
        "environment": ENVIRONMENT,
        "license": world.contents.license,
    }


def build_trajectory(world: BundledWorld, scenario: BundledScenario, conversation: WorldConversation) -> Row:
    """Return the item of a conversation."""
    messages = [
        {"reasoning_content": "", **message} if message["role"] == "assistant" else message
        for message in conversation.messages
    ]
    return {
        "traj_type": "non_conversation",
        "task_info": {
            "env_id": world.name,
            "task_id": scenario.definition.name,
            "task": scenario.definition.task,
        },
        "tools": json.dumps(world.function_tools, ensure_ascii=False),
        "messages": json.dumps(messages, ensure_ascii=False),
        "user_messages": "[]",
        "steps": sum(message["role"] == "assistant" for message in messages),
        "environment": ENVIRONMENT,
        "license": world.contents.license,
        "source": conversation.source,
        "model": conversation.model,
        "reward": conversation.reward,
    }


def split_documentation(text: str, name: str) -> tuple[str, str, list[str]]:
    """Return (title, introduction, rules) of a world's documentation; `name`: of the world, for one without a title."""
    head, *tails = _RULES.split(text, maxsplit=1)
    lines = head.strip().splitlines()
    has_title = bool(lines) and lines[0].startswith("# ")
    title = lines[0].removeprefix("# ").strip() if has_title else name.replace("_", " ")
    introduction = "\n".join(lines[1:] if has_title else lines).strip()
    rules: list[str] = []
    for line in tails[0].strip().splitlines() if tails else ():
        if line.startswith("- "):
            rules.append(line.removeprefix("- ").strip())
        elif rules and line.strip():
            rules[-1] += f" {line.strip()}"
    return title, introduction, rules


def join_documentation(title: str, introduction: str, rules: list[str]) -> str:
    """Return the documentation of a world."""
    parts = [f"# {title}", introduction.strip()]
    if rules:
        parts.append("\n".join(["## Rules", *(f"- {rule}" for rule in rules)]))
    return "\n\n".join(part for part in parts if part) + "\n"


def list_entities(tree: ProgramTree) -> list[Row]:
    """Return the TypedDicts of a program, and the attributes that are simple values, as entities."""
    entities = []
    for node in tree.module.body:
        if isinstance(node, ast.ClassDef) and node is not tree.world:
            fields = [ast.unparse(statement.target) for statement in node.body if isinstance(statement, ast.AnnAssign)]
            if fields:
                entities.append(_make_entity(node.name, fields, ast.get_docstring(node)))
    simple = [
        name
        for name, annotation in tree.attributes.items()
        if annotation is not None and not isinstance(annotation, ast.Subscript)
    ]
    if simple:
        entities.append(_make_entity(tree.world.name, simple, ast.get_docstring(tree.world)))
    return entities


def extract_class_definition(tree: ProgramTree, program: str) -> str:
    """Return a program up to the end of its class's `__init__`; up to its first method where it has none."""
    methods = tree.methods
    last = (
        methods["__init__"].end_lineno
        if "__init__" in methods
        else min(method.lineno for method in methods.values()) - 1
    )
    return "\n".join(program.splitlines()[:last]) + "\n"


def build_structure(world: BundledWorld, tree: ProgramTree) -> dict[str, Any]:
    """Return who uses and modifies each attribute, and the work that each method does."""
    usage = world.analysis.usage.to_json()
    states = {
        name: {"type": None if annotation is None else ast.unparse(annotation), **usage["attributes"][name]}
        for name, annotation in tree.attributes.items()
    }
    return {"states": states, "methods": usage["methods"]}


def _make_entity(name: str, fields: list[str], description: str | None) -> Row:
    return {"entity": name, "attributes": ", ".join(fields), "description": " ".join((description or "").split())}
