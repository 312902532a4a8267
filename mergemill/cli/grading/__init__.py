"""Commands of grading: grade, audit."""
