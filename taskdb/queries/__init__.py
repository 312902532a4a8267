"""Queries of the task database. Results are plain JSON data, with the keys that the command line prints."""
