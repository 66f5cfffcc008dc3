package network_test

import (
	"testing"

	"minik8s/internal/machine"
	"minik8s/internal/network/hosttest"
)

// TestMain gives the tests a machine's network of their own.
func TestMain(m *testing.M) {
	hosttest.Main()
	machine.Run(m.Run)
}
