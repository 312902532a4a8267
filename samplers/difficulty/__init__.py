"""Pass rates: their summary, staged sampling, and how much data is enough."""
