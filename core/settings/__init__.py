"""Settings by capability. `core.config.Settings` has all of them."""
