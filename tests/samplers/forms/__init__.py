"""Forms of streams and conversations: how other systems write them, and whether they are read or refused."""
