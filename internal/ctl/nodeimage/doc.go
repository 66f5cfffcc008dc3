// Package nodeimage lists, imports, pulls and removes the images of a node, through the API server.
//
// It promises that it says how far a long transfer has come. ctl's image calls it. It keeps no state: what was transferred is
// the node's.
package nodeimage
