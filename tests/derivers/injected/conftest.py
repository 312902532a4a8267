"""A scripted model for bugs and statements that one writes."""

from __future__ import annotations

from tests.llm.conftest import client, server

__all__ = ["client", "server"]
