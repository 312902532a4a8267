"""Simulated environments of `mergemill simulate env`, for trainers: a client, and an adapter for each framework.

An adapter imports its framework and is not imported by anything else. The server is named by arguments of the
framework's configuration, else by `MERGEMILL_ENV_URL` and `MERGEMILL_ENV_TOKEN`. Its rewards are estimates of a model,
and an episode without one has none: each adapter hands that on so that the sample is dropped, and never as 0.
"""

from mergemill_client.simulated.environment import SimulatedEnvironment, connect

__all__ = ["SimulatedEnvironment", "connect"]
