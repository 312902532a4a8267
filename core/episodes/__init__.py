"""Services of episodes: the protocol of their players (`player`), and the table that holds them (`table`).

Worlds and simulated environments are served by the same table. Paths and fields of HTTP are those of each service.
"""
