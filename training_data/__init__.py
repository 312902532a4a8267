"""Training data: rows for trainers, the files that hold them, and the cards of data sets.

What belongs here and what stays with a stage: docs/adr/0027-rows-for-trainers.md.
"""
