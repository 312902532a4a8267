"""What is known of a repository before anything of it is mined. Every fact may be missing."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """One repository. None: not known."""

    repo: str
    """`owner/name`, for a local clone the best guess from its folder or remote."""
    source: str
    """The source word that mines it: `github:owner/name` or `git:PATH`."""
    merged: int | None = None
    """Merged pull requests. From a dump: those merged in the time it covers."""
    people: int | None = None
    """Accounts or names that wrote changes, bots aside."""
    pushed_at: str | None = None
    """Last sign of work (ISO 8601, UTC)."""
    has_tests: bool | None = None
    has_ci: bool | None = None
    license: str | None = None
    """SPDX; `NOASSERTION` when none was recognised."""
    language: str | None = None
    """The main one, in lower case."""
    kilobytes: int | None = None
    stars: int | None = None
    archived: bool | None = None
    fork_of: str | None = None
    """The parent's name, when it is a fork."""
    missing: bool = False
    """There is no such repository, or it is private."""

    def but(self, better: Facts) -> Facts:
        """These facts, with those that `better` knows put in their place; the greater of two counts."""
        known = {field.name: getattr(better, field.name) for field in fields(better)}
        merged = max(self.merged or 0, better.merged or 0) if (self.merged, better.merged) != (None, None) else None
        kept = {name: getattr(self, name) if value is None else value for name, value in known.items()}
        return Facts(**kept | {"merged": merged})
