"""Search over a corpus: tokens, the index of BM25, and the protocol of all searches."""
