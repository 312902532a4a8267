"""Forgers who read the tests: how often they are paid, over the controls of the tasks of a database."""
