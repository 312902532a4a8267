"""Repair of failed builds: observe an attempt, let a policy propose edits of the draft, build again, undo regressions.

`edits` defines the edits, `edit_checks` the forbidden edits, `policy` the interface of policies, `loop` the repair
loop.
"""
