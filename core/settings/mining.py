"""Settings of mining: the sources, the connection to GitHub, and the limits of the rules."""

from __future__ import annotations

import os
from datetime import date
from pathlib import Path
from typing import Annotated

from pydantic import ConfigDict, Field, SecretStr, field_validator

from core.settings.group import SPLIT_WORDS, SettingsGroup, WordList, check_url


class SourceSettings(SettingsGroup):
    """Which changes are read, and from which clones."""

    language: str | None = None
    """Process only candidates in this language."""
    clones: Path | None = None
    """Read clones from this folder, as OWNER__NAME or OWNER__NAME.git, instead of cloning."""
    limit: int | None = Field(default=None, ge=1)
    """Process at most this many candidates of each source, newest first."""
    since: date | None = None
    """Process changes merged on or after this day (YYYY-MM-DD)."""
    until: date | None = None
    """Process changes merged on or before this day (YYYY-MM-DD)."""


class QuotaSettings(SettingsGroup):
    """Most changes and tasks of a repository in all runs together."""

    model_config = ConfigDict(alias_generator="quota_{}".format)

    changes: int | None = Field(default=None, ge=1)
    """Begin no further change of a repository of which so many were begun, in all runs."""
    tasks: int | None = Field(default=None, ge=1)
    """Process no further change of a repository that has so many certified tasks, in all runs."""


class GitHubSettings(SettingsGroup):
    """Connection to GitHub's API."""

    model_config = ConfigDict(alias_generator="github_{}".format)

    api: str = "https://api.github.com"
    """URL of GitHub's API; that of an Enterprise server ends in /api/v3."""
    tokens: Annotated[tuple[SecretStr, ...], SPLIT_WORDS] = ()
    """Tokens for GitHub's API, comma-separated. Default: GITHUB_TOKEN."""
    app_id: str | None = None
    """Id or client id of a GitHub App whose installation token is used, too."""
    app_key: Path | None = None
    """File with the private key (PEM) of the GitHub App."""
    app_installation: int | None = None
    """Number of the installation of the GitHub App."""
    patience: float = Field(default=4000, ge=0)
    """Seconds that one request to GitHub may wait for a rate limit."""
    concurrency: int = Field(default=4, ge=1, le=100)
    """Concurrent requests to GitHub per token."""
    ahead: int = Field(default=3, ge=0, le=32)
    """Repositories of a list to crawl ahead of the one being mined."""

    @field_validator("api")
    @classmethod
    def _check_api(cls, value: str) -> str:
        return check_url(value, "tokens belong in GITHUB_TOKEN")

    def find_tokens(self) -> tuple[SecretStr, ...]:
        """Return each token once: those of the setting, else GITHUB_TOKEN of the environment."""
        named = self.tokens or (SecretStr(os.environ.get("GITHUB_TOKEN", "").strip()),)
        return tuple(token for token in dict.fromkeys(named) if token)


class MiningSettings(SettingsGroup):
    """Limits of the mining rules."""

    max_gold_lines: int = Field(default=1000, ge=1)
    """Reject a gold patch with more changed lines."""
    max_test_lines: int = Field(default=3000, ge=1)
    """Reject a test patch with more changed lines."""
    max_files: int = Field(default=40, ge=1)
    """Reject a change of more files."""
    max_patch_kb: int = Field(default=1024, ge=1)
    """Reject a gold or test patch of more kilobytes, binary files included."""
    min_language_share: float = Field(default=0.5, ge=0, le=1)
    """Reject a gold patch with a smaller share of its program lines in one language, 0..1."""
    min_statement_words: int = Field(default=3, ge=0)
    """Reject a problem statement with fewer words, markup and templates excluded."""
    licenses: WordList = ()
    """Reject changes of repositories under other licences (SPDX ids, comma-separated). Default: accept any or none."""
    benchmarks: WordList = ()
    """Reject changes on these benchmark lists, comma-separated: files, folders, or names of built-in lists."""
    max_patch_similarity: float = Field(default=0.5, ge=0.5, le=1)
    """Reject a change whose gold patch is more similar to another one, 0.5..1; 1 accepts copies."""
    max_statement_similarity: float = Field(default=0.7, ge=0.5, le=1)
    """Reject a change whose problem statement is more similar to another one, 0.5..1; 1 accepts copies."""
