// Package chart draws how numbers change over time, as an SVG picture: panels below each other with one axis of time. It is
// pure. "make demo-autoscale" draws with it.
package chart
