package local_test

import (
	"testing"

	"minik8s/internal/client"
	"minik8s/internal/client/clienttest"
	"minik8s/internal/client/local"
	"minik8s/internal/registry"
	"minik8s/internal/registry/registrytest"
)

func TestContract(t *testing.T) {
	clienttest.Run(t, func(t *testing.T) client.Interface {
		return local.New(registrytest.New(t), registry.System)
	})
}
