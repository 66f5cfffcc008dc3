package login

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
)

// Target is a host and how to log in there.
type Target struct {
	Addr string // host:port
	User string
	// Password is for the methods password and keyboard-interactive; Key is a private key as ssh-keygen writes it.
	Password   string
	Key        []byte
	Passphrase string // of the key
	// HostKeys are the keys that the host may show: "TYPE BASE64", or a fingerprint, "SHA256:...".
	HostKeys []string
	// Interactive is a host where a person has to answer; see Node.Login. The password is not used there.
	Interactive bool
	// Jump is a host through which this one is reached.
	Jump *Target
}

// Equal reports whether two targets are the same in everything.
func (t *Target) Equal(o *Target) bool {
	if t == nil || o == nil {
		return t == o
	}
	return t.Addr == o.Addr && t.User == o.User && t.Passphrase == o.Passphrase && t.Password == o.Password && t.Interactive == o.Interactive &&
		string(t.Key) == string(o.Key) && slices.Equal(t.HostKeys, o.HostKeys) && t.Jump.Equal(o.Jump)
}

// HostKeyError is a host that showed a key which is not among the given ones.
type HostKeyError struct {
	Host        string // host:port
	Key         string // TYPE BASE64; empty: it has none of the types of the given ones, so none was shown
	Fingerprint string // SHA256:...
	Known       bool   // there are given ones: the key has changed, or somebody is in between
}

func (e *HostKeyError) Error() string {
	if e.Key == "" {
		return fmt.Sprintf("%s has no key of the types of its host keys: it was set up anew, or somebody listens in between; nothing was sent", e.Host)
	}
	if e.Known {
		return fmt.Sprintf("%s shows the key %s, which is none of its host keys: it was set up anew, or somebody listens in between; nothing was sent", e.Host, e.Fingerprint)
	}
	return fmt.Sprintf("%s shows the key %s, which nobody has confirmed; nothing was sent", e.Host, e.Fingerprint)
}

// RefusedError is a host that did not let the user in.
type RefusedError struct {
	User, Host string
	Methods    string // what was tried
	Final      bool   // it is not tried any more
}

func (e *RefusedError) Error() string {
	text := fmt.Sprintf("%s does not let %s in (tried: %s)", e.Host, e.User, e.Methods)
	if e.Final {
		text += "; that is not tried again, lest the account be locked, until the Secret is changed or `minik8sd ctl gpu login` tries it once more"
	}
	return text
}

// CredentialError is a key or a password that cannot be used at all.
type CredentialError struct{ Problem string }

func (e *CredentialError) Error() string { return e.Problem }

// ParseHostKey checks an entry of Target.HostKeys. A key may have the host's names before it, as in known_hosts, and a
// comment after it; both are ignored.
func ParseHostKey(entry string) error {
	_, _, err := parseHostKey(entry)
	return err
}

// parseHostKey returns a fingerprint or a key.
func parseHostKey(entry string) (fingerprint string, key ssh.PublicKey, err error) {
	entry = strings.TrimSpace(entry)
	if rest, ok := strings.CutPrefix(entry, "SHA256:"); ok {
		rest = strings.TrimRight(rest, "=")
		if len(rest) != 43 {
			return "", nil, errors.New("a fingerprint is SHA256: and 43 letters, as ssh-keygen -l shows it")
		}
		return "SHA256:" + rest, nil, nil
	}
	if fields := strings.Fields(entry); len(fields) > 2 && !keyType(fields[0]) && keyType(fields[1]) {
		entry = strings.Join(fields[1:], " ") // a line of known_hosts
	}
	key, _, _, _, err = ssh.ParseAuthorizedKey([]byte(entry))
	if err != nil {
		return "", nil, errors.New(`expected a key as "ssh-ed25519 AAAA...", as ssh-keyscan prints it, or a fingerprint, "SHA256:..."`)
	}
	return "", key, nil
}

func keyType(word string) bool {
	return strings.HasPrefix(word, "ssh-") || strings.HasPrefix(word, "ecdsa-") || strings.HasPrefix(word, "sk-")
}

// pins are the keys that a host may show.
type pins struct {
	keys         [][]byte
	fingerprints []string
	types        []string // of the keys
}

func parsePins(entries []string) (pins, error) {
	var p pins
	for _, e := range entries {
		fingerprint, key, err := parseHostKey(e)
		switch {
		case err != nil:
			return p, err
		case key != nil:
			p.keys, p.types = append(p.keys, key.Marshal()), append(p.types, key.Type())
		default:
			p.fingerprints = append(p.fingerprints, fingerprint)
		}
	}
	return p, nil
}

// rounds are the algorithms to offer, one connection each: a host has a key of each type and shows the first that it is
// asked for, so a host whose key is given is asked for that type. Of a fingerprint the type is not known.
func (p pins) rounds() [][]string {
	if len(p.fingerprints) == 0 && len(p.types) == 0 {
		return [][]string{nil}
	}
	var out [][]string
	if len(p.types) > 0 {
		var first []string
		for _, t := range p.types {
			first = append(first, algorithms(t)...)
		}
		out = append(out, first)
	}
	if len(p.fingerprints) > 0 {
		for _, t := range []string{ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoRSA, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521} {
			out = append(out, algorithms(t))
		}
	}
	return out
}

// algorithms are the ways in which a key of a type signs.
func algorithms(keyType string) []string {
	if keyType == ssh.KeyAlgoRSA {
		return []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256}
	}
	return []string{keyType}
}

// check is the callback of the handshake.
func (p pins) check(host string) ssh.HostKeyCallback {
	return func(_ string, _ net.Addr, key ssh.PublicKey) error {
		shown, fingerprint := key.Marshal(), ssh.FingerprintSHA256(key)
		for _, k := range p.keys {
			if subtle.ConstantTimeCompare(k, shown) == 1 {
				return nil
			}
		}
		if slices.Contains(p.fingerprints, fingerprint) {
			return nil
		}
		return &HostKeyError{Host: host, Fingerprint: fingerprint, Known: len(p.keys)+len(p.fingerprints) > 0,
			Key: strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))}
	}
}

// methods are the ways in which a user shows who he is.
func (t *Target) methods(ctx context.Context, ask Ask) ([]ssh.AuthMethod, error) {
	var out []ssh.AuthMethod
	if len(t.Key) > 0 {
		parse := func() (ssh.Signer, error) { return ssh.ParsePrivateKey(t.Key) }
		if t.Passphrase != "" {
			parse = func() (ssh.Signer, error) { return ssh.ParsePrivateKeyWithPassphrase(t.Key, []byte(t.Passphrase)) }
		}
		signer, err := parse()
		var locked *ssh.PassphraseMissingError
		switch {
		case errors.As(err, &locked):
			return nil, &CredentialError{"the private key has a passphrase, and the Secret has none: add passphrase to it"}
		case err != nil:
			return nil, &CredentialError{"the private key cannot be read: expected what ssh-keygen writes" + hint(t.Passphrase)}
		}
		out = append(out, ssh.PublicKeys(signer))
	}
	switch {
	case t.Interactive && ask == nil:
		return nil, &NeededError{Host: t.Addr}
	case t.Interactive:
		return append(out, t.asked(ctx, ask)...), nil
	case t.Password != "":
		sent := false // a host may ask for it in two ways: a wrong one is sent once
		out = append(out, ssh.PasswordCallback(func() (string, error) {
			sent = true
			return t.Password, nil
		}), ssh.KeyboardInteractive(func(name, instruction string, questions []string, echos []bool) ([]string, error) {
			if sent && len(questions) > 0 {
				return nil, errors.New(sentAlready)
			}
			return t.answer(name, instruction, questions, echos)
		}))
	}
	if len(out) == 0 {
		return nil, &CredentialError{"neither a private key nor a password is given"}
	}
	return out, nil
}

func hint(passphrase string) string {
	if passphrase != "" {
		return ", with the passphrase in the Secret"
	}
	return ""
}

const sentAlready = "the password was refused already"

// answer gives the password to a host that asks for one thing that is not to be shown. What asks for more, a one-time
// password for instance, needs a person.
func (t *Target) answer(_, _ string, questions []string, echos []bool) ([]string, error) {
	switch {
	case len(questions) == 0:
		return nil, nil
	case len(questions) == 1 && !echos[0]:
		return []string{t.Password}, nil
	}
	return nil, errors.New("the host asks for more than a password: a person has to answer")
}
