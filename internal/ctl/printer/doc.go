// Package printer lays out what ctl prints: the tables that a server sends, tables of ctl's own, and objects as YAML, as
// JSON or by their names.
//
// It promises that rows which come later stand under the columns of the first, and that a cell is one line. The commands
// and rooms of ctl call it. It keeps no state but that of a grid that is being printed.
package printer
