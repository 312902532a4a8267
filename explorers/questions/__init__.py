"""Questions as they are first written, from the facts of a walk."""
