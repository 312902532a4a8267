"""One frozen Settings. Each is an option, an environment variable `MERGEMILL_...` and a key of `mergemill.toml`.

Precedence: option, environment, `mergemill.toml` in the working directory, default. The stages may import this module.
"""

from __future__ import annotations

import os
from datetime import date
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import ByteSize, Field, SecretStr, ValidationInfo, field_validator
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


SECRETS = ("github_tokens", "llm_key")
"""Settings that are no options: other users of a machine can read its command lines."""

OFF = "off"
"""The word for no model."""


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
    llm: Literal["off"] | str = OFF
    """URL of an OpenAI-compatible API whose model takes part (`http://localhost:8000/v1`), or `off`."""
    model: str | None = Field(default=None, validate_default=True)
    """Name of the model that --llm asks."""
    language: str | None = None
    """Only candidates in this language."""
    clones: Path | None = None
    """Folder of local clones read instead of cloning, as OWNER__NAME or OWNER__NAME.git."""
    base_source: Literal["auto", "registry", "debian"] = "auto"
    """Where base images come from."""
    ca_bundle: Path | None = None
    """CA certificates (PEM) given to builds; default: the first of CA_VARIABLES that names a file."""
    image_budget: ByteSize | None = None
    """What mergemill's images may take on the engine's disk, such as 50GB; run then removes the least recently used."""

    limit: int | None = Field(default=None, ge=1)
    """At most this many candidates of each source, newest first."""
    since: date | None = None
    """Changes from this day on (YYYY-MM-DD)."""
    until: date | None = None
    """Changes up to this day, that day included."""

    github_api: str = "https://api.github.com"
    """URL of GitHub's API; an Enterprise server's ends in /api/v3."""
    github_tokens: Annotated[tuple[SecretStr, ...], NoDecode] = ()
    """Tokens for GitHub's API, comma-separated; default: GITHUB_TOKEN."""
    github_app_id: str | None = None
    """A GitHub App whose installation is one more token: its id or client id."""
    github_app_key: Path | None = None
    """File with the App's private key (PEM)."""
    github_app_installation: int | None = None
    """Number of the App's installation."""
    github_patience: float = Field(default=4000, ge=0)
    """Seconds one request to GitHub may wait for a limit."""
    github_concurrency: int = Field(default=4, ge=1, le=100)
    """Requests under way to GitHub at once, for each token."""
    github_ahead: int = Field(default=3, ge=0, le=32)
    """Repositories of a list that are crawled ahead of the one being mined."""

    llm_key: SecretStr | None = None
    """Key for the API of --llm; default: OPENAI_API_KEY."""
    llm_timeout: float = Field(default=300, gt=0)
    """Seconds a model may take for one answer."""
    llm_context: int = Field(default=64_000, ge=2048)
    """Tokens a conversation with the model may have, its answer included."""
    llm_answer_tokens: int = Field(default=4096, ge=64)
    """Tokens one answer may have."""
    llm_price_prompt: float = Field(default=0.0, ge=0)
    """Money for a million tokens that the model reads."""
    llm_price_cached: float | None = Field(default=None, ge=0)
    """The same for those the endpoint has cached; default: like the others."""
    llm_price_completion: float = Field(default=0.0, ge=0)
    """Money for a million tokens that the model writes."""
    judge_models: Annotated[tuple[str, ...], NoDecode] = ()
    """Models of --llm that are asked whether a statement is enough, comma-separated; default: --model."""
    judge_samples: int = Field(default=3, ge=1, le=20)
    """How often each of them is asked."""
    budget_tokens: int | None = Field(default=500_000, ge=1)
    """Tokens that one record may cost in one stage, read and written."""
    budget_cost: float | None = Field(default=None, gt=0)
    """Money that one record may cost in one stage, by the prices given."""

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

    benchmarks: Annotated[tuple[str, ...], NoDecode] = ()
    """Lists of what benchmarks hold, comma-separated: files, folders, or names of lists that come with mergemill."""
    max_patch_similarity: float = Field(default=0.5, ge=0.5, le=1)
    """How alike two gold patches may be, 0.5..1; 1 allows copies."""
    max_statement_similarity: float = Field(default=0.7, ge=0.5, le=1)
    """How alike two problem statements may be, 0.5..1; 1 allows copies."""

    repeats: int = Field(default=3, ge=1)
    """How often the tested and the solved tree are run."""
    injected_per_change: int = Field(default=1, ge=1, le=20)
    """Tasks of injected bugs made of one change."""
    injected_bugs: int = Field(default=1, ge=1, le=5)
    """Bugs put into each of them."""
    budget_seconds: float = Field(default=1800, gt=0)
    """Wall time one record may cost in one stage."""
    max_attempts: int = Field(default=10, ge=1)
    """Environments tried for one candidate."""
    skills: Path | None = None
    """Folder of your own skills; one of the same name stands in for mergemill's."""
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

    @field_validator("licenses", "github_tokens", "benchmarks", "judge_models", mode="before")
    @classmethod
    def _listed(cls, value: object) -> object:
        """A list may be written with commas, on the command line and in the environment."""
        return tuple(word.strip() for word in value.split(",") if word.strip()) if isinstance(value, str) else value

    @field_validator("github_api")
    @classmethod
    def _github(cls, value: str) -> str:
        return _address(value, "tokens belong in GITHUB_TOKEN")

    @field_validator("llm")
    @classmethod
    def _llm(cls, value: str) -> str:
        return value if value == OFF else _address(value, "keys belong in MERGEMILL_LLM_KEY")

    @field_validator("model")
    @classmethod
    def _model(cls, value: str | None, info: ValidationInfo) -> str | None:
        if not value and info.data.get("llm", OFF) != OFF:
            raise ValueError("names the model that --llm asks, and there is none")
        return value

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

    def found_github_tokens(self) -> tuple[SecretStr, ...]:
        """Each token once: those of the setting, else the environment's GITHUB_TOKEN."""
        named = self.github_tokens or (SecretStr(os.environ.get("GITHUB_TOKEN", "").strip()),)
        return tuple(token for token in dict.fromkeys(named) if token)

    def found_llm_key(self) -> SecretStr | None:
        """The key of the model's API: the setting, else the environment's OPENAI_API_KEY, else none."""
        named = self.llm_key or SecretStr(os.environ.get("OPENAI_API_KEY", "").strip())
        return named or None

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


def _address(value: str, where: str) -> str:
    """An http(s) URL without credentials, query or slash at the end. `where`: what is said of credentials."""
    try:
        parts = urlsplit(value.strip())
        _ = parts.port
    except ValueError as error:
        raise ValueError(f"is not a URL: {error}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ValueError("is not the http(s) URL of an API")
    if parts.username or parts.password:
        raise ValueError(f"holds a name or password; {where}")
    return value.strip().rstrip("/")
