"""Mining: read changes from their sources and select candidates."""
