"""The pipeline: its table of stages, its runs, and the kinds of tasks that it derives."""
