package external_test

import (
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"

	"minik8s/internal/machine"
	"minik8s/internal/store"
	"minik8s/internal/store/external"
	"minik8s/internal/store/external/externaltest"
	"minik8s/internal/store/storetest"
)

func TestMain(m *testing.M) {
	externaltest.Main()
	machine.Run(m.Run)
}

var prefixes atomic.Int32

// config is that of a new cluster, with a prefix of its own.
func config(t *testing.T, s *externaltest.Server) external.Config {
	return external.Config{Servers: []string{s.URL}, Prefix: fmt.Sprint("/test-", prefixes.Add(1)), CAFile: s.CAFile, CertFile: s.CertFile, KeyFile: s.KeyFile,
		Cluster: "cluster", New: true, Name: "m1", API: "192.0.2.1:6443", Identity: "m1", Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
}

func open(t *testing.T, cfg external.Config) *external.Store {
	t.Helper()
	s, err := external.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// All clusters of the suite are in one etcd.
func TestContract(t *testing.T) {
	server := externaltest.Start(t)
	storetest.Run(t, func(t *testing.T) store.Store { return open(t, config(t, server)) })
}
