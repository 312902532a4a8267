"""Languages: what is particular to each, one module each. Below all stages; `base.py` says what a module must have."""
