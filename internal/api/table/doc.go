// Package table makes the rows that people see: the columns of kubectl get, and those of the two seed systems that
// minik8s continues.
//
// It promises, for each kind and layout, a row with as many cells as there are columns. Cells are strings, int64s and
// bools, and are made from the object alone; what the object does not have is shown as "-" or "<none>". The default
// layout has the columns and cells of Kubernetes.
//
// The API server answers requests for Tables with it, and ctl prints with it. It holds no state and does no I/O.
package table
