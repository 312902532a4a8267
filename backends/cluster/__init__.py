"""Where stages run: the local cluster, behind an interface that others can fill."""
