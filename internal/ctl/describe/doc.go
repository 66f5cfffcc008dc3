// Package describe shows everything about one object: its metadata, then details for some kinds (pods, nodes, secrets, services)
// or its content as YAML for others, then its events.
//
// It promises to show no secrets: only the sizes of a Secret's values, and also of passwords in manifests. ctl's
// describe calls it. It asks the API and keeps no state.
package describe
