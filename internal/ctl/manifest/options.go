package manifest

import (
	"minik8s/internal/client"
	"minik8s/internal/ctl/exit"
	"minik8s/internal/ctl/session"
)

// Options say how to write documents.
type Options struct {
	// DryRun lets the server check everything and change nothing.
	DryRun bool
	// Validation is how unknown fields are treated: strict, warn or ignore; "" is strict.
	Validation string
	// ServerSide lets the server merge an apply, with the field manager FieldManager. ForceConflicts takes over fields
	// that others have set to other values.
	ServerSide, ForceConflicts bool
	FieldManager               string
	// Recreate lets a replacement delete and create an object again if it cannot be changed.
	Recreate bool
}

func (o Options) write() (client.WriteOptions, error) {
	opts := client.WriteOptions{DryRun: o.DryRun, FieldManager: session.Manager}
	switch o.Validation {
	case "strict", "true", "":
		opts.FieldValidation = "Strict"
	case "warn":
		opts.FieldValidation = "Warn"
	case "ignore", "false":
		opts.FieldValidation = "Ignore"
	default:
		return opts, exit.Usagef("--validate=%s is not known: strict, warn or ignore", o.Validation)
	}
	return opts, nil
}
