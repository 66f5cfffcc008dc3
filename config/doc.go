// Package config is the daemon's configuration: one set of names for flags, the YAML file of --config
// and MINIK8S_* variables, with their defaults and what they mean.
//
// It promises: flags win over variables, variables over the file, the file over the defaults; an unknown name or an
// invalid value is refused before anything starts, with the name, its source and what was expected. Everything may
// import it; it imports nothing of minik8s. It only reads.
package config
