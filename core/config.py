"""Settings. Each is an option, an environment variable `MERGEMILL_...` and a key of `mergemill.toml`.

Precedence: option, environment, `mergemill.toml` in the working directory, default.
"""

from __future__ import annotations

import ast
import inspect
import os
from datetime import date
from functools import cache
from itertools import pairwise
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
"""Variables that may name a CA bundle when `ca_bundle` is not set."""

INHERITED_VARIABLES = (
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "PIP_INDEX_URL",
    "PIP_EXTRA_INDEX_URL",
    "UV_INDEX_URL",
    "UV_DEFAULT_INDEX",
    "UV_INDEX",
    "UV_EXTRA_INDEX_URL",
    "NPM_CONFIG_REGISTRY",
)
"""Variables of the user that builds are given and no image layer stores."""


SECRETS = ("github_tokens", "llm_key", "upstream_key")
"""Settings without an option, since other users of a machine can read its command lines."""

OFF = "off"
"""Value of `llm` for no model."""


class Settings(BaseSettings):
    """All settings of one run. `Settings(**options)` reads the rest from the environment and `mergemill.toml`."""

    model_config = SettingsConfigDict(
        env_prefix="MERGEMILL_",
        toml_file="mergemill.toml",
        frozen=True,
        extra="forbid",
        env_ignore_empty=True,
    )

    db: str = "sqlite:///mergemill.db"
    """Database: a file, or a URL (`sqlite:///FILE`, `postgresql+psycopg://...`)."""
    db_patience: float = Field(default=300, ge=0)
    """Seconds that a run waits for a database server that does not answer any more."""
    store: Path | None = None
    """Folder of artifacts and clones. Default: `mergemill-store/` beside the database."""
    artifacts: str | None = None
    """Where artifacts are kept: a folder, or a URL such as `s3://BUCKET/PREFIX`. Default: `artifacts/` in --store."""
    workers: int = Field(default=2, ge=1)
    """Number of changes processed in parallel."""
    cluster: str = "local"
    """Where the workers run: `local` (threads of this machine), `ray` (processes of this machine), or
    `ray://HOST:PORT` (nodes of a Ray cluster; as many workers as fit, unless --workers is given)."""
    worker_cpus: float = Field(default=1.0, gt=0)
    """CPUs that --cluster ray reserves for each worker; of memory it reserves --memory-mb."""
    node_registry: str | None = None
    """Push images to this registry (HOST/PREFIX) during a run on a cluster, so that other nodes can pull them."""
    sandbox: str = "docker"
    """Where commands run: `docker`, `kubernetes` (pods of a cluster), `bubblewrap` (namespaces, the programs of this
    machine and no images), or `local` (subprocesses of this machine, without isolation and images)."""
    allow_untrusted_local: bool = False
    """Permit `--sandbox local`, which runs foreign code as the user of mergemill."""
    kubernetes_context: str | None = None
    """Context of the kubeconfig for `--sandbox kubernetes`. Default: the current one, or the account of the pod that
    mergemill runs in."""
    kubernetes_namespace: str | None = None
    """Namespace of the pods. Default: that of the context."""
    kubernetes_registry: str | None = None
    """Registry (HOST/PREFIX) that images are pushed to and the nodes pull them from. Default: the nodes have them."""
    kubernetes_pull_secret: str | None = None
    """Secret of the namespace with the credentials of that registry."""
    kubernetes_helper_image: str | None = None
    """Image with Python that takes the network away from pods and offers sockets in them, as nodes pull it. Default:
    the newest base of Python on the Docker engine."""
    kubernetes_nodes: Annotated[tuple[str, ...], NoDecode] = ()
    """Labels of the nodes that may run pods (KEY=VALUE), comma-separated. Default: any node."""
    kubernetes_runtime_class: str | None = None
    """Runtime class of the pods, such as one of gVisor. Default: that of the cluster."""
    kubernetes_pending_seconds: float = Field(default=600, ge=0)
    """Seconds that a pod may wait for a node with room."""
    llm: Literal["off"] | str = OFF
    """URL of the OpenAI-compatible API to query (such as `http://localhost:8000/v1`), or `off`."""
    simulator_model: str | None = None
    """Name of the model at --llm that answers for the programs and tests of simulated tasks. Default: --model."""
    model: str | None = Field(default=None, validate_default=True)
    """Name of the model at --llm; for agents, of that at --upstream."""
    language: str | None = None
    """Process only candidates in this language."""
    clones: Path | None = None
    """Read clones from this folder, as OWNER__NAME or OWNER__NAME.git, instead of cloning."""
    base_source: Literal["auto", "registry", "debian"] = "auto"
    """Origin of base images: a registry, debootstrap, or whichever works."""
    ca_bundle: Path | None = None
    """CA certificates (PEM) for builds. Default: the file of SSL_CERT_FILE, PIP_CERT or REQUESTS_CA_BUNDLE."""
    image_budget: ByteSize | None = None
    """Remove the least recently used images during a run once all take more than this, such as 50GB."""

    drain_seconds: float = Field(default=20, ge=0)
    """Seconds after SIGTERM in which steps that run may finish, before they are stopped."""
    metrics_port: int | None = Field(default=None, ge=0, le=65535)
    """Serve metrics for Prometheus at this port during a run; 0 for any free one."""
    metrics_host: str = "127.0.0.1"
    """Address of the metrics."""

    limit: int | None = Field(default=None, ge=1)
    """Process at most this many candidates of each source, newest first."""
    quota_changes: int | None = Field(default=None, ge=1)
    """Begin no further change of a repository of which so many were begun, in all runs."""
    quota_tasks: int | None = Field(default=None, ge=1)
    """Process no further change of a repository that has so many certified tasks, in all runs."""
    since: date | None = None
    """Process changes merged on or after this day (YYYY-MM-DD)."""
    until: date | None = None
    """Process changes merged on or before this day (YYYY-MM-DD)."""

    github_api: str = "https://api.github.com"
    """URL of GitHub's API; that of an Enterprise server ends in /api/v3."""
    github_tokens: Annotated[tuple[SecretStr, ...], NoDecode] = ()
    """Tokens for GitHub's API, comma-separated. Default: GITHUB_TOKEN."""
    github_app_id: str | None = None
    """Id or client id of a GitHub App whose installation token is used, too."""
    github_app_key: Path | None = None
    """File with the private key (PEM) of the GitHub App."""
    github_app_installation: int | None = None
    """Number of the installation of the GitHub App."""
    github_patience: float = Field(default=4000, ge=0)
    """Seconds that one request to GitHub may wait for a rate limit."""
    github_concurrency: int = Field(default=4, ge=1, le=100)
    """Concurrent requests to GitHub per token."""
    github_ahead: int = Field(default=3, ge=0, le=32)
    """Repositories of a list to crawl ahead of the one being mined."""

    llm_key: SecretStr | None = None
    """Key for the API of --llm. Default: OPENAI_API_KEY."""
    llm_timeout: float = Field(default=300, gt=0)
    """Seconds that a model may take for one response."""
    llm_context: int = Field(default=64_000, ge=2048)
    """Token limit of a conversation with the model, its response included."""
    llm_answer_tokens: int = Field(default=4096, ge=64)
    """Token limit of one response."""
    llm_price_prompt: float = Field(default=0.0, ge=0)
    """Price of a million prompt tokens."""
    llm_price_cached: float | None = Field(default=None, ge=0)
    """Price of a million cached prompt tokens. Default: the price of prompt tokens."""
    llm_price_completion: float = Field(default=0.0, ge=0)
    """Price of a million completion tokens."""
    upstream: str | None = None
    """URL of the model server for agents (such as `http://localhost:8000/v1`)."""
    upstream_dialect: Literal["openai", "anthropic"] = "openai"
    """API of the model server for agents: chat completions as of OpenAI, or Anthropic's Messages."""
    upstream_key: SecretStr | None = None
    """Key for the API of --upstream."""
    upstream_concurrency: int = Field(default=64, ge=1)
    """Requests to --upstream at once; further ones wait."""
    request_timeout: float = Field(default=600, gt=0)
    """Seconds without a byte of an answer after which a request to --upstream is sent again."""
    token_ids: Literal["off", "vllm"] = "off"  # noqa: S105 - tokens of a language
    """Record the token ids and log-probs that --upstream gives, requested as vLLM takes it."""
    judge_models: Annotated[tuple[str, ...], NoDecode] = ()
    """Models at --llm that judge problem statements, comma-separated. Default: --model."""
    judge_samples: int = Field(default=3, ge=1, le=20)
    """Opinions per judging model."""
    budget_tokens: int | None = Field(default=500_000, ge=1)
    """Token limit of one change in one stage, prompt and completion."""
    budget_cost: float | None = Field(default=None, gt=0)
    """Cost limit of one change in one stage, at the given prices."""

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
    licenses: Annotated[tuple[str, ...], NoDecode] = ()
    """Reject changes of repositories under other licences (SPDX ids, comma-separated). Default: accept any or none."""

    benchmarks: Annotated[tuple[str, ...], NoDecode] = ()
    """Reject changes on these benchmark lists, comma-separated: files, folders, or names of built-in lists."""
    max_patch_similarity: float = Field(default=0.5, ge=0.5, le=1)
    """Reject a change whose gold patch is more similar to another one, 0.5..1; 1 accepts copies."""
    max_statement_similarity: float = Field(default=0.7, ge=0.5, le=1)
    """Reject a change whose problem statement is more similar to another one, 0.5..1; 1 accepts copies."""

    repeats: int = Field(default=3, ge=1)
    """Repetitions of the test-only and the gold run."""
    certify_runs: int = Field(default=3, ge=3, le=100)
    """Gradings of the gold submission that a certificate takes, under varied conditions."""
    certify_exploits: Literal["quick", "all", "off"] = "quick"
    """Submissions that must earn 0 and are graded for a certificate: the audit's quick ones, all, or none."""
    strength_runs: int = Field(default=20, ge=0, le=1000)
    """Edits of the gold patch with which an audit runs the tests, to measure their strength; 0 for none."""
    injected_per_change: int = Field(default=1, ge=1, le=20)
    """Injected-bug tasks per change."""
    injected_on_top: int = Field(default=1, ge=0, le=5)
    """Tasks per change that consist of the change's own bug fix or feature and an injected bug."""
    injected_bugs: int = Field(default=1, ge=1, le=5)
    """Bugs per injected-bug task."""
    chains_per_change: int = Field(default=1, ge=0, le=3)
    """Combined tasks of three to five related changes per change."""
    variants: Literal["rules", "model"] = "rules"
    """How terse statements and user stories are written: by rules, or by the model at --llm."""
    write_tests: bool = False
    """Keep changes without tests, and let the model at --llm write tests for them."""
    write_attempts: int = Field(default=3, ge=1, le=20)
    """Answers of the model for the tests of one change."""
    write_min_detected: float = Field(default=0.5, ge=0, le=1)
    """Reject written tests that detect a smaller share of the faults in the gold patch, 0..1; one must be detected."""
    budget_seconds: float = Field(default=1800, gt=0)
    """Wall time limit of one change in one stage."""
    max_attempts: int = Field(default=10, ge=1)
    """Attempts to build the environment of one candidate."""
    skills: Path | None = None
    """Folder of your own skills; they replace built-in skills of the same name."""
    test_timeout: float = Field(default=600, gt=0)
    """Time limit of one test run, in seconds."""
    whole_suite_seconds: float = Field(default=30, gt=0)
    """Seconds up to which a suite runs as a whole each time. A longer one does once without and once with the gold
    patch, then only with the test files that matter to the change."""
    memory_mb: int = Field(default=4096, ge=256)
    """Memory limit of a test container, swap included."""
    disk_mb: int = Field(default=4096, ge=64)
    """Disk limit of a container."""
    pids: int = Field(default=512, ge=16)
    """Limit of processes and threads of a container."""
    cpus: float = Field(default=1.0, gt=0)
    """CPUs of a test container."""
    output_mb: int = Field(default=8, ge=1)
    """Megabytes stored of the output of one command, head and tail; the rest is discarded."""

    rollout_seconds: float = Field(default=3600, gt=0)
    """Wall time limit of an agent on one task."""
    rollout_turns: int = Field(default=100, ge=1)
    """Turns of an agent: answered requests that offer tools, those of sub-agents among them."""
    rollout_requests: int | None = Field(default=500, ge=1)
    """Requests to the model that one rollout may make."""
    rollout_tokens: int | None = Field(default=None, ge=1)
    """Tokens that one rollout may use, prompt and completion."""
    rollout_cost: float | None = Field(default=None, gt=0)
    """Cost limit of one rollout, at the given prices."""
    rollout_retries: int = Field(default=2, ge=0, le=20)
    """Further tries of a rollout that an infrastructure failure ended, in one run of the command."""
    select_min_value: float = Field(default=1.0, ge=0, le=1)
    """Refuse trajectories with a lower reward."""
    select_leaks: int = Field(default=0, ge=0)
    """Refuse trajectories with more attempts to get at what the task hides."""
    select_truncated: int = Field(default=0, ge=0)
    """Refuse trajectories with more answers cut at the token limit; a rollout that a limit ended counts as one."""
    select_empty_patch: float = Field(default=0, ge=0)
    """Refuse empty submissions; 1 permits them."""
    select_test_only_patch: float = Field(default=0, ge=0)
    """Refuse patches that change test files alone; 1 permits them."""
    select_format_errors: int = Field(default=2, ge=0)
    """Refuse trajectories with more calls that have no tool, no valid arguments or no action in them."""
    select_tool_errors: float = Field(default=0.3, ge=0, le=1)
    """Refuse trajectories with a larger share of failed calls."""
    select_tool_error_run: int = Field(default=3, ge=0)
    """Refuse trajectories with more failed calls in a row."""
    select_repeats: float = Field(default=0.2, ge=0, le=1)
    """Refuse trajectories with a larger share of calls that were made before with the same result."""
    select_repeat_run: int = Field(default=3, ge=1)
    """Refuse trajectories in which the same call with the same result was made more often in a row."""
    select_loops: int = Field(default=2, ge=1)
    """Refuse trajectories in which a cycle of two to four calls was made more often in a row."""
    select_repetition: float = Field(default=0.3, ge=0, le=1)
    """Refuse trajectories with an answer of which a larger share of grams of 20 words is repeated."""
    select_rubric: float = Field(default=0.0, ge=0, le=1)
    """Refuse trajectories of which the model at --llm finds a larger share of a rubric's items not met."""

    simulate_temperature: float | None = Field(default=None, ge=0, le=2)
    """Sampling temperature of the simulator. Default: that of --profile, 1 in both."""
    simulate_prefilter: Literal["model", "rules", "off"] | None = None
    """How seeds are checked: by rules and the model, by rules alone, or not. Default: model; off in profile simia."""
    simulate_seed_choice: Literal["round-robin", "random"] | None = None
    """How --total chooses seeds: in turn, or at random with replacement. Default: round-robin; random in simia."""
    simulate_attempts: int | None = Field(default=None, ge=1, le=20)
    """Requests for one conversation until an answer can be parsed. Default: 3; 1 in profile simia."""
    simulate_pause: float | None = Field(default=None, ge=0)
    """Seconds between two requests of all workers together. Default: 0; 1 in profile simia."""
    simulate_scenarios: Literal["on", "off"] | None = None
    """Draw for each conversation how it relates to its seed. Default: on; off in profile simia."""
    simulate_failures: float | None = Field(default=None, ge=0, le=1)
    """Share of conversations in which a call fails, 0..1. Default: 0.1; 0 in profile simia."""
    simulate_seen_ids: Literal["on", "off"] | None = None
    """Drop conversations with a call whose id nobody gave before. Default: on; off in profile simia."""
    simulate_near_duplicates: float | None = Field(default=None, ge=0.3, le=1)
    """Drop conversations more similar to an earlier one, 0.3..1; 1 for none. Default: 0.7; 1 in profile simia."""
    simulate_benchmarks: Annotated[tuple[str, ...] | None, NoDecode] = None
    """Drop conversations with eight words in a row of a text in these files, comma-separated. Default: none."""
    simulate_think: Literal["reasoning", "text"] | None = None
    """Where reasoning goes: to a field of its own, or into the text. Default: reasoning; text in profile simia."""
    simulate_target: Literal["qwen", "llama"] | None = None
    """Whose form of tools the system prompt of Hermes rows has. Default: qwen."""
    simulate_draw: int | None = Field(default=None, ge=0)
    """Number from which seeds, scenarios and failures are drawn; another one gives other conversations. Default: 0."""

    episode_turns: int | None = Field(default=None, ge=1)
    """Turns of the agent in an episode, at most. Default: 40."""
    episode_actions: int | None = Field(default=None, ge=1)
    """Calls and messages of the agent in an episode, at most. Default: 60."""
    episode_steps: int | None = Field(default=None, ge=1)
    """Steps of an episode that the simulator answers, at most; at the last one the judge decides. Default: 100."""
    episode_context: int | None = Field(default=None, ge=1)
    """Tokens of the agent's context. Default: 32000; 9000 in profile simia."""
    episode_overlong: Literal["judge", "zero"] | None = None
    """What an episode beyond the agent's context earns: the judge's reward, or 0. Default: judge; zero in simia."""
    episode_attempts: int | None = Field(default=None, ge=1, le=20)
    """Requests until an answer of simulator or judge can be used. Default: 3."""
    episode_rules: Literal["on", "off"] | None = None
    """Answer malformed and invalid calls by rule, and check results. Default: on; off in profile simia."""
    episode_rewrites: float | None = Field(default=None, ge=0, le=1)
    """Share of groups whose first message is rewritten, 0..1. Default: 0.5; 0 in profile simia."""
    episode_groups: int | None = Field(default=None, ge=1)
    """Number of groups of environments, by which each goes on to its next sample. Default: 16."""
    episode_judge_temperature: float | None = Field(default=None, ge=0, le=2)
    """Sampling temperature of the judge. Default: 0; 1 in profile simia."""

    max_false_pass: float = Field(default=0.1, gt=0, le=1)
    """Refuse exports for reinforcement learning whose simulator may pay a larger share of wrong submissions (bound)."""

    worlds_attempts: int = Field(default=3, ge=1, le=20)
    """Answers to one question about a theme, a program or a task, until one is usable."""
    worlds_temperature: float | None = Field(default=None, ge=0, le=2)
    """Sampling temperature for themes, programs, tasks, checks and tests. Default: the endpoint's own."""
    worlds_themes: int = Field(default=191, ge=1)
    """Clusters of themes, of each of which one is kept."""
    worlds_min_usefulness: int = Field(default=7, ge=1, le=10)
    """Reject themes that the model rates as less useful, 1..10."""
    worlds_min_modelability: int = Field(default=7, ge=1, le=10)
    """Reject themes that the model rates as harder to write as one class, 1..10."""
    worlds_embedding_model: str = Field(default="text-embedding-3-large", min_length=1)
    """Model of the embeddings by which themes are clustered."""
    worlds_embedding_url: str | None = None
    """URL of the API of the embedding model. Default: --llm."""
    worlds_draw: int = Field(default=42, ge=0)
    """Seed of KMeans; another one also gives other answers to the same questions."""
    worlds_test_states: int = Field(default=1, ge=1, le=20)
    """States that are written for the assessment of a world."""
    worlds_test_state_temperature: float = Field(default=0.5, ge=0, le=2)
    """Sampling temperature for those states."""
    worlds_gate_calls: int = Field(default=200, ge=1)
    """Calls of each tool that the gates of a world make."""
    worlds_min_changes: float = Field(default=0.6, ge=0, le=1)
    """Least share of the tools that change something which changed something in these calls, 0..1."""
    worlds_rounds: int = Field(default=100, ge=1)
    """Rounds of tester and checker for one world."""
    worlds_calls_per_tool: int = Field(default=10, ge=1)
    """Most rounds for one tool."""
    worlds_min_score: float = Field(default=0.85, ge=0, le=1)
    """Reject worlds of which a smaller share of the rounds passed or was warned of, 0..1."""
    worlds_tester_model: str | None = None
    """Model that chooses the calls of the rounds. Default: --model."""
    worlds_checker_model: str | None = None
    """Model that judges their results. Default: --model."""
    worlds_checker_temperature: float = Field(default=0.0, ge=0, le=2)
    """Sampling temperature of the checker."""
    worlds_verdict_attempts: int = Field(default=5, ge=1, le=20)
    """Answers of the checker on one call, until one is usable."""
    worlds_states: int = Field(default=50, ge=1)
    """Initial states of a world, each with one scenario."""
    worlds_state_temperature: float = Field(default=0.7, ge=0, le=2)
    """Sampling temperature for initial states."""
    worlds_min_task_words: int = Field(default=50, ge=1)
    """Least words of a scenario's task."""
    worlds_check_attempts: int = Field(default=5, ge=1, le=20)
    """Answers for one check function, until one is usable."""
    worlds_solver_model: str | None = None
    """Model whose rollouts are to solve the scenarios. Default: --model."""
    worlds_solver_temperature: float | None = Field(default=None, ge=0, le=2)
    """Sampling temperature of these rollouts. Default: the endpoint's own."""
    worlds_rollouts: int = Field(default=4, ge=1, le=100)
    """Rollouts of each scenario."""
    worlds_max_steps: int = Field(default=40, ge=1)
    """Steps after which a rollout ends."""
    worlds_min_noticed: float = Field(default=0.7, ge=0, le=1)
    """Least share of the mutations in fields that a task names which the checks notice, 0..1."""

    @field_validator("kubernetes_nodes")
    @classmethod
    def _check_nodes(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if any("=" not in label for label in value):
            raise ValueError("is not a list of KEY=VALUE")
        return value

    @field_validator(
        "licenses",
        "github_tokens",
        "benchmarks",
        "judge_models",
        "simulate_benchmarks",
        "kubernetes_nodes",
        mode="before",
    )
    @classmethod
    def _split_list(cls, value: object) -> object:
        """Split a list that is written with commas, on the command line or in the environment."""
        return tuple(word.strip() for word in value.split(",") if word.strip()) if isinstance(value, str) else value

    @field_validator("db")
    @classmethod
    def _resolve_database(cls, value: str) -> str:
        """Return the URL of a database that is named by its file."""
        return value if ":" in value else f"sqlite:///{Path(value).expanduser()}"

    @field_validator("artifacts")
    @classmethod
    def _check_artifacts(cls, value: str | None) -> str | None:
        """Return a folder as it is, and a URL without a slash at the end."""
        if value is None or "://" not in value:
            return value
        parts = urlsplit(value)
        if parts.password:
            raise ValueError("contains a password; credentials belong where the store's tools look for them")
        if not (parts.netloc or parts.path.strip("/")):
            raise ValueError("names no bucket or folder")
        return value.rstrip("/")

    @field_validator("github_api")
    @classmethod
    def _check_github_api(cls, value: str) -> str:
        return _check_url(value, "tokens belong in GITHUB_TOKEN")

    @field_validator("upstream")
    @classmethod
    def _check_upstream(cls, value: str | None) -> str | None:
        return None if value is None else _check_url(value, "keys belong in MERGEMILL_UPSTREAM_KEY")

    @field_validator("worlds_embedding_url")
    @classmethod
    def _check_embedding_url(cls, value: str | None) -> str | None:
        return None if value is None else _check_url(value, "keys belong in MERGEMILL_LLM_KEY")

    @field_validator("llm")
    @classmethod
    def _check_llm(cls, value: str) -> str:
        return value if value == OFF else _check_url(value, "keys belong in MERGEMILL_LLM_KEY")

    @field_validator("model")
    @classmethod
    def _check_model(cls, value: str | None, info: ValidationInfo) -> str | None:
        if not value and info.data.get("llm", OFF) != OFF and not info.data.get("simulator_model"):
            raise ValueError("is missing: --llm needs the name of a model")
        return value

    @property
    def can_write_tests(self) -> bool:
        """Whether tests are written for changes without tests, which needs a model."""
        return self.write_tests and self.llm != OFF

    @property
    def store_dir(self) -> Path:
        """Folder of artifacts and clones."""
        if self.store is not None:
            return self.store
        prefix = "sqlite:///"
        beside = Path(self.db.removeprefix(prefix)).parent if self.db.startswith(prefix) else Path()
        return beside / "mergemill-store"

    @property
    def artifact_place(self) -> Path | str:
        """Folder of the artifacts, or their URL."""
        if self.artifacts is None:
            return self.store_dir / "artifacts"
        if self.artifacts.startswith("file://"):
            return Path(self.artifacts.removeprefix("file://"))
        return self.artifacts if "://" in self.artifacts else Path(self.artifacts).expanduser()

    def find_ca_bundle(self) -> Path | None:
        """Return the CA bundle for builds: the setting, else the first of CA_VARIABLES that names a file, else None."""
        named = [self.ca_bundle] if self.ca_bundle else [Path(os.environ[v]) for v in CA_VARIABLES if os.environ.get(v)]
        return next((path for path in named if path.is_file()), None)

    def find_github_tokens(self) -> tuple[SecretStr, ...]:
        """Return each token once: those of the setting, else GITHUB_TOKEN of the environment."""
        named = self.github_tokens or (SecretStr(os.environ.get("GITHUB_TOKEN", "").strip()),)
        return tuple(token for token in dict.fromkeys(named) if token)

    def find_llm_key(self) -> SecretStr | None:
        """Return the key of the model's API: the setting, else OPENAI_API_KEY of the environment, else None."""
        named = self.llm_key or SecretStr(os.environ.get("OPENAI_API_KEY", "").strip())
        return named or None

    @staticmethod
    def inherit_environment() -> dict[str, str]:
        """Return the proxy and index variables of this process that builds are given."""
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
        """Return the sources in order of precedence: options, environment, mergemill.toml."""
        del dotenv_settings, file_secret_settings
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls)


@cache
def describe_settings() -> dict[str, str]:
    """Return name of a setting -> its description, the text below it in `Settings`.

    Pydantic can collect these texts, but takes longer for it than for the rest of the class.
    """
    module = ast.parse(Path(__file__).read_text(encoding="utf-8"))
    body = next(one.body for one in module.body if isinstance(one, ast.ClassDef) and one.name == Settings.__name__)
    return {
        setting.target.id: inspect.cleandoc(below.value.value)
        for setting, below in pairwise(body)
        if isinstance(setting, ast.AnnAssign)
        and isinstance(setting.target, ast.Name)
        and isinstance(below, ast.Expr)
        and isinstance(below.value, ast.Constant)
        and isinstance(below.value.value, str)
    }


def _check_url(value: str, advice: str) -> str:
    """Return an http(s) URL without a slash at the end; `advice` is added to the error about credentials."""
    try:
        parts = urlsplit(value.strip())
        _ = parts.port
    except ValueError as error:
        raise ValueError(f"is not a URL: {error}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ValueError("is not the http(s) URL of an API")
    if parts.username or parts.password:
        raise ValueError(f"contains a name or password; {advice}")
    return value.strip().rstrip("/")
