package panics

import "testing"

func TestFine(t *testing.T) {}
func TestPanics(t *testing.T) { panic("no way") }
func TestBehind(t *testing.T) {}
