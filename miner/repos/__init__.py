"""Rank repositories: facts that cost little, a score with its signals, and lists for people to edit.

::

    words, lists, GH Archive dumps -> names -> RepositoryFacts (archive, API, clone) -> rank -> a list for `run @FILE`
"""
