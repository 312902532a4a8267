"""Reading a world's program without running it: tools, usage graph, rules, foreign keys."""
