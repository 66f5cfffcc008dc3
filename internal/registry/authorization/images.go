package authorization

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api"
)

// imagesPath is above all that the cluster's own registry of images answers. What follows is that of the OCI distribution
// specification: NAME/manifests/REFERENCE, NAME/blobs/DIGEST. The name of an image that belongs to a namespace is
// KIND/NAMESPACE/NAME, as functions/default/hello.
const imagesPath = "/v2/"

// authorizeImage lets a node fetch the images of its pods: a function's image has the function's files.
func (a *Authorizer) authorizeImage(q Attributes, node string) error {
	if q.Verb != "get" && q.Verb != "head" {
		return Forbidden(q, "a node may only fetch images")
	}
	rest := strings.TrimPrefix(q.Path, imagesPath)
	if rest == "" { // whether there is a registry
		return nil
	}
	repository := rest
	for _, part := range []string{"/manifests/", "/blobs/"} {
		if name, _, ok := strings.Cut(rest, part); ok {
			repository = name
		}
	}
	if words := strings.Split(repository, "/"); len(words) == 3 && a.runs(node, words[1], repository) {
		return nil
	}
	return Forbidden(q, "no pod on this node has this image")
}

// runs reports whether a pod of the node, in a namespace, has an image of a repository.
func (a *Authorizer) runs(node, namespace, repository string) bool {
	of := func(list []corev1.Container) bool {
		for i := range list {
			if _, image, ok := strings.Cut(list[i].Image, "/"); ok && strings.HasPrefix(image, repository) && strings.IndexAny(image[len(repository):]+"@", "@:") == 0 {
				return true
			}
		}
		return false
	}
	for obj := range a.objects.InNamespace(api.Pods, namespace) {
		if p := obj.(*corev1.Pod); p.Spec.NodeName == node && (of(p.Spec.Containers) || of(p.Spec.InitContainers)) {
			return true
		}
	}
	return false
}
