package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode"
)

// Derived is the name under which a function's pods, ReplicaSets and images go, where capitals and underscores cannot be. A
// name that is valid there is kept; any other gets a hash as suffix (addFive becomes add-five--1b7af2), so that two functions never share one.
func Derived(name string) string {
	var b strings.Builder
	for i, r := range name {
		switch {
		case unicode.IsUpper(r):
			if i > 0 {
				b.WriteByte('-')
			}
			b.WriteRune(unicode.ToLower(r))
		case r == '_' || r == '.':
			b.WriteByte('-')
		default:
			b.WriteRune(r)
		}
	}
	out := b.String()
	if out == name && !strings.Contains(name, "--") && unicode.IsLower(rune(name[0])) {
		return out
	}
	for strings.Contains(out, "--") {
		out = strings.ReplaceAll(out, "--", "-")
	}
	sum := sha256.Sum256([]byte(name))
	if !unicode.IsLower(rune(out[0])) { // a name begins with a letter in some places
		out = "f-" + out
	}
	if most := maxLabel - len("--") - hex.EncodedLen(3); len(out) > most { // of many capitals
		out = strings.TrimRight(out[:most], "-")
	}
	return out + "--" + hex.EncodeToString(sum[:3])
}

// Service is the name of a function's Service: a label of DNS, so a long one is cut and told from others by a sum.
func Service(name string) string {
	out := "func-" + Derived(name)
	if len(out) <= maxLabel {
		return out
	}
	sum := sha256.Sum256([]byte(name))
	return strings.TrimRight(out[:maxLabel-10], "-") + "--" + hex.EncodeToString(sum[:4])
}

// maxLabel is what a label of a DNS name may have.
const maxLabel = 63

// Repository is the repository of a function's images in the cluster's registry. Image names have no "--" in Docker's grammar but
// they do in OCI's; so that both take it, it becomes two underscores.
func Repository(namespace, name string) string {
	return "functions/" + namespace + "/" + strings.ReplaceAll(Derived(name), "--", "__")
}

// TriggerPrefix begins the names of calls by triggers, and of no others: who says an id of his own cannot take the name that the call for an
// event will have.
const TriggerPrefix = "trigger."
