package slurmtest

import (
	"bytes"
	"context"
	"crypto/rand"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"
)

// login opens an ssh connection, by one way to prove who it is.
func login(t *testing.T, c *Cluster, auth ssh.AuthMethod) (*ssh.Client, error) {
	t.Helper()
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(c.HostKey))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := c.DialContext(context.Background(), "tcp", c.Addr)
	if err != nil {
		return nil, err
	}
	sc, channels, requests, err := ssh.NewClientConn(conn, c.Addr, &ssh.ClientConfig{User: c.User, Auth: []ssh.AuthMethod{auth}, HostKeyCallback: ssh.FixedHostKey(key)})
	if err != nil {
		conn.Close()
		return nil, err
	}
	client := ssh.NewClient(sc, channels, requests)
	t.Cleanup(func() { client.Close() })
	return client, nil
}

func run(client *ssh.Client, line string) (string, error) {
	s, err := client.NewSession()
	if err != nil {
		return "", err
	}
	defer s.Close()
	out, err := s.CombinedOutput(line)
	return strings.TrimSpace(string(out)), err
}

// must is for what has to succeed: must(f(x))(t).
func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func TestSSH(t *testing.T) {
	t.Parallel()
	c := Start(t, Options{MaxSessions: 3})
	byKey := ssh.PublicKeys(must(ssh.ParsePrivateKey(c.Key))(t))
	if _, err := login(t, c, ssh.Password("wrong")); err == nil {
		t.Error("a wrong password lets in")
	}
	if out := must(run(must(login(t, c, ssh.Password(c.Password)))(t), "pwd; id -un"))(t); out != c.Home+"\n"+c.User {
		t.Error(out)
	}
	client := must(login(t, c, byKey))(t)

	// Files there and back, a job in between.
	files := must(sftp.NewClient(client))(t)
	data := []byte(rand.Text())
	f := must(files.Create("in"))(t)
	must(f.Write(data))(t)
	f.Close()
	if out := must(run(client, `sbatch --wait --wrap 'cp in out' && squeue -h -t all -o '%i %T %u'`))(t); out != "Submitted batch job 1\n1 COMPLETED hpc" {
		t.Error(out)
	}
	f = must(files.Open("out"))(t)
	if got := must(io.ReadAll(f))(t); !bytes.Equal(got, data) {
		t.Errorf("%q came back, want %q", got, data)
	}
	if c.Calls("sbatch") != 1 || c.Calls("squeue") != 1 {
		t.Errorf("calls by ssh are counted as %d and %d, there was one each", c.Calls("sbatch"), c.Calls("squeue"))
	}

	// The SFTP channel and two more are all that one connection may have.
	for i := range 3 {
		_, err := client.NewSession()
		if want := i < 2; (err == nil) != want {
			t.Errorf("session %d: %v", i+2, err)
		}
	}

	c.Cut()
	if err := client.Wait(); err == nil {
		t.Error("a connection that was cut ended well")
	}
	client = must(login(t, c, byKey))(t)
	known := c.HostKey
	c.NewHostKey()
	client.Wait() //nolint:errcheck // it ends
	now := c.HostKey
	c.HostKey = known
	if _, err := login(t, c, byKey); err == nil || !strings.Contains(err.Error(), "host key mismatch") {
		t.Errorf("a changed host key: %v", err)
	}
	c.HostKey = now
	must(login(t, c, byKey))(t)
	c.Stop("sshd")
	if _, err := login(t, c, byKey); err == nil {
		t.Error("a login node without sshd lets in")
	}
}

func TestOneTimePasswords(t *testing.T) {
	t.Parallel()
	c := Start(t, Options{OneTime: 2})
	answer := func(code string) ssh.AuthMethod {
		return ssh.KeyboardInteractive(func(_, _ string, questions []string, _ []bool) ([]string, error) {
			return slices.Repeat([]string{code}, len(questions)), nil
		})
	}
	for what, auth := range map[string]ssh.AuthMethod{"a key": ssh.PublicKeys(must(ssh.ParsePrivateKey(c.Key))(t)), "the password": ssh.Password(c.Password),
		"the password, when asked": answer(c.Password), "nothing": answer("")} {
		if _, err := login(t, c, auth); err == nil {
			t.Errorf("%s lets in", what)
		}
	}
	for _, code := range c.OneTimePasswords {
		if out := must(run(must(login(t, c, answer(code)))(t), "id -un"))(t); out != c.User {
			t.Error(out)
		}
		if _, err := login(t, c, answer(code)); err == nil {
			t.Error("a one-time password lets in twice")
		}
	}
}
