// Package describe tells all about one object: its metadata, what is known of its kind (pods, nodes, secrets), else what
// it says as YAML, and its events.
//
// It promises that nothing secret is shown: of a Secret's values only the sizes, of passwords in manifests too. ctl's
// describe calls it. It asks the API and keeps no state.
package describe
