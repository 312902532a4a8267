"""Assessment of a world by two models: the first chooses calls, the other judges the results that came of them.

Section 3.1 of EnvScaler (arXiv 2601.05808). The gates of `worlds.gates`, which need no model, come first.
"""
