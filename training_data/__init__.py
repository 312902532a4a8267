"""Training data: rows for trainers, the files that hold them, and the cards of data sets. See docs/adr/0027."""
