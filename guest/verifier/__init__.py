"""Code that a bundle runs inside the task's container. Copied into bundles as it stands; no stage imports it."""
