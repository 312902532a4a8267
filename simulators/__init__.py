"""Simulated environments: a model plays users and tools (Simia, arXiv 2511.01824).

Data path of `mergemill simulate sft`: `seeds` read conversations, `prefilter` refuses unusable conversations, `jobs`
plans the calls, `prompting` writes their prompts, `simulation` makes them and `ledger` keeps every answer, `parsing`
and `post_processing` turn answers into conversations, `exports` writes rows.
"""
