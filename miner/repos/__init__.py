"""Which repositories are worth mining: facts that cost little, a ranking that explains itself, lists that people edit.

::

    words, lists, GH Archive dumps -> names -> Facts (archive, API, clone) -> rank -> a list for `mergemill run @FILE`
"""
