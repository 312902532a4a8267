"""Programming languages: everything that is specific to one language, one module each (see `base.py`)."""
