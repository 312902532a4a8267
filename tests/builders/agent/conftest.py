"""A scripted model over HTTP for the agent's tests."""

from tests.backends.llm.conftest import client, server

__all__ = ["client", "server"]
