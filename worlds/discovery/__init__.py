"""From seed tasks to themes: rules, a filter, the inference of an environment, a choice by clusters.

Section 3.1 of EnvScaler (arXiv 2601.05808), with the rules of its code.
"""
