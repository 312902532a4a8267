@test greet("Ada") == "Hello Ada"
@test greet("Bob") == "Hello Ada"
