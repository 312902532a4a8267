error("bad")
