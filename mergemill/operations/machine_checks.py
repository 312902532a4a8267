"""This machine as its checks see it, and the result that a check returns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import requests

from backends.sandbox.docker import DockerSandbox
from backends.services import Services
from core.config import Settings
from core.errors import MachineError
from mergemill.execution.services import make_services

ANSWER_SECONDS = 10
"""Longest wait for the answer of a server."""


@dataclass(frozen=True, kw_only=True)
class MachineCheck:
    """Result of a check. `detail` is the observed state, `fix` the command or step that repairs it; empty when ok."""

    name: str
    ok: bool
    detail: str
    fix: str = ""


@dataclass(frozen=True)
class Machine:
    """Settings, services and engine that the checks read."""

    settings: Settings

    @cached_property
    def services(self) -> Services:
        """Services whose engine is opened when it is first used."""
        return make_services(self.settings, engine=False)

    @cached_property
    def engine(self) -> DockerSandbox | MachineError:
        """The engine, or the error that explains its absence."""
        try:
            return DockerSandbox()
        except MachineError as error:
            return error

    def find_problem(self, url: str) -> str:
        """Return why a registry does not answer, with the network settings of builds; empty where it does."""
        bundle = self.settings.host.find_ca_bundle()
        try:
            requests.get(url, timeout=ANSWER_SECONDS, verify=str(bundle) if bundle else True).raise_for_status()
        except (OSError, ValueError) as error:
            return str(error)
        return ""


def build_check(name: str, detail: str, ok: bool, fix: str = "") -> MachineCheck:
    """Return the result of a check; a fix is left out where nothing is broken."""
    return MachineCheck(name=name, ok=ok, detail=detail, fix="" if ok else fix)
