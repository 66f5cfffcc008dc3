// Command incluster is the program of an image that a test makes: it does what a stock client in a pod does, by client-go's own
// configuration for pods, and prints the names of the Services of its namespace. Another namespace, and a write, have to be refused.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "incluster:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	cfg, err := rest.InClusterConfig()
	if err != nil {
		return err
	}
	namespace, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return err
	}
	cfg.APIPath, cfg.GroupVersion, cfg.NegotiatedSerializer = "/api", &corev1.SchemeGroupVersion, serializer.NewCodecFactory(scheme).WithoutConversion()
	cfg.ContentType = runtime.ContentTypeProtobuf
	c, err := rest.RESTClientFor(cfg)
	if err != nil {
		return err
	}
	var services corev1.ServiceList
	if err := c.Get().Namespace(string(namespace)).Resource("services").Do(ctx).Into(&services); err != nil {
		return err
	}
	var names []string
	for i := range services.Items {
		names = append(names, services.Items[i].Name)
	}
	if err := c.Get().Namespace("kube-system").Resource("services").Do(ctx).Error(); !apierrors.IsForbidden(err) {
		return fmt.Errorf("another namespace: %v", err)
	}
	if err := c.Delete().Namespace(string(namespace)).Resource("services").Name(names[0]).Do(ctx).Error(); !apierrors.IsForbidden(err) {
		return fmt.Errorf("a write: %v", err)
	}
	fmt.Println(strings.Join(names, " "))
	return nil
}
