"""Base images: the catalog, the script that finishes every base, and the template of environments' Dockerfiles."""
