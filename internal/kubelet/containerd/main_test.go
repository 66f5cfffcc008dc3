package containerd

import (
	"os"
	"testing"

	"minik8s/internal/machine"
)

// TestMain gives the tests a machine's network of their own. A process that a test starts to be killed
// stays in its parent's.
func TestMain(m *testing.M) {
	if os.Getenv(crashDir) != "" {
		os.Exit(m.Run())
	}
	machine.Run(m.Run)
}
