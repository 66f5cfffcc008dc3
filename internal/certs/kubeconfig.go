package certs

import (
	"encoding/base64"

	"sigs.k8s.io/yaml"
)

// Kubeconfig returns a kubeconfig with which kubectl reaches the cluster as one user.
func Kubeconfig(cluster, server string, ca []byte, user string, client Pair) ([]byte, error) {
	b64 := base64.StdEncoding.EncodeToString
	return kubeconfig(cluster, entry{"server": server, "certificate-authority-data": b64(ca)},
		user, entry{"client-certificate-data": b64(client.Cert), "client-key-data": b64(client.Key)})
}

// KubeconfigOfFiles returns a kubeconfig that names the files of the CA, the client's certificate and its key, so that it
// stays right when the certificate is renewed.
func KubeconfigOfFiles(cluster, server, ca, user, cert, key string) ([]byte, error) {
	return kubeconfig(cluster, entry{"server": server, "certificate-authority": ca},
		user, entry{"client-certificate": cert, "client-key": key})
}

type entry = map[string]any

func kubeconfig(cluster string, where entry, user string, who entry) ([]byte, error) {
	return yaml.Marshal(entry{
		"apiVersion": "v1", "kind": "Config", "current-context": cluster,
		"clusters": []entry{{"name": cluster, "cluster": where}},
		"users":    []entry{{"name": user, "user": who}},
		"contexts": []entry{{"name": cluster, "context": entry{"cluster": cluster, "user": user}}},
	})
}
