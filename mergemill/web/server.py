"""The server: a socket that is bound before anything is promised, and uvicorn on it until Ctrl-C."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import uvicorn
from starlette.types import ASGIApp

from core.config import Settings
from core.sockets import bind_socket
from languages.registry import languages_by_suffix
from mergemill.web.application import QUEUE_LIMIT, make_application
from mergemill.web.request_guard import is_loopback, make_access_rules
from mergemill.web.syntax import load_lexers
from taskdb.artifacts import open_artifacts
from taskdb.schema.mapping import RECORD_TABLES
from taskdb.store import Store

SHUTDOWN_SECONDS = 2


def serve(
    settings: Settings,
    host: str,
    port: int,
    token: str | None,
    announce: Callable[[str], None],
    *,
    queue_limit: int = QUEUE_LIMIT,
) -> None:
    """Serve the pages and the API of a database until Ctrl-C.

    Args:
        settings: database and store; limits of gradings.
        host: address to listen at.
        port: port of the host, 0 for any free port.
        token: token that permits grading; None permits reading alone.
        announce: function that receives a line for people, then the address.
        queue_limit: submissions that may wait to be graded.

    Raises:
        InputError: there is no database, or the artifacts may not be read.
        MachineError: the port is in use or may not be used.
        UsageError: the host is not an address of this machine.
    """
    rules = make_access_rules(host, token)
    open_artifacts(settings.storage).check(writes=False)
    _load_deferred()
    with Store.open(settings.storage.db, create=False) as store, closing(bind_socket(host, port)) as listener:
        if token is None and not is_loopback(host):
            announce(f"anyone who can reach {host} can read this database; --token protects it")
        application = make_application(store, settings, rules, queue_limit=queue_limit)
        with closing(application.state.grading):
            run_application(application, listener, host, announce)


def run_application(
    application: ASGIApp,
    listener: socket.socket,
    host: str,
    announce: Callable[[str], None],
    *,
    has_lifespan: bool = False,
    shutdown_seconds: int = SHUTDOWN_SECONDS,
) -> None:
    """Serve an application at a listening socket until Ctrl-C.

    Args:
        application: the application.
        listener: the socket.
        host: address that the socket listens at.
        announce: function that receives a line with the URL, from which on Ctrl-C ends the server quietly.
        has_lifespan: whether the application starts and ends anything.
        shutdown_seconds: time that requests in progress have after Ctrl-C.
    """
    config = uvicorn.Config(
        application,
        log_config=None,
        access_log=logging.getLogger().isEnabledFor(logging.INFO),
        server_header=False,
        lifespan="on" if has_lifespan else "off",
        ws="none",
        timeout_graceful_shutdown=shutdown_seconds,
    )
    with _ends_with_interrupt():
        announce(f"http://{_format_host(host)}:{listener.getsockname()[1]}/ (Ctrl-C ends it)")
        uvicorn.Server(config).run(sockets=[listener])


def _load_deferred() -> None:
    """Make now the objects that are otherwise made at its first use, when somebody would wait for it."""
    load_lexers(languages_by_suffix())
    for kind in RECORD_TABLES:
        kind.model_rebuild()


@contextmanager
def _ends_with_interrupt() -> Iterator[None]:
    """End quietly after Ctrl-C, which uvicorn raises again once all requests are answered."""
    try:
        yield
    except KeyboardInterrupt:
        return


def _format_host(host: str) -> str:
    """Return a host as it stands in a URL."""
    return f"[{host}]" if ":" in host else host
