"""`mergemill worlds serve`: a socket, a container of worlds, and uvicorn until Ctrl-C."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass

from core.config import Settings
from core.errors import UsageError
from core.settings.machine import HostSettings
from core.settings.models import OFF, LlmSettings
from core.sockets import bind_socket
from mergemill.execution.services import make_model, make_services
from mergemill.web.request_guard import AccessRules, is_loopback, make_access_rules
from mergemill.web.server import run_application
from mergemill.worlds.containers import open_world_container
from mergemill.worlds.service.application import WorldApplication
from mergemill.worlds.service.catalog import load_catalog
from mergemill.worlds.service.episodes import WorldEpisodes
from worlds.server.host import WorldHost
from worlds.users import ModelUser, UserFactory, make_scripted_user


@dataclass(frozen=True, kw_only=True)
class WorldServiceOptions:
    """Options that `mergemill worlds serve` is given, besides settings."""

    worlds: Sequence[str]
    host: str
    port: int
    token: str | None
    episodes: int
    idle_seconds: float
    user: str
    """`auto`, `model`, `scripted` or `off`."""


def serve_worlds(options: WorldServiceOptions, settings: Settings, announce: Callable[[str], None]) -> None:
    """Serve worlds until Ctrl-C.

    Args:
        options: worlds, address, limits.
        settings: engine, limits of the container, and the users' model.
        announce: function that receives a line for people, then the address.

    Raises:
        InputError: a world cannot be served: see `load_catalog`.
        MachineError: no engine answers, or the port is in use.
        UsageError: the host is not an address of this machine, or a model is missing.
    """
    catalog = load_catalog(options.worlds, settings)
    with ExitStack() as opened:
        make_user = opened.enter_context(open_users(options.user, settings.llm, settings.host))
        listener = opened.enter_context(closing(bind_socket(options.host, options.port)))
        services = make_services(settings, engine=True)
        host = WorldHost(
            functools.partial(open_world_container, services, worlds=len(catalog), episodes=options.episodes)
        )
        episodes = WorldEpisodes(
            catalog, host, limit=options.episodes, idle_seconds=options.idle_seconds, make_user=make_user
        )
        opened.enter_context(closing(episodes))
        for offered in catalog.values():  # so that the first reset need not wait for the container
            host.find(offered.definition)
        if options.token is None and not is_loopback(options.host):
            announce(f"anyone who can reach {options.host} can use these worlds; --token protects them")
        application = WorldApplication(episodes, make_rules(options.host, options.token))
        run_application(application.build(), listener, options.host, announce, has_lifespan=True)


def make_rules(host: str, token: str | None) -> AccessRules:
    """Return the rules of a service: with a token, every request but those of MCP needs it."""
    return AccessRules(hosts=make_access_rules(host, token).hosts, token=token, protects_reading=token is not None)


@contextmanager
def open_users(user: str, llm: LlmSettings, host: HostSettings) -> Iterator[UserFactory | None]:
    """Yield what makes the users of conversations, None where none are offered; at the end their model is stopped.

    Raises:
        UsageError: the user is to be a model, and none is set.
    """
    if user == "auto":
        user = "scripted" if llm.url == OFF else "model"
    if user != "model":
        yield make_scripted_user if user == "scripted" else None
        return
    model = make_model(llm, host)
    if model is None:
        raise UsageError("a model is needed to play users", advice="set --llm URL and --model NAME")
    try:
        yield lambda scenario: ModelUser(model, scenario.task)
    finally:
        model.stop()  # requests in progress would keep the program from ending
