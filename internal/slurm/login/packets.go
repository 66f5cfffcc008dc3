package login

import (
	"fmt"

	"github.com/pkg/sftp"
)

const (
	// largePacket is the most that OpenSSH reads or writes for one request, since version 8.5. Every server takes 32 KiB, and with
	// these it is the packets that cost: large ones bring a file in half the time.
	largePacket = 255 << 10
	// largeRequests is how many are under way for a file: 2 MiB, as much as 64 of the small ones, and as a channel of SSH takes.
	largeRequests = 8
)

// larger has a client use large packets if its host takes them. The host must be known to: a server that reads less than it is asked
// for leaves holes in files that are read with many requests at a time.
func larger(files *sftp.Client, version string, limits bool) error {
	if !takesLarge(version, limits) {
		return nil
	}
	for _, option := range []sftp.ClientOption{sftp.MaxPacketUnchecked(largePacket), sftp.MaxConcurrentRequestsPerFile(largeRequests)} {
		if err := option(files); err != nil { // nothing has been asked yet
			return err
		}
	}
	return nil
}

// takesLarge reports whether a host takes large packets, by its SSH version and whether its SFTP server has an extension to tell its
// limits: it is asked for neither, since those of OpenSSH are the same in all versions that have it.
func takesLarge(version string, limits bool) bool {
	var major, minor int
	n, err := fmt.Sscanf(version, "SSH-2.0-OpenSSH_%d.%d", &major, &minor)
	return limits && err == nil && n == 2 && (major > 8 || major == 8 && minor >= 5)
}
