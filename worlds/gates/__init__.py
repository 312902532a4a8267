"""Gates of worlds and scenarios, without a language model."""
