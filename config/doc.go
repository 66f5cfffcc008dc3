// Package config is the daemon's configuration: one set of names for flags, the YAML file of --config
// and MINIK8S_* variables, with their defaults and what they mean.
//
// It promises: flags win over variables, variables over the file, the file over the defaults; a name
// that does not exist or a value that cannot be is refused with the name, where it came from and what
// was expected, before anything starts. Everything may import it; it imports nothing of minik8s. It
// only reads.
package config
