"""Commands of bundles: export, bundle."""
