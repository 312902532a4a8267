"""The trainer's side of the loop, in an environment of its own: torch, transformers and TRL, and nothing of mergemill.

It is given files and addresses, and runs mergemill's commands, as a user's trainer would.
"""
