package hosts

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
)

// expectCall is "expect call TARGET from NAME answer WORD".
func (p *play) expectCall(ctx context.Context, args []string) error {
	if len(args) != 5 || args[1] != "from" || args[3] != "answer" {
		return errWords
	}
	at, err := p.target(ctx, args[0])
	if err != nil {
		return err
	}
	got := ""
	if h := p.lab.Host(args[2]); h != nil {
		ctx, cancel := context.WithTimeout(ctx, dialTimeout)
		defer cancel()
		got, err = h.Get(ctx, "http://"+at+"/")
	} else {
		got, err = p.shell(args[2], "wget -qO- http://"+at+"/")
	}
	if err != nil {
		return err
	}
	if !strings.HasPrefix(got, args[4]) {
		return fmt.Errorf("it answers %q", got)
	}
	return nil
}

// expectDatagram is "expect datagram TARGET from NAME answer WORD".
func (p *play) expectDatagram(ctx context.Context, args []string) error {
	if len(args) != 5 || args[1] != "from" || args[3] != "answer" {
		return errWords
	}
	at, err := p.target(ctx, args[0])
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	got := ""
	if h := p.lab.Host(args[2]); h != nil {
		got, err = h.datagram(ctx, at)
	} else {
		got, err = p.fromPod(ctx, args[2], "/datagram?to="+url.QueryEscape(at))
	}
	if err != nil {
		return err
	}
	if !strings.HasPrefix(got, args[4]) {
		return fmt.Errorf("it answers %q", got)
	}
	return nil
}

// datagram sends a UDP datagram from the host and returns what is answered within a second.
func (h *Host) datagram(ctx context.Context, address string) (string, error) {
	c, err := h.dial(ctx, "udp", address)
	if err != nil {
		return "", err
	}
	defer c.Close() //nolint:errcheck // nothing is lost by it
	if err := c.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return "", err
	}
	if _, err := c.Write([]byte("hello")); err != nil {
		return "", err
	}
	b := make([]byte, 512)
	n, err := c.Read(b)
	return string(b[:n]), err
}

// fromPod asks the web server of a pod, of the image minik8s/hello, for a page.
func (p *play) fromPod(ctx context.Context, name, page string) (string, error) {
	c, err := p.api()
	if err != nil {
		return "", err
	}
	pod, err := client.Get[*corev1.Pod](ctx, c, client.Key{Kind: api.Pods, Namespace: metav1.NamespaceDefault, Name: name})
	if err != nil {
		return "", err
	}
	h, err := p.named(pod.Spec.NodeName)
	if err != nil {
		return "", err
	}
	return h.Get(ctx, "http://"+pod.Status.PodIP+page)
}

// calls is how often "expect turns" asks: so often that each of a few endpoints has had its turn, if they take turns.
const calls = 12

// expectTurns is "expect turns TARGET from NAME N".
func (p *play) expectTurns(ctx context.Context, args []string) error {
	if len(args) != 4 || args[1] != "from" {
		return errWords
	}
	want, err := strconv.Atoi(args[3])
	if err != nil {
		return err
	}
	at, err := p.target(ctx, args[0])
	if err != nil {
		return err
	}
	var said string
	if h := p.lab.Host(args[2]); h != nil {
		for range calls {
			got, err := h.Get(ctx, "http://"+at+"/")
			if err != nil {
				return err
			}
			said += got + "\n"
		}
	} else if said, err = p.shell(args[2], fmt.Sprintf("for i in $(seq %d); do wget -qO- http://%s/ || exit 1; done", calls, at)); err != nil {
		return err
	}
	by := map[string]int{}
	for _, who := range strings.Fields(said) {
		by[who]++
	}
	if len(by) != want {
		return fmt.Errorf("it was answered by %v", by)
	}
	return nil
}

// quiet is how long nothing has to come.
const quiet = 2 * time.Second

// expectSilence is "expect silence TARGET from NAME".
func (p *play) expectSilence(ctx context.Context, args []string) error {
	if len(args) != 3 || args[1] != "from" {
		return errWords
	}
	at, err := p.target(ctx, args[0])
	if err != nil {
		return err
	}
	if h := p.lab.Host(args[2]); h != nil {
		ctx, cancel := context.WithTimeout(ctx, quiet)
		defer cancel()
		if got, err := h.Get(ctx, "http://"+at+"/"); !errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("it answers %q, %v", got, err)
		}
		return nil
	}
	got, err := p.shell(args[2], fmt.Sprintf("wget -qO- http://%s/ & sleep %d; kill $! && echo silence", at, int(quiet.Seconds())))
	if err != nil {
		return err
	}
	if got != "silence" { // one that has ended cannot be killed
		return fmt.Errorf("it answers %q", got)
	}
	return nil
}

// target is the HOST:PORT of a target.
func (p *play) target(ctx context.Context, word string) (string, error) {
	how, name, _ := strings.Cut(word, "/")
	name, on, _ := strings.Cut(name, "@")
	c, err := p.api()
	if err != nil {
		return "", err
	}
	svc, err := client.Get[*corev1.Service](ctx, c, client.Key{Kind: api.Services, Namespace: metav1.NamespaceDefault, Name: name})
	if err != nil {
		return "", err
	}
	switch how {
	case "service":
		return net.JoinHostPort(svc.Spec.ClusterIP, strconv.Itoa(int(svc.Spec.Ports[0].Port))), nil
	case "external":
		if len(svc.Spec.ExternalIPs) == 0 {
			return "", fmt.Errorf("service %s has no external address", svc.Name)
		}
		return net.JoinHostPort(svc.Spec.ExternalIPs[0], strconv.Itoa(int(svc.Spec.Ports[0].Port))), nil
	case "balancer":
		at, err := balancerAddress(svc)
		if err != nil {
			return "", err
		}
		return netip.AddrPortFrom(at, uint16(svc.Spec.Ports[0].Port)).String(), nil
	case "nodeport":
		h, err := p.named(on)
		if err != nil {
			return "", err
		}
		return net.JoinHostPort(h.Address.String(), strconv.Itoa(int(svc.Spec.Ports[0].NodePort))), nil
	}
	return "", fmt.Errorf("%q is no target: service/NAME, external/NAME, balancer/NAME or nodeport/NAME@HOST", word)
}
