"""A plan: the cluster, the services around it and their prices. Every default here is assumed, not measured."""

from __future__ import annotations

from dataclasses import dataclass, fields

from core.errors import InputError

ANY, REPOSITORY = "any", "repository"
SQLITE, POSTGRESQL = "sqlite", "postgresql"


_NEEDED = (
    *("repositories", "limit", "nodes", "sandboxes_per_node", "cores", "drivers", "tokens", "crawl_ahead"),
    *("database_cores", "clone_gbit", "registry_gbit", "node_gbit", "judge_per_minute", "model_concurrency"),
    "requests_per_gpu",
)
"""Parts without which nothing goes on."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a run has at its disposal."""

    repositories: int = 10_000
    limit: int = 30
    """Candidates of each repository, as `--limit`."""
    nodes: int = 16
    sandboxes_per_node: int = 64
    """Workers of a node, each with one change and its containers."""
    cores: int = 64
    """Of a node."""
    memory_gb: float = 256
    """Of a node."""
    sandbox_memory_gb: float = 4
    """Limit of a container, as `--memory-mb`; a node must have it for every sandbox."""
    disk_gb: float = 2000
    """Of a node, for images."""
    placement: str = ANY
    """`any`: a worker takes the next change, as the pipeline does; `repository`: one of its node's first."""
    node_failures_per_1000_hours: float = 1.0
    node_restart_seconds: float = 300
    drivers: int = 1
    """`mergemill run` commands that share the database and divide the repositories and the workers."""
    miners: int = 0
    """Commands that only mine, before the drivers read the candidates; 0: the drivers mine, as `mergemill run` does."""
    database: str = SQLITE
    database_cores: int = 8
    """Of a PostgreSQL server; SQLite has one writer at a time."""
    read_seconds: float = 0.005
    """What a driver takes to read one candidate that a miner stored."""
    tokens: int = 1
    """Of the forge, 5,000 points an hour each."""
    request_seconds: float = 0.7
    """Response time of the forge."""
    crawl_ahead: int = 3
    """Repositories that each driver or miner crawls ahead, as `--github-ahead`."""
    clone_gbit: float = 1.0
    """Bandwidth of clones, all together."""
    registry_gbit: float = 10.0
    """Bandwidth of the image registry."""
    node_gbit: float = 2.0
    """Bandwidth of a node."""
    compression: float = 0.354
    """Transferred bytes of an image's byte (measured on one base image: 157 of 444 MB)."""
    base_bytes: float = 444e6
    """Of a base image (measured)."""
    judge_requests: int = 1
    """Requests to a model for each verified change; 0: rules alone."""
    judge_seconds: float = 10
    judge_per_minute: float = 600
    rollouts: int = 0
    """Attempts of an agent at each certified task."""
    turns: int = 30
    model_seconds: float = 4
    """Of a turn."""
    tool_seconds: float = 1
    """Of a turn, in the sandbox."""
    tool_cores: float = 0.5
    model_concurrency: int = 256
    """Requests that the model servers answer at full speed."""
    requests_per_gpu: int = 64
    core_hour_dollars: float = 0.04
    gpu_hour_dollars: float = 2.5
    terabyte_month_dollars: float = 20
    judge_dollars: float = 0.01
    """Of a request."""
    slice_seconds: float | None = None
    """Length of the pieces into which work is cut, each some waiting and some computing; None: a stage is one piece
    with its mean use of the cores. Pieces matter on a machine with few cores."""
    efficiency: tuple[float, ...] = (1.0,)
    """Speed of a core when 1, 2, ... cores are busy."""

    def __post_init__(self) -> None:
        """Check the plan.

        Raises:
            InputError: a part is missing, or the nodes lack memory for their sandboxes.
        """
        for name in _NEEDED:
            if getattr(self, name) <= 0:
                raise InputError(f"{name} must be more than 0", advice="no run is possible without")
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, int | float) and value < 0:
                raise InputError(f"{field.name} must not be negative", advice="name 0 or more")
        if self.sandboxes_per_node * self.sandbox_memory_gb > self.memory_gb:
            advice = f"at most {int(self.memory_gb / self.sandbox_memory_gb)} sandboxes a node, or more memory"
            needed = f"{self.sandboxes_per_node} sandboxes of {self.sandbox_memory_gb:g} GB"
            raise InputError(f"a node with {self.memory_gb:g} GB has no room for {needed}", advice=advice)
        if self.drivers > self.sandboxes:
            raise InputError("a driver needs at least one sandbox", advice=f"at most {self.sandboxes} drivers")

    @property
    def sandboxes(self) -> int:
        """Sandboxes of all nodes."""
        return self.nodes * self.sandboxes_per_node
