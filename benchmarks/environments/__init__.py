"""How far real repositories get on the ladder without a model: planned, built, collected, most pass twice alike."""
