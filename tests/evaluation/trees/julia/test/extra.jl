@test greet("Ada") == "Ada"
