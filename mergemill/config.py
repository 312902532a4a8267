"""One frozen Settings. Each is an option, an environment variable `MERGEMILL_...` and a key of `mergemill.toml`.

Precedence: option, environment, `mergemill.toml` in the working directory, default. The stages may import this module.
"""

from __future__ import annotations

import os
from datetime import date
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

CA_VARIABLES = ("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE")
"""Where a CA bundle is looked for when `ca_bundle` is not set."""

INHERITED_VARIABLES = (
    "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
    "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "UV_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX", "UV_EXTRA_INDEX_URL",
)  # fmt: skip
"""Variables of the user's that builds are given and no layer keeps."""


class Settings(BaseSettings):
    """All settings of one run. `Settings(**options)` reads the rest from the environment and `mergemill.toml`."""

    model_config = SettingsConfigDict(
        env_prefix="MERGEMILL_",
        toml_file="mergemill.toml",
        frozen=True,
        extra="forbid",
        env_ignore_empty=True,
        use_attribute_docstrings=True,
    )

    db: str = "sqlite:///mergemill.db"
    """Database URL."""
    store: Path | None = None
    """Folder of artifacts and clones; default `mergemill-store/` beside the database."""
    workers: int = Field(default=2, ge=1)
    """Records worked on side by side."""
    cluster: Literal["local"] = "local"
    """Where the workers are: threads of this machine."""
    llm: Literal["off"] = "off"
    """Whether a model takes part; none does."""
    language: Literal["python"] | None = None
    """Only candidates in this language."""
    clones: Path | None = None
    """Folder of local clones read instead of cloning, as OWNER__NAME or OWNER__NAME.git."""
    base_source: Literal["auto", "registry", "debian"] = "auto"
    """Where base images come from."""
    ca_bundle: Path | None = None
    """CA certificates (PEM) given to builds; default: the first of CA_VARIABLES that names a file."""

    limit: int | None = Field(default=None, ge=1)
    """At most this many candidates of each source, newest first."""
    since: date | None = None
    """Changes from this day on (YYYY-MM-DD)."""
    until: date | None = None
    """Changes up to this day, that day included."""

    max_gold_lines: int = Field(default=1000, ge=1)
    """Changed lines of the gold patch allowed."""
    max_test_lines: int = Field(default=3000, ge=1)
    """Changed lines of the test patch allowed."""
    max_files: int = Field(default=40, ge=1)
    """Files a change may touch."""
    max_patch_kb: int = Field(default=1024, ge=1)
    """Kilobytes that each of the two patches may have; binary files count here."""
    min_language_share: float = Field(default=0.5, ge=0, le=1)
    """Share of the gold patch's program lines that must be in its language, 0..1."""
    min_statement_words: int = Field(default=3, ge=0)
    """Words that must say what a change is about, markup and templates aside."""
    licenses: Annotated[tuple[str, ...], NoDecode] = ()
    """SPDX ids allowed, comma-separated; empty allows any, also none."""

    repeats: int = Field(default=3, ge=1)
    """How often the tested and the solved tree are run."""
    budget_seconds: float = Field(default=1800, gt=0)
    """Wall time one record may cost in one stage."""
    test_timeout: float = Field(default=600, gt=0)
    """Seconds one test run may take."""
    memory_mb: int = Field(default=4096, ge=256)
    """Memory of a test container; swap included."""
    disk_mb: int = Field(default=4096, ge=64)
    """What a container may write."""
    pids: int = Field(default=512, ge=16)
    """Processes and threads of one container."""
    cpus: float = Field(default=1.0, gt=0)
    """CPUs of one test container."""
    output_mb: int = Field(default=8, ge=1)
    """Output kept of one command, head and tail; the rest is read and dropped."""

    @field_validator("licenses", mode="before")
    @classmethod
    def _listed(cls, value: object) -> object:
        """A list may be written with commas, on the command line and in the environment."""
        return tuple(word.strip() for word in value.split(",") if word.strip()) if isinstance(value, str) else value

    @property
    def store_dir(self) -> Path:
        """Folder of artifacts and clones."""
        if self.store is not None:
            return self.store
        prefix = "sqlite:///"
        beside = Path(self.db.removeprefix(prefix)).parent if self.db.startswith(prefix) else Path()
        return beside / "mergemill-store"

    def found_ca_bundle(self) -> Path | None:
        """The CA bundle to give to builds: the setting, else the first CA variable that names a file, else none."""
        named = [self.ca_bundle] if self.ca_bundle else [Path(os.environ[v]) for v in CA_VARIABLES if os.environ.get(v)]
        return next((path for path in named if path.is_file()), None)

    @staticmethod
    def inherited_environment() -> dict[str, str]:
        """Proxy and index variables of this process that builds are given."""
        return {name: os.environ[name] for name in INHERITED_VARIABLES if os.environ.get(name)}

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Options, then environment, then mergemill.toml; no dotenv, no secrets folder."""
        del dotenv_settings, file_secret_settings
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls)
