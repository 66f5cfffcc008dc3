package remote

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// FromKubeconfig is a client of the cluster that a context of a kubeconfig file names; an empty
// context means the file's current one.
func FromKubeconfig(path, context string) (*Client, error) {
	cfg, err := ConfigFromKubeconfig(path, context)
	if err != nil {
		return nil, err
	}
	return New(cfg)
}

// ConfigFromKubeconfig reads a context of a kubeconfig file. Files that it refers to are read too. The error names
// what is missing or not supported.
func ConfigFromKubeconfig(path, context string) (Config, error) {
	raw, err := clientcmd.LoadFromFile(path)
	if err != nil {
		return Config{}, fmt.Errorf("the kubeconfig %s: %w", path, err)
	}
	if err := clientcmd.ResolveLocalPaths(raw); err != nil {
		return Config{}, fmt.Errorf("the kubeconfig %s: %w", path, err)
	}
	if context == "" && raw.CurrentContext == "" {
		return Config{}, fmt.Errorf("the kubeconfig %s names no current-context", path)
	}
	rc, err := clientcmd.NewNonInteractiveClientConfig(*raw, context, &clientcmd.ConfigOverrides{}, nil).ClientConfig()
	if err != nil {
		return Config{}, fmt.Errorf("the kubeconfig %s: %w", path, err)
	}
	if err := usable(rc); err != nil {
		return Config{}, fmt.Errorf("the kubeconfig %s: %w", path, err)
	}
	if err := rest.LoadTLSFiles(rc); err != nil {
		return Config{}, fmt.Errorf("the kubeconfig %s: %w", path, err)
	}
	token := rc.BearerToken
	if rc.BearerTokenFile != "" {
		data, err := os.ReadFile(rc.BearerTokenFile)
		if err != nil {
			return Config{}, fmt.Errorf("the kubeconfig %s: its token: %w", path, err)
		}
		token = strings.TrimSpace(string(data))
	}
	return Config{
		Server: rc.Host, Token: token, ServerName: rc.ServerName, Insecure: rc.Insecure,
		CA: rc.CAData, Cert: rc.CertData, Key: rc.KeyData,
	}, nil
}

// usable refuses, by name, authentication methods that are not supported (exec and auth-provider plugins, for
// example): a request without credentials would fail with a misleading reason.
func usable(rc *rest.Config) error {
	switch {
	case rc.ExecProvider != nil:
		return errors.New("its user logs in through an exec plugin, which is not served here: use a certificate or a token")
	case rc.AuthProvider != nil:
		return errors.New("its user logs in through an auth-provider, which is not served here: use a certificate or a token")
	case rc.Username != "":
		return errors.New("its user logs in with a password, which is not served here: use a certificate or a token")
	}
	return nil
}
