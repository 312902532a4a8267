"""Programs of a Harbor task: the world in the agent's container, the verifier in another. Standard library alone."""

from pathlib import Path

PROGRAM_FOLDER = Path(__file__).parent
