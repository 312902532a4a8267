error("not in a test set")

@test true
