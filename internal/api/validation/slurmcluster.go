package validation

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"
	"unicode"

	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"minik8s/internal/api/minik8s"
)

// The limits of pollSeconds: faster would be a load for the centre, slower than an hour loses sight of jobs.
const minPoll, maxPoll = 5, 3600

// SlurmCluster checks a SlurmCluster. The Secrets that it names need not exist.
func SlurmCluster(c *minik8s.SlurmCluster) field.ErrorList {
	s := &c.Spec
	errs := sshHost(spec, &s.SSHHost)
	if s.Jump != nil {
		errs = append(errs, sshHost(spec.Child("jump"), s.Jump)...)
	}
	errs = append(errs, remoteFolder(spec.Child("folder"), s.Folder)...)
	if s.PollSeconds < minPoll || s.PollSeconds > maxPoll {
		errs = append(errs, field.Invalid(spec.Child("pollSeconds"), s.PollSeconds, fmt.Sprintf("must be between %d and %d", minPoll, maxPoll)))
	}
	errs = append(errs, shellLines(spec.Child("setup"), s.Setup)...)
	d, at := &s.Defaults, spec.Child("defaults")
	errs = append(errs, slurmWord(at.Child("partition"), d.Partition)...)
	errs = append(errs, slurmWord(at.Child("account"), d.Account)...)
	errs = append(errs, slurmWord(at.Child("qos"), d.QOS)...)
	return append(errs, slurmWords(at.Child("modules"), d.Modules)...)
}

// SlurmClusterStatusUpdate checks the conditions.
func SlurmClusterStatusUpdate(c, _ *minik8s.SlurmCluster) field.ErrorList {
	return metav1validation.ValidateConditions(c.Status.Conditions, field.NewPath("status", "conditions"))
}

func sshHost(at *field.Path, h *minik8s.SSHHost) field.ErrorList {
	var errs field.ErrorList
	if h.Host == "" {
		errs = append(errs, field.Required(at.Child("host"), "the login node's name or address"))
	} else if _, err := netip.ParseAddr(h.Host); err != nil {
		errs = append(errs, say(at.Child("host"), h.Host, utilvalidation.IsDNS1123Subdomain(strings.ToLower(h.Host)))...)
	}
	errs = append(errs, say(at.Child("port"), h.Port, utilvalidation.IsValidPortNum(int(h.Port)))...)
	errs = append(errs, slurmWord(at.Child("user"), h.User)...)
	errs = append(errs, nameOf(at.Child("loginSecret"), h.LoginSecret)...)
	for i, k := range h.HostKeys {
		if !isHostKey(k) {
			errs = append(errs, field.Invalid(at.Child("hostKeys").Index(i), k,
				`expected a key as "ssh-ed25519 AAAA...", as ssh-keyscan prints it, or a fingerprint, "SHA256:..." and 43 letters, as ssh-keygen -l shows it`))
		}
	}
	return errs
}

// hostKeyTypes are the types of keys by which hosts are known.
var hostKeyTypes = []string{"ssh-ed25519", "ssh-rsa", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521",
	"sk-ssh-ed25519@openssh.com", "sk-ecdsa-sha2-nistp256@openssh.com"}

// isHostKey reports whether an entry is a fingerprint, a key, or a line of known_hosts. A key is looked into as far as its
// parts go (RFC 4253, 6.6), which finds one that was cut off or mistyped.
func isHostKey(entry string) bool {
	entry = strings.TrimSpace(entry)
	if strings.ContainsFunc(entry, unicode.IsControl) {
		return false
	}
	if sum, ok := strings.CutPrefix(entry, "SHA256:"); ok {
		sum = strings.TrimRight(sum, "=")
		_, err := base64.RawStdEncoding.DecodeString(sum)
		return len(sum) == 43 && err == nil
	}
	fields := strings.Fields(entry)
	if len(fields) > 2 && !slices.Contains(hostKeyTypes, fields[0]) { // the names of the host
		fields = fields[1:]
	}
	if len(fields) < 2 || !slices.Contains(hostKeyTypes, fields[0]) {
		return false
	}
	blob, err := base64.StdEncoding.DecodeString(fields[1])
	if err != nil {
		return false
	}
	var parts [][]byte
	for len(blob) > 0 {
		if len(blob) < 4 {
			return false
		}
		n := binary.BigEndian.Uint32(blob)
		if blob = blob[4:]; uint64(n) > uint64(len(blob)) {
			return false
		}
		parts, blob = append(parts, blob[:n]), blob[n:]
	}
	return len(parts) > 1 && string(parts[0]) == fields[0] && (fields[0] != "ssh-ed25519" || len(parts[1]) == 32)
}

// remoteFolder checks a folder on the login node: absolute, or below the user's home.
func remoteFolder(at *field.Path, p string) field.ErrorList {
	refuse := func(detail string) field.ErrorList { return field.ErrorList{field.Invalid(at, p, detail)} }
	switch {
	case p == "":
		return nil
	case strings.ContainsFunc(p, unicode.IsControl):
		return refuse("must have no line breaks and no other control characters")
	case strings.HasPrefix(p, "~"):
		return refuse("a path that does not begin with a slash is below the user's home: leave the ~ out")
	case strings.Contains(p, `\`):
		return refuse("must have no backslash: folders are parted by /")
	case slices.Contains(strings.Split(p, "/"), ".."):
		return refuse("must not have a \"..\"")
	case path.Clean(p) != p || p == "/":
		return refuse("must be the path of a folder in its shortest form, and not /")
	case len(p) > 512:
		return refuse("must have at most 512 bytes")
	}
	return nil
}
