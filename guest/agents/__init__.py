"""Programs in the containers of agents: the way to the gateway, a portable Python, and a start of OpenHands."""

from pathlib import Path

PROGRAM_FOLDER = Path(__file__).parent
