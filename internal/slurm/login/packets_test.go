package login

import "testing"

func TestTakesLarge(t *testing.T) {
	for version, want := range map[string]bool{
		"SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3": true,
		"SSH-2.0-OpenSSH_8.5":                    true,
		"SSH-2.0-OpenSSH_10.0p2":                 true,
		"SSH-2.0-OpenSSH_8.4p1":                  false,
		"SSH-2.0-OpenSSH_7.9":                    false,
		"SSH-2.0-AsyncSSH_2.14.0":                false,
		"SSH-2.0-OpenSSH_":                       false,
		"":                                       false,
	} {
		if got := takesLarge(version, true); got != want {
			t.Errorf("%s: %v", version, got)
		}
		if takesLarge(version, false) {
			t.Errorf("%s takes them without telling its limits", version)
		}
	}
}
