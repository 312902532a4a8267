"""Names of the formats of rows: the names that a command needs before it imports the modules that write them."""

from __future__ import annotations

FORMAT_NAMES = ("sharegpt", "sharegpt-hermes", "messages", "parquet")
"""Formats of `training_data` in which simulated conversations are written."""
