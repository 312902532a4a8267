"""The side of this machine: containers of worlds, the connection to them, episodes."""
