package stats_test

import (
	"testing"

	"minik8s/internal/machine"
)

// TestMain gives the tests a machine's network of their own: eth0, through which the default route leads, and its other end wire0.
func TestMain(m *testing.M) { machine.Run(m.Run) }
