// Package imageaccess is how a machine gets into registries of images: the logins that it has, in docker's form, and with which
// registries it speaks plain HTTP.
//
// It promises Kubernetes' rule of which logins fit an image (pkg/credentialprovider/keyring.go), and that no error has a part of a
// login. Only logins that stand in the file are known; the programs that docker can ask for them (credsStore, credHelpers) are not run.
//
// The kubelet uses it for pulls, with the logins of Secrets and of this machine's file, and masters for the images of functions that
// they push. It keeps nothing: a file is read again each time.
//
//	logins.go  docker's config.json, and which logins fit an image
//	plain.go   plain HTTP
package imageaccess
