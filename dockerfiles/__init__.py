"""Base images: the catalog and the script that finishes every base."""
