"""Sandboxes for foreign code: protocols (`base`, `images`), their backends (`registry`) and the Docker backend."""
