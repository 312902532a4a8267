"""The real HTTP API over any database of rows, in a thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import uvicorn

from core.config import Settings
from core.sockets import bind_socket
from mergemill.web.application import make_application
from mergemill.web.request_guard import make_access_rules
from taskdb.store import Store


@contextmanager
def serve_tasks(store: Store, folder: Path) -> Iterator[str]:
    """Serve the tasks of a database; yield the address. `folder`: for artifacts."""
    application = make_application(store, Settings(store=folder), make_access_rules("127.0.0.1", None))
    config = uvicorn.Config(application, log_config=None, lifespan="off", ws="none")
    with closing(bind_socket("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            while not server.started and thread.is_alive():
                time.sleep(0.01)
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()
