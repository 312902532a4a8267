"""Facts about a repository before it is mined. Every fact may be missing."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True, kw_only=True)
class RepositoryFacts:
    """Facts about a repository. None: unknown."""

    repo: str
    """`owner/name`; of a local clone derived from its folder or remote."""
    source: str
    """The source word that mines it: `github:owner/name` or `git:PATH`."""
    merged: int | None = None
    """Merged pull requests. From a dump: those merged in its period."""
    contributors: int | None = None
    """Accounts or names of authors, bots excluded."""
    pushed_at: str | None = None
    """Last activity (ISO 8601, UTC)."""
    has_tests: bool | None = None
    has_ci: bool | None = None
    license: str | None = None
    """SPDX; `NOASSERTION` when none is recognised."""
    language: str | None = None
    """Main language, in lower case."""
    kilobytes: int | None = None
    stars: int | None = None
    archived: bool | None = None
    fork_of: str | None = None
    """Name of the parent, if it is a fork."""
    is_missing: bool = False
    """The repository does not exist or is private."""

    def merge_with(self, better: RepositoryFacts) -> RepositoryFacts:
        """Return these facts, replaced by those that `better` has; of two merge counts the greater count."""
        known = {field.name: getattr(better, field.name) for field in fields(better)}
        merged = max(self.merged or 0, better.merged or 0) if (self.merged, better.merged) != (None, None) else None
        kept = {name: getattr(self, name) if value is None else value for name, value in known.items()}
        return RepositoryFacts(**kept | {"merged": merged})
