module Greet

export greet

greet(name) = "Hello $name"

end
