// Package printer formats what ctl prints: the server's tables, ctl's own tables, and objects as YAML, JSON or names.
//
// It promises that later rows align with the columns of the first rows, and that a cell is one line. ctl's commands and
// packages call it. It keeps no state except that of a grid while it is being printed.
package printer
