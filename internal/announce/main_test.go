package announce

import (
	"testing"

	"minik8s/internal/machine"
)

// TestMain gives the tests a machine's network of their own.
func TestMain(m *testing.M) { machine.Run(m.Run) }
