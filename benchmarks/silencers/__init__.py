"""Forgers who switch assertions off: how often they are paid, over the tasks of a database."""
