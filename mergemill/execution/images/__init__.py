"""mergemill's images on an engine: inventory, pruning, and copies in registries."""
