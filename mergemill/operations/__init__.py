"""Operating a machine: its checks, its status, its images and the things that killed processes left."""
