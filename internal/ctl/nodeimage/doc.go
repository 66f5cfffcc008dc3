// Package nodeimage lists, imports, pulls and removes the images of a node, through the API server.
//
// It promises to show the progress of a long transfer. ctl's image calls it. It keeps no state: images that were
// transferred are on the node.
package nodeimage
