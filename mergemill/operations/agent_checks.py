"""Checks of the programs that agents need: the portable Python of their containers, and the programs of scaffolds."""

from __future__ import annotations

from builders import bases
from core.errors import MachineError
from mergemill.agents.sampling.programs import find_missing_programs
from mergemill.operations.machine_checks import Machine, MachineCheck, build_check
from samplers.programs.program import PYTHON_VERSION, PackageKind
from samplers.programs.store import INSTALL_COMMAND

NPM_REGISTRY = "https://registry.npmjs.org"
NPM_VARIABLE = "NPM_CONFIG_REGISTRY"


def check_agent_python(machine: Machine) -> MachineCheck:
    """Check that the portable Python is installed, or can be."""
    name = "agent python"
    if isinstance(machine.engine, MachineError):
        return build_check(name, "no engine", False, machine.engine.advice)
    there, _ = find_missing_programs(machine.services)
    if there:
        return build_check(name, f"portable Python {PYTHON_VERSION} is installed", True)
    can_install = PYTHON_VERSION in bases.list_available_versions("python", machine.services)
    text = f"portable Python {PYTHON_VERSION} is not installed"
    text += f"; the first rollout installs it, or {INSTALL_COMMAND} react" if can_install else ", and cannot be"
    return build_check(name, text, can_install, f"scripts/setup docker base, then {INSTALL_COMMAND} react")


def check_agent_programs(machine: Machine) -> MachineCheck:
    """Check that the programs of scaffolds are installed, or can be: npm's registry must answer where it is needed."""
    name = "agent programs"
    if isinstance(machine.engine, MachineError):
        return build_check(name, "no engine", False, machine.engine.advice)
    there, missing = find_missing_programs(machine.services)
    installed = [scaffold.name for scaffold in there if scaffold.program]
    lacking = [scaffold for scaffold in missing if scaffold.program]
    text = f"installed: {', '.join(installed) or 'none'}"
    if not lacking:
        return build_check(name, text, True)
    command = f"{INSTALL_COMMAND} {' '.join(scaffold.name for scaffold in lacking)}"
    needs_npm = any(scaffold.program and scaffold.program.kind is PackageKind.NPM for scaffold in lacking)
    problem = _find_npm_problem(machine) if needs_npm else ""
    if problem:
        fix = f"set {NPM_VARIABLE} or HTTPS_PROXY as your network needs, then {command}"
        return build_check(name, f"{text}; npm's registry does not answer: {problem}", False, fix)
    return build_check(name, f"{text}; the first rollout installs others, or {command}", True)


def _find_npm_problem(machine: Machine) -> str:
    """Return why npm's registry does not answer; nothing where it does."""
    url = machine.settings.host.inherit_environment().get(NPM_VARIABLE, NPM_REGISTRY)
    return machine.find_problem(f"{url.rstrip('/')}/npm/latest")
