"""Mending builds that fail: observe, let a policy propose edits of the draft, build anew, undo what was worse.

`edits` is what can be changed, `refusals` what may not, `policy` who proposes, `loop` the way through.
"""
