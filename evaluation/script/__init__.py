"""The evaluation script: its template, the servers it can start, and the function that renders it."""
