package api

import (
	"strings"

	utilrand "k8s.io/apimachinery/pkg/util/rand"
)

// GenerateName adds five random letters to a base, as Kubernetes does for metadata.generateName. The
// base is cut so that the name is a DNS label.
func GenerateName(base string) string {
	const maxBase = 63 - 5
	if len(base) > maxBase {
		base = base[:maxBase]
	}
	return strings.ToLower(base) + utilrand.String(5)
}
