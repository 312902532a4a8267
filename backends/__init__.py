"""Backends of the stages: sandboxes, git, clones, models and clusters, and the services that stages receive."""
