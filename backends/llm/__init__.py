"""Language models: what one is (`base`), what it may cost (`meter`), and those behind OpenAI-compatible addresses."""
