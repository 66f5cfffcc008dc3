package ctl

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const networking = `apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: x, annotations: {ingressclass.kubernetes.io/is-default-class: "true"}}
spec: {controller: example.com/x}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web, namespace: default}
spec:
  ingressClassName: x
  defaultBackend: {service: {name: rest, port: {name: http}}}
  tls: [{hosts: [a.example], secretName: cert}]
  rules:
  - host: a.example
    http: {paths: [{path: /a, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: web, namespace: default}
spec:
  podSelector: {matchLabels: {app: web}}
  policyTypes: [Ingress, Egress]
  ingress:
  - from: [{ipBlock: {cidr: 10.0.0.0/8, except: [10.1.0.0/16]}}, {podSelector: {}, namespaceSelector: {matchLabels: {team: a}}}, {namespaceSelector: {}}]
    ports: [{port: 80, endPort: 90, protocol: TCP}, {port: http}]
  - {}
`

// ctl knows Ingresses, their classes and policies by kubectl's words, and describes them.
func TestNetworking(t *testing.T) {
	f := newFake(t)
	file := filepath.Join(t.TempDir(), "all.yaml")
	if err := os.WriteFile(file, []byte(networking), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := f.ctl("", "create", "-f", file); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	for word, wants := range map[string][]string{
		"ingress web": {"Class:            x", "service rest:http", "cert for a.example", "a.example", "/a", "-> service web:80 (Prefix)"},
		"ing web":     {"service web:80"}, "ingressclass x": {"example.com/x", "Default:          true"},
		"netpol web": {"Pods:             pods with app=web", "from 10.0.0.0/8 except 10.1.0.0/16 or all pods of namespaces with team=a or all pods of all namespaces, at 80-90/TCP or http",
			"from anywhere, at any port", "Lets Out:         <none>"},
		"networkpolicies web": {"app=web"},
	} {
		got := f.ctl("", append([]string{"describe"}, strings.Fields(word)...)...)
		for _, want := range wants {
			if got.code != 0 || !strings.Contains(got.out, want) {
				t.Errorf("%s does not show %q: %+v", word, want, got)
			}
		}
	}
}
