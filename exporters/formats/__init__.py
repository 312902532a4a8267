"""Export formats, a module for each, or for several that share a writer."""
