"""Simulated conversations teach: a tiny model is trained on rows of `simulate sft`, then by GRPO on `simulate env`.

The simulator is a script, so that nothing here says how good simulators are: it shows that rows, masks, episodes and
rewards fit into a trainer, and that an episode without a reward moves nothing.
"""
