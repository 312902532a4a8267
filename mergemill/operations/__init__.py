"""Operating a machine: its checks, its status, its images and what killed processes left."""
