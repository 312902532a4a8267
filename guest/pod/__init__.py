"""Programs in the pods of Kubernetes: a relay of connections, and a cut of the network."""

from pathlib import Path

POD_FOLDER = Path(__file__).parent
