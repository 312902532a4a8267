"""Recording gateway between agents and a model: three client dialects, a log that nothing paid for is lost from."""
