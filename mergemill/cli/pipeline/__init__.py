"""Commands of the pipeline: run and its stages, repos, tags."""
