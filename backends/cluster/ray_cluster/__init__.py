"""Cluster of Ray: worker processes on the nodes that have a Docker engine. The only package that imports ray.

A worker is an actor that takes a record at a time. It sends each result at once to a mailbox, an actor of its own,
from which the driver takes them in batches: generators are not among the features that a driver outside of the cluster
can use. A record is given to a worker as an attempt; messages of an attempt that is over (its node was lost, and came
back) are dropped, so no record has results of two attempts that the driver did not put in order.
"""
