"""mergemill's images on an engine: which there are, which may go, and their copies in registries."""
