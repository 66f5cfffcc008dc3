package minik8s

// SlurmLoginSubresource is the part of a SlurmCluster's path that opens its connection now: POST SlurmLoginAnswers, which is answered
// by a SlurmLoginStep. Where a host asks a person, the next POST has the answers.
const SlurmLoginSubresource = "login"

// SlurmLoginAnswers are what a person answers to a SlurmLoginStep. An empty body begins a login.
type SlurmLoginAnswers struct {
	// ID is that of the step.
	ID string `json:"id,omitempty"`
	// Answers are one for each prompt of the step.
	Answers []string `json:"answers,omitempty"`
	// Secret has a login other than the cluster's own, as a GpuJob may name one. It is for the beginning only.
	Secret string `json:"secret,omitempty"`
}

// SlurmLoginStep says that the connection stands, or what a host asks. A question is open for two minutes after the beginning.
type SlurmLoginStep struct {
	Connected bool `json:"connected"`
	// ID names the login while it is under way.
	ID string `json:"id,omitempty"`
	// Host is who asks, as HOST:PORT: the login node or the one before it.
	Host        string             `json:"host,omitempty"`
	Instruction string             `json:"instruction,omitempty"` // what the host says before it asks
	Prompts     []SlurmLoginPrompt `json:"prompts,omitempty"`
}

// SlurmLoginPrompt is one thing that is asked for.
type SlurmLoginPrompt struct {
	Text string `json:"text"`
	Echo bool   `json:"echo,omitempty"` // the answer may be shown while it is typed
}
