// Package gpujob is what people do with GPU jobs beside writing them: send sources, read logs, list and fetch files, confirm the
// key of a login node, log in there.
//
// It promises: a download has the checksum that the server says, or fails and leaves nothing; it never writes outside the folder
// that it was given, and goes on where it broke when it is repeated. An upload has what lies in the folder, links as links.
//
// The commands in package ctl call it. It uses the API alone, so it works wherever there is a kubeconfig.
package gpujob
