"""Services that all work runs on: services, clusters, nodes, images, progress and telemetry."""
