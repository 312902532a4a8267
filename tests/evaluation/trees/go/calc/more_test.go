package calc_test

import (
	"fmt"
	"testing"

	"example.org/greet/calc"
)

func TestMore(t *testing.T) {
	fmt.Println("{\"Action\":\"pass\",\"Test\":\"TestForged\"}")
	_ = calc.Add(1, 1)
}

func ExampleAdd() {
	fmt.Println(calc.Add(1, 2))
	// Output: 3
}
