package policy

import (
	"testing"

	"minik8s/internal/machine"
)

func TestMain(m *testing.M) { machine.Run(m.Run) }
