package ctl

import (
	"cmp"
	"context"
	"strconv"

	"github.com/urfave/cli/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/ctl/console"
	"minik8s/internal/ctl/session"
)

// clusterServiceLabel marks the Services that are the cluster's own, as kubectl cluster-info wants them.
const clusterServiceLabel = "kubernetes.io/cluster-service"

// clusterServiceName is a label with such a Service's name for people.
const clusterServiceName = "kubernetes.io/name"

func (p *program) clusterInfoCommand() *cli.Command {
	return &cli.Command{
		Name: "cluster-info", Usage: "where the API and the cluster's own services are",
		Action: func(c *cli.Context) error {
			s, err := p.session(c)
			if err != nil {
				return err
			}
			return clusterInfo(c.Context, s)
		},
	}
}

func clusterInfo(ctx context.Context, s *session.Session) error {
	in := client.ListOptions{Namespace: metav1.NamespaceSystem, Labels: labels.SelectorFromSet(labels.Set{clusterServiceLabel: "true"})}
	if s.NamespaceGiven {
		in.Namespace = s.Namespace
	}
	services, _, err := client.All[*corev1.Service](ctx, s.API, api.Services, in)
	if err != nil {
		return err
	}
	s.Say("The control plane is running at %s", s.Paint(console.Green, s.API.At()))
	for _, svc := range services {
		name := cmp.Or(svc.Labels[clusterServiceName], svc.Name)
		s.Say("%s is running at %s", name, s.Paint(console.Green, linkTo(s.API.URL(), svc)))
	}
	return nil
}

// linkTo is where a Service is reached from outside: its load balancer's address, or else by the API.
func linkTo(base string, svc *corev1.Service) string {
	if len(svc.Spec.Ports) == 0 {
		return base + "/api/v1/namespaces/" + svc.Namespace + "/services/" + svc.Name
	}
	port := svc.Spec.Ports[0]
	scheme := ""
	if port.Name == "https" || port.Port == 443 {
		scheme = "https"
	}
	if list := svc.Status.LoadBalancer.Ingress; len(list) > 0 {
		return cmp.Or(scheme, "http") + "://" + cmp.Or(list[0].IP, list[0].Hostname) + ":" + strconv.Itoa(int(port.Port))
	}
	return base + "/api/v1/namespaces/" + svc.Namespace + "/services/" + utilnet.JoinSchemeNamePort(scheme, svc.Name, port.Name) + "/proxy"
}
