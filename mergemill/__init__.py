"""mergemill: merged changes become verified software-engineering tasks with runnable environments."""

__version__ = "0.1.0"
