"""Simulated conversations read by the code of trainers as it is on PyPI: rows in are rows trained, and the right texts.

The pack is small, so that a token for each byte fits into the tests' model.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.samplers.exports import trainer_programs as programs
from tests.samplers.scripted_model import ScriptedModel
from tests.simulators.making import PLAIN, answer_well, simulate, write_seeds
from tests.simulators.test_packs import write_pack

pytestmark = pytest.mark.slow
N_SEEDS = 4
TEXT = {"type": "string"}


def make_tool(name: str, *arguments: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": dict.fromkeys(arguments, TEXT), "required": list(arguments)}
    return {"name": name, "description": f"{name}.", "parameters": schema}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained")
    tools = [
        make_tool("find_user_id_by_email", "email"),
        make_tool("get_order_details", "order_id"),
        make_tool("cancel_pending_order", "order_id", "reason"),
    ]
    write_pack(folder / "shop", tools=tools, policy="Serve the customers.", format="turn_tolerance = 5\n")
    write_seeds(folder / "seeds.json", range(N_SEEDS))
    with ScriptedModel(answer_well) as model:
        done = simulate(folder, model, *PLAIN, "--domain", "shop", "--simulate-pause", "0")
    assert (done.exit_code, done.lines[-1]["kept"]) == (0, N_SEEDS), done.stderr
    return folder / "out"


def check_trained(rows: list[dict[str, Any]]) -> None:
    """Check that each row is trained, and of each the agent's answers and calls alone."""
    assert len(rows) == N_SEEDS
    for row in rows:
        trained = row["trained"]
        assert trained.count("Shall I cancel it?") == trained.count("dollars are on their way") == 1
        assert min(trained.count("get_order_details"), trained.count("cancel_pending_order")) >= 1
        assert "Serve the customers." in row["all"]
        for text in ("Serve the customers.", "Yes please", '"status"'):
            assert text not in trained


@pytest.mark.parametrize("name", ["sharegpt", "sharegpt-hermes"])
def test_llama_factory_trains_every_row(folder: Path, tmp_path: Path, name: str) -> None:
    command = programs.install_llama_factory()
    tokenizer = programs.make_tokenizer(command, tmp_path)
    check_trained(programs.read(command, programs.LLAMA_FACTORY, folder / name, tokenizer, "no", cwd=tmp_path))


def test_trl_trains_every_row(folder: Path, tmp_path: Path) -> None:
    command = programs.install_trl()
    tokenizer = programs.make_tokenizer(command, tmp_path)
    check_trained(programs.read(command, programs.TRL, folder / "messages", tokenizer, cwd=tmp_path))


def test_axolotl_trains_every_row(folder: Path, tmp_path: Path) -> None:
    command = programs.install_axolotl()
    tokenizer = programs.make_tokenizer(command, tmp_path)
    check_trained(programs.read(command, programs.AXOLOTL, folder / "messages", tokenizer, cwd=tmp_path))
