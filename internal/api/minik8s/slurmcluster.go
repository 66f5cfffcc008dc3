package minik8s

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SlurmCluster is a computing centre that runs Slurm, and how to log in there.
type SlurmCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   SlurmClusterSpec   `json:"spec,omitempty"`
	Status SlurmClusterStatus `json:"status,omitempty"`
}

// SlurmClusterSpec is what people write.
type SlurmClusterSpec struct {
	SSHHost `json:",inline"`
	// Jump is a host through which the login node is reached.
	Jump *SSHHost `json:"jump,omitempty"`
	// Folder is where jobs have their folders on the login node: a path below the user's home, or an absolute one.
	Folder string `json:"folder,omitempty"`
	// PollSeconds is the time between two questions to Slurm's controller, for all jobs together.
	PollSeconds int32 `json:"pollSeconds,omitempty"`
	// Setup are lines of shell that come before everything that jobs run, as in "source /etc/profile.d/modules.sh".
	Setup []string `json:"setup,omitempty"`
	// Defaults are for jobs that do not say themselves.
	Defaults SlurmDefaults `json:"defaults,omitempty"`
}

// SSHHost is a host, who logs in there, and the keys by which it is known.
type SSHHost struct {
	// Host is a name or an address.
	Host string `json:"host"`
	// Port is 22 if it is not given.
	Port int32 `json:"port,omitempty"`
	// User is who logs in; empty: the Secret's username.
	User string `json:"user,omitempty"`
	// LoginSecret is a Secret of the same namespace with ssh-privatekey (and passphrase, if it has one), or password, and
	// perhaps username: the keys of Kubernetes' types kubernetes.io/ssh-auth and kubernetes.io/basic-auth.
	LoginSecret string `json:"loginSecret,omitempty"`
	// HostKeys are the keys that the host may show, as "ssh-ed25519 AAAA..." or as fingerprints, "SHA256:...". While there
	// is none, nothing is sent to the host: status says which key it showed, for somebody to confirm.
	HostKeys []string `json:"hostKeys,omitempty"`
	// Interactive is a host where a person has to answer, as for a one-time password: `minik8sd ctl gpu login` opens the
	// connection, and nothing happens until then. A key of LoginSecret is used first, a password is not.
	Interactive bool `json:"interactive,omitempty"`
}

// SlurmDefaults are a cluster's defaults for its jobs.
type SlurmDefaults struct {
	Partition string   `json:"partition,omitempty"`
	Account   string   `json:"account,omitempty"`
	QOS       string   `json:"qos,omitempty"`
	Modules   []string `json:"modules,omitempty"`
}

// SlurmClusterStatus is what the GPU part writes.
type SlurmClusterStatus struct {
	// PresentedKeys are the keys that a host showed and nobody has confirmed.
	PresentedKeys []PresentedKey `json:"presentedKeys,omitempty"`
	// Conditions: Connected says whether the connection stands, and if not why.
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
}

// PresentedKey is a key that a host showed.
type PresentedKey struct {
	// Host is HOST:PORT.
	Host string `json:"host"`
	// Key is the key as it stands in known_hosts: type and base64.
	Key string `json:"key"`
	// Fingerprint is SHA256:..., as ssh shows it.
	Fingerprint string `json:"fingerprint"`
}

// SlurmClusterList is a list of SlurmCluster objects.
type SlurmClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []SlurmCluster `json:"items"`
}

// The conditions of a SlurmCluster, and their reasons.
const (
	SlurmAnswers = "SlurmAnswers" // False, and only then there: squeue or sacct fails; marks are still read
	SlurmSilent  = "NoAnswer"     // its reason

	SlurmConnected        = "Connected"
	SlurmHostKeyUnknown   = "HostKeyUnknown"   // nobody has confirmed the key yet
	SlurmHostKeyChanged   = "HostKeyChanged"   // another key than the confirmed ones
	SlurmLoginRefused     = "LoginRefused"     // the host does not take the key or the password
	SlurmLoginNeeded      = "LoginNeeded"      // a person has to log in
	SlurmSecretMissing    = "SecretMissing"    // there is no such Secret, or not what is needed in it
	SlurmUnreachable      = "Unreachable"      // no connection
	SlurmCommandsMissing  = "CommandsMissing"  // there is no sbatch on the login node
	SlurmConnectionStands = "ConnectionStands" // the condition is true
)
