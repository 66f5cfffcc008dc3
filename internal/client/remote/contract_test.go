package remote_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"

	"minik8s/internal/apiserver"
	"minik8s/internal/client"
	"minik8s/internal/client/clienttest"
	"minik8s/internal/client/remote"
	"minik8s/internal/registry/registrytest"
)

// The remote client over the real API server, on its unix socket.
func TestContract(t *testing.T) {
	clienttest.Run(t, func(t *testing.T) client.Interface {
		socket := filepath.Join(t.TempDir(), "api.sock")
		srv := apiserver.New(apiserver.Config{Registry: registrytest.New(t), Socket: socket, Log: slog.New(slog.DiscardHandler)})
		ctx, cancel := context.WithCancel(context.Background())
		ready, done := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			if err := srv.Run(ctx, func() { close(ready) }); err != nil {
				t.Error(err)
			}
		}()
		t.Cleanup(func() { cancel(); <-done })
		<-ready
		c, err := remote.New(remote.Config{Socket: socket})
		if err != nil {
			t.Fatal(err)
		}
		return c
	})
}
