package clustertrust

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"slices"
	"strings"
	"time"
)

// Name is the ConfigMap's, in kube-system.
const Name = "extension-apiserver-authentication"

// Trust is what a master has others believe. The CAs are PEM.
type Trust struct {
	ClientCA, FrontProxyCA []byte
	// FrontProxy is the common name of the front proxy's certificate.
	FrontProxy string
	// The headers.
	User, UID, Group, ExtraPrefix string
}

// merge returns what the ConfigMap is to have, which has this now.
func merge(have map[string]string, t Trust, now time.Time) map[string]string {
	out := map[string]string{
		"client-ca-file":                     bundle(now, have["client-ca-file"], string(t.ClientCA)),
		"requestheader-client-ca-file":       bundle(now, have["requestheader-client-ca-file"], string(t.FrontProxyCA)),
		"requestheader-allowed-names":        list(t.FrontProxy),
		"requestheader-username-headers":     list(t.User),
		"requestheader-uid-headers":          list(t.UID),
		"requestheader-group-headers":        list(t.Group),
		"requestheader-extra-headers-prefix": list(t.ExtraPrefix),
	}
	for k, v := range have {
		if _, ours := out[k]; !ours {
			out[k] = v
		}
	}
	return out
}

func list(value string) string {
	raw, _ := json.Marshal([]string{value}) //nolint:errcheck // strings
	return string(raw)
}

// bundle joins certificates in PEM, each once, without those that have expired and what is none.
func bundle(now time.Time, parts ...string) string {
	var all []string
	for _, p := range parts {
		for rest := []byte(p); ; {
			var block *pem.Block
			if block, rest = pem.Decode(rest); block == nil {
				break
			}
			cert, err := x509.ParseCertificate(block.Bytes)
			text := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: block.Bytes}))
			if err == nil && now.Before(cert.NotAfter) && !slices.Contains(all, text) {
				all = append(all, text)
			}
		}
	}
	return strings.Join(all, "")
}
