"""Training data: rows for trainers, the files that hold them, and the cards of data sets.

The code that belongs here and the code that stays with a stage: docs/adr/0027-rows-for-trainers.md.
"""
