"""`git:` sources: commits, changed files and merged pull requests from a repository's history only."""
