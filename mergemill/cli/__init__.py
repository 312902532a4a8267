"""The command line (typer). No logic: every command calls what does the work and prints what it says."""
