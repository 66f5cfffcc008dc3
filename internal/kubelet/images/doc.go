// Package images sees to it that the image of a container is on the node before the container starts.
//
// It promises: Ensure follows the container's imagePullPolicy as Kubernetes does (pkg/kubelet/images/image_manager.go),
// tells in Events what it does, logs in at registries with the pod's imagePullSecrets, and ends a pull that is no
// longer needed because the image has come another way (an archive, an import by hand). Its errors are
// plan.ActionErrors, which say as what the pod's status shows them and how soon the pull is retried; the retry
// itself is the plan's (plan/retry.go), so that nothing waits here.
//
// The kubelet's worker calls Ensure, in a goroutine of the action; whoever brings images calls Changed. It calls the
// runtime and, for secrets, the client. Nothing of it survives a kill -9: a pull is begun again, and the runtime
// keeps the layers that it has.
//
//	images.go       Ensure: by the pull policy
//	pull.go         one pull, with its progress and its logins
//	retry.go        what a failure is called, and how soon it is retried
//	arrivals.go     waking those who wait for an image
//	pullsecrets.go  which logins fit an image
package images
