"""Files that run inside the container: report converter, unittest recorder, coverage collectors, workload plug-in."""

from pathlib import Path

HARNESS_FOLDER = Path(__file__).parent
