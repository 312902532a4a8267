"""From a theme to a program: a plan of state, rules and operations, a class, a method a call, and their assembly.

Section 3.1 of EnvScaler (arXiv 2601.05808), with the rules of `worlds.program` on every answer.
"""
