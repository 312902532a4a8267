"""Sandbox of a Kubernetes cluster: a pod for each run, pool container, session and process."""
