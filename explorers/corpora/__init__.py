"""Corpora: pages, the readers of folders, files and rows, and the folder of a corpus in the store."""
