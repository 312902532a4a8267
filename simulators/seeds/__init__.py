"""Seeds: reference conversations from files of several formats."""
