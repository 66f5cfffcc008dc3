package certs

import (
	"encoding/base64"

	"sigs.k8s.io/yaml"
)

// Kubeconfig returns a kubeconfig with which kubectl reaches the cluster as one user.
func Kubeconfig(cluster, server string, ca []byte, user string, client Pair) ([]byte, error) {
	b64 := base64.StdEncoding.EncodeToString
	type m = map[string]any
	return yaml.Marshal(m{
		"apiVersion": "v1", "kind": "Config", "current-context": cluster,
		"clusters": []m{{"name": cluster, "cluster": m{"server": server, "certificate-authority-data": b64(ca)}}},
		"users": []m{{"name": user, "user": m{
			"client-certificate-data": b64(client.Cert), "client-key-data": b64(client.Key)}}},
		"contexts": []m{{"name": cluster, "context": m{"cluster": cluster, "user": user}}},
	})
}
