package gpujob

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/client"
	"minik8s/internal/ctl/brief"
	"minik8s/internal/ctl/exit"
	"minik8s/internal/ctl/session"
)

// Trust confirms the keys that a cluster's hosts show, after asking on a terminal; yes answers beforehand.
func Trust(ctx context.Context, s *session.Session, c *minik8s.SlurmCluster, yes bool) error {
	keys := c.Status.PresentedKeys
	if len(keys) == 0 && (len(c.Spec.HostKeys) == 0 || c.Spec.Jump != nil && len(c.Spec.Jump.HostKeys) == 0) {
		// Nobody has tried yet. That this try fails is what is expected, and the object says why.
		_, failed := loginStep(ctx, s, c, &minik8s.SlurmLoginAnswers{})
		obj, err := s.API.Get(ctx, client.KeyOf(c))
		if err != nil {
			return err
		}
		c = obj.(*minik8s.SlurmCluster)
		if keys = c.Status.PresentedKeys; len(keys) == 0 && failed != nil {
			return failed
		}
	}
	if len(keys) == 0 {
		s.Say("%s: no host has shown a key that is not confirmed", brief.Ref(api.SlurmClusters, c.Name))
		return nil
	}
	patch := map[string]any{}
	for _, k := range keys {
		s.Say("%s shows the key %s", k.Host, k.Fingerprint)
		of, spec := &c.Spec.SSHHost, patch
		if j := c.Spec.Jump; j != nil && k.Host == address(j) {
			of, spec = j, map[string]any{}
			patch["jump"] = spec
		}
		spec["hostKeys"] = append(append([]string{}, of.HostKeys...), k.Key)
	}
	if !yes {
		if !s.InTTY {
			return exit.Usagef("compare it with what the centre publishes, and confirm it with --yes")
		}
		fmt.Fprint(s.Out, "Is that the centre's? (yes/no) ") //nolint:errcheck // a terminal
		line, err := bufio.NewReader(s.In).ReadString('\n')
		if err != nil || strings.TrimSpace(line) != "yes" {
			return exit.Failf(exit.Failed, "nothing was confirmed")
		}
	}
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": c.ResourceVersion}, "spec": patch})
	if err != nil {
		return err
	}
	if _, err := s.API.Patch(ctx, client.KeyOf(c), client.Patch{Type: types.MergePatchType, Data: data}, client.WriteOptions{}); err != nil {
		return err
	}
	s.Say("%s: confirmed", brief.Ref(api.SlurmClusters, c.Name))
	return nil
}

// address is a host as its keys are shown: an IPv6 address is in brackets.
func address(h *minik8s.SSHHost) string {
	port := h.Port
	if port == 0 {
		port = 22
	}
	return net.JoinHostPort(h.Host, strconv.Itoa(int(port)))
}
