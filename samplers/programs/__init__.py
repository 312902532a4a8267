"""Programs that run in the containers of tasks: each is installed once, into a volume that containers read.

A task's image has neither the program nor the programs that it needs, and must not change: two tasks would differ by
the scaffold.
"""
