"""Gates of questions: programs first, then judges, samples without tools, solvers and rivals."""
