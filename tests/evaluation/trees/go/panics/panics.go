package panics
