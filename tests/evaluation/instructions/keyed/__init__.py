"""Recorded conversations of five scaffolds with a key of the instructions that each breaks.

`key.py` has the conversations and what they break, `record.py` plays them through the real programs, and the folder
`recordings` has what it recorded.
"""
