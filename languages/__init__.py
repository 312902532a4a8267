"""Programming languages: everything that is specific to a language, a module each (see `base.py`)."""
