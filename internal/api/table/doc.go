// Package table makes the rows that people see: the columns of kubectl get, and those of the two
// systems that minik8s continues.
//
// It promises, for each kind and layout, a row with as many cells as there are columns, made of strings,
// int64s and bools, from the object alone; what the object does not hold is shown as "-" or "<none>".
// In the default layout columns and cells are those of Kubernetes.
//
// The API server answers requests for Tables with it; ctl prints with it. It holds no state and does
// no I/O.
package table
