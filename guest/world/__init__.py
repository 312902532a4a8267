"""Code that runs in the container: server, process starter, processes of worlds and checks. Standard library alone.

Its modules are copied into the container under their own names; `canonical` and `schema_check` are used outside, too.
"""

from pathlib import Path

CONTAINER_FOLDER = Path(__file__).parent
