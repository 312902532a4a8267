"""`mergemill sample` on scenarios as a process, with a server of worlds without a container.

python -m tests.samplers.worlds.driver FOLDER UPSTREAM ATTEMPTS SCAFFOLD [USER]
"""

from __future__ import annotations

import sys
from pathlib import Path

from core.settings.group import replace_values
from mergemill.agents.sampling.progress import JsonSamplingProgress
from mergemill.agents.sampling.request import WorldSampleRequest
from mergemill.agents.sampling.world_scaffolds import make_world_scaffolds
from mergemill.agents.sampling.worlds import sample_scenarios
from tests.samplers.worlds.database import make_settings
from tests.samplers.worlds.local_server import open_local_server
from tests.samplers.worlds.player import AGENT


def main() -> None:
    """Sample all scenarios of a folder's database."""
    folder, upstream, attempts, scaffold, *user = sys.argv[1:]
    settings = replace_values(make_settings(Path(folder)), {"upstream": upstream})
    request = WorldSampleRequest(
        scaffolds=make_world_scaffolds([scaffold], "".join(user)), model=AGENT, attempts=int(attempts)
    )
    progress = JsonSamplingProgress(out=sys.stdout)
    sys.exit(sample_scenarios(request, settings, progress, open_local_server))


if __name__ == "__main__":
    main()
