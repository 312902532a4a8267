"""`mergemill worlds discover|build|assess|scenarios|run`: worlds and scenarios that models make."""
