package servicecidr

import (
	"context"
	"log/slog"
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"minik8s/internal/api"
	"minik8s/internal/client"
	ct "minik8s/internal/controller/controllertest"
)

func cidr(name string, ranges ...string) *networkingv1.ServiceCIDR {
	return &networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: ranges}}
}

func service(name, address string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: corev1.ServiceSpec{ClusterIP: address, Ports: []corev1.ServicePort{{Port: 80}}}}
}

func remove(t *testing.T, c *ct.Cluster, kind *api.Kind, namespace, name string) {
	t.Helper()
	if _, err := c.Admin().Delete(c.Context(), client.Key{Kind: kind, Namespace: namespace, Name: name}, nil); err != nil {
		t.Fatal(err)
	}
}

// A ServiceCIDR is Ready, and when it is deleted it says what holds it and goes with the last of them: Services and IPAddresses
// that people have made.
func TestHeld(t *testing.T) {
	c := ct.New(t)
	c.Start(New(c.As("servicecidr-controller"), c.Views(), slog.New(slog.DiscardHandler)).Run)
	until := func(what, name string, cond func(*networkingv1.ServiceCIDR, *metav1.Condition) bool) {
		t.Helper()
		ct.Until(c, what, api.ServiceCIDRs, func(all []*networkingv1.ServiceCIDR) bool {
			for _, x := range all {
				if x.Name == name {
					return cond(x, apimeta.FindStatusCondition(x.Status.Conditions, networkingv1.ServiceCIDRConditionReady))
				}
			}
			return cond(nil, nil)
		})
	}
	terminating := func(says string) func(*networkingv1.ServiceCIDR, *metav1.Condition) bool {
		return func(_ *networkingv1.ServiceCIDR, ready *metav1.Condition) bool {
			return ready != nil && ready.Status == metav1.ConditionFalse && ready.Reason == networkingv1.ServiceCIDRReasonTerminating && strings.HasSuffix(ready.Message, ": "+says)
		}
	}
	gone := func(x *networkingv1.ServiceCIDR, _ *metav1.Condition) bool { return x == nil }
	ct.Create(c, Default(netip.MustParsePrefix("10.96.0.5/16")))
	until("the default one", api.DefaultServiceCIDR, func(x *networkingv1.ServiceCIDR, ready *metav1.Condition) bool {
		return x.Spec.CIDRs[0] == "10.96.0.0/16" && ready != nil && ready.Status == metav1.ConditionTrue
	})
	ct.Create(c, cidr("more", "10.97.0.0/24"))
	ct.Create(c, service("in", "10.97.0.7"))
	ct.Create(c, service("out", "10.98.0.7"))
	ct.Create(c, &networkingv1.IPAddress{ObjectMeta: metav1.ObjectMeta{Name: "10.97.0.9"},
		Spec: networkingv1.IPAddressSpec{ParentRef: &networkingv1.ParentReference{Resource: "things", Name: "b"}}})
	remove(t, c, api.ServiceCIDRs, "", "more")
	until("both", "more", terminating("service default/in, ipaddress 10.97.0.9"))
	remove(t, c, api.IPAddresses, "", "10.97.0.9")
	until("the Service", "more", terminating("service default/in"))
	remove(t, c, api.Services, "default", "in")
	until("nothing", "more", gone)

	// Another one that has the address, too, is enough for it.
	ct.Create(c, cidr("small", "10.99.0.0/24"))
	ct.Create(c, service("both", "10.99.0.7"))
	remove(t, c, api.ServiceCIDRs, "", "small")
	until("held", "small", terminating("service default/both"))
	ct.Create(c, cidr("large", "10.99.0.0/16"))
	until("covered", "small", gone)
}

// blind never shows a Service by a watch.
type blind struct{ client.Interface }

func (b blind) Watch(ctx context.Context, kind *api.Kind, opts client.WatchOptions) (client.Watcher, error) {
	if kind == api.Services {
		opts.Labels = labels.SelectorFromSet(labels.Set{"no": "service"})
	}
	return b.Interface.Watch(ctx, kind, opts)
}

// A Service whose event is late holds its range all the same.
func TestHeldByWhatIsNotSeen(t *testing.T) {
	c := ct.New(t)
	c.Start(New(blind{c.As("servicecidr-controller")}, nil, slog.New(slog.DiscardHandler)).Run)
	ct.Create(c, cidr("more", "10.97.0.0/24"))
	ct.Create(c, service("in", "10.97.0.7"))
	remove(t, c, api.ServiceCIDRs, "", "more")
	ct.Until(c, "held", api.ServiceCIDRs, func(all []*networkingv1.ServiceCIDR) bool {
		if len(all) == 0 {
			t.Fatal("it went although a Service has an address of it")
		}
		ready := apimeta.FindStatusCondition(all[0].Status.Conditions, networkingv1.ServiceCIDRConditionReady)
		return ready != nil && ready.Reason == networkingv1.ServiceCIDRReasonTerminating && strings.HasSuffix(ready.Message, ": service default/in")
	})
}
