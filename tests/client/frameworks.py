"""Frameworks whose code runs the adapters, in their environments of `tests.exporters.consumers`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from tests.exporters.consumer_programs import TOKENIZER
from tests.exporters.consumers import SLIME_COMMIT, TRAINER_PACKAGES, TRAINERS, find_newer_python, install, run_command

ADAPTERS = Path(__file__).parents[2] / "client" / "mergemill_client" / "adapters"
SHARED = ("__init__", "connection", "containers", "scored")
"""Modules of the folder that are no adapter."""
VERSIONS: Mapping[str, str] = {
    "verl": "verl==0.9.1",
    "skyrl": "skyrl==0.4.0",
    "slime": f"slime=={SLIME_COMMIT}",
    "nemo_gym": "nemo-gym==0.4.0",
    "verifiers": "verifiers==0.4.0",
    "trl": "trl==1.16.0",
    "openenv": "openenv-core==0.3.0",
}
"""Module of the adapter -> framework and version; of slime the commit."""


def install_framework(name: str) -> Path:
    """Return the `bin` folder of an environment of verifiers or OpenEnv, or of NeMo-Gym, which needs Python 3.12."""
    return install(VERSIONS[name], find_newer_python() if name == "nemo_gym" else sys.executable)


def install_trainers(folder: Path) -> Path:
    """Return the `bin` folder of verl's and SkyRL's environment, and write a tokenizer to a folder."""
    assert {VERSIONS["verl"], VERSIONS["skyrl"]} <= set(TRAINERS)
    packages = (*TRAINER_PACKAGES, "cloudpathlib", "jaxtyping")
    return _add_tokenizer(install("torch==2.9.1", find_newer_python(), *packages, bare=TRAINERS), folder)


def install_trl(folder: Path) -> Path:
    """Return the `bin` folder of TRL's environment, and write a tokenizer to a folder."""
    packages = ("torch==2.9.1", "transformers==5.23.0", "datasets==5.2.0", "jmespath")
    return _add_tokenizer(install(VERSIONS["trl"], find_newer_python(), *packages), folder)


def _add_tokenizer(command: Path, folder: Path) -> Path:
    run_command(command, "python", "-c", TOKENIZER, folder / "tokenizer", cwd=folder)
    return command
