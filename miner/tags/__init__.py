"""Tags of changes: rules collect weighted evidence for kinds. `tag.py` is the entry point, `routes.py` maps kinds."""
