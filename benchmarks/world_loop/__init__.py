"""Worlds teach: a tiny model is trained on solutions of scenarios, then by reinforcement in states that were held out.

It takes `benchmarks.loop`'s workspace and trainer. Everything in between is mergemill's own: worlds and scenarios are
imported through their gates, agents are sampled in them, and their rewards are those of the scenarios' checks.
"""
