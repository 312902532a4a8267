"""Language models: the protocol (`base`), their cost (`meter`) and OpenAI-compatible endpoints (`client`)."""
