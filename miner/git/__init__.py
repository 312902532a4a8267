"""`git:` sources: commits, what they changed, the pull requests they brought in, from a history alone."""
