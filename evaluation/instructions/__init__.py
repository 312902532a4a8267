"""Obedience: an agent's actions, read from its recorded answers, and checks of whether it followed instructions."""
