"""Long-horizon questions over a corpus: pages, search, browsing, walks, questions, their evolution, gates, answers.

A model walks from a seed and collects facts with quotes; a question is written of them; rounds of evolution remove,
blur and replace its clues until no search leads straight to the answer (WebExplorer, arXiv 2509.06501). Programs and
samples of solvers keep the questions that have a single supported answer and can be solved.
"""
