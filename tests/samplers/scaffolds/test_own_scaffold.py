"""The scaffold of a user's own that the page shows works as it stands there."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from samplers.scaffolds.registry import load_scaffold
from taskdb.records.rollouts import RolloutStatus
from tests.samplers.bench import AgentBench
from tests.samplers.scripted_model import Turn

PAGE = Path(__file__).parents[3] / "docs/guide/agents/scaffolds.md"


@pytest.mark.docker
def test_the_scaffold_on_the_page_solves_a_task(
    bench: AgentBench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = re.search(r"```python\n(.*?)\n```\n", PAGE.read_text(), re.DOTALL)
    assert code
    assert len(code[1].splitlines()) <= 35
    (tmp_path / "my_scaffold.py").write_text(code[1])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))  # without the folder: the scaffold is found in it all the same
    scaffold = load_scaffold("my_scaffold:OneShotScaffold")
    commands = "\n".join(bench.script_gold())
    result = bench.run(scaffold, lambda request: Turn(text=f"Do this:\n```bash\n{commands}\n```"))
    assert (result.rollout.reason, result.rollout.value) == (None, 1.0), result.log
    assert result.patch == bench.gold
    # It leaves out what should be added to its system prompt, which it has none of: no value, rather than a wrong one.
    lost = bench.run(scaffold, lambda request: Turn(text="Nothing."), system="Be brief.").rollout
    assert (lost.status, lost.reason, lost.value) == (RolloutStatus.INFRASTRUCTURE, "system-not-delivered", None)
    assert (lost.system_exchange, lost.detail) == (None, "none of 1 requests has the text of --system")
