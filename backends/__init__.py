"""What mergemill runs on: sandboxes, git, clones, clusters, and the services that stages are given."""
