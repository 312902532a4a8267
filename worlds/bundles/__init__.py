"""Bundles of worlds: rows, tasks and files for other programs, and reading EnvScaler's files.

`formats.FORMATS` lists the formats. Every row and every card has `environment: synthetic`.
"""
