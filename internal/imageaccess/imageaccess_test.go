package imageaccess_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"minik8s/internal/imageaccess"
)

func TestPlain(t *testing.T) {
	insecure := []string{"plain.example", "other.example:81"}
	for host, want := range map[string]bool{
		"localhost:5000": true, "127.0.0.1": true, "[::1]:5000": true, "plain.example:80": true, "plain.example": true,
		"other.example:81": true, "other.example:82": false, "docker.io": false, "10.0.0.1:5000": false,
	} {
		if got := imageaccess.Plain(host, insecure); got != want {
			t.Errorf("plain HTTP to %s: %v", host, got)
		}
	}
}

// A file has logins, or a clear error that tells nothing of what is in it.
func TestFile(t *testing.T) {
	at := filepath.Join(t.TempDir(), "config.json")
	for text, says := range map[string]string{
		`{"auths": {"r": {"auth": "czNjcmV0OnMzY3JldA=="}, "none": {}, "bad": {"auth": "s3cret"}}}`: "",
		`s3cret`:              "expected docker's config.json",
		`{"auths": "s3cret"}`: "expected docker's config.json",
		`{"auths": {"r": {}}, "credsStore": "s3cret"}`: "they have to stand in auths",
		`{"credHelpers": {"r": "s3cret"}}`:             "kept by another program",
	} {
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := imageaccess.File(at)
		if says == "" {
			if err != nil || len(got) != 1 || got["r"] != (imageaccess.Login{Username: "s3cret", Password: "s3cret"}) {
				t.Errorf("%v, %v", got, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), at) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := imageaccess.File(at + "x"); err == nil {
		t.Error("a file that is not there")
	}
	if got, err := imageaccess.File(""); err != nil || got != nil {
		t.Error(got, err)
	}
}
