// Package graph draws state machines: as text for a terminal, and as SVG. What a run has done of one is marked.
//
// It promises that every state and every way out of it is in the drawing, and that nothing of a definition is read as markup. It is pure;
// ctl uses it.
package graph
