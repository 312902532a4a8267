"""Where changes come from: sources of history in, pull requests and candidates out."""
