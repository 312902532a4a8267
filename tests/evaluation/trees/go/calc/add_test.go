package calc

import (
	"fmt"
	"testing"
)

func TestAdd(t *testing.T) {
	for _, c := range []int{1, 2} {
		t.Run(fmt.Sprintf("plus %d", c), func(t *testing.T) {
			if Add(c, 1) != 2 {
				t.Errorf("%d plus 1 is %d", c, Add(c, 1))
			}
		})
	}
}

func TestSkipped(t *testing.T) { t.Skip("not here") }
