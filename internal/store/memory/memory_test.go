package memory_test

import (
	"testing"

	"minik8s/internal/store"
	"minik8s/internal/store/memory"
	"minik8s/internal/store/storetest"
)

func TestContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store { return memory.New() })
}
