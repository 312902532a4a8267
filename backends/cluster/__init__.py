"""Clusters that stages run on: the protocol (`base`) and threads of this machine (`local`)."""
