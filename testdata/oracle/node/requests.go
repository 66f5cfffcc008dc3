package node

import (
	"crypto/ed25519"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/rand/v2"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// user is who asks.
type user struct {
	Name   string   `json:"name"`
	Groups []string `json:"groups,omitempty"`
}

// users are nodes, and some that only look like one. n3 has pods and no Node yet.
var users = map[string]user{
	"n1":       {"system:node:n1", []string{"system:nodes"}},
	"n2":       {"system:node:n2", []string{"system:nodes"}},
	"n3":       {"system:node:n3", []string{"system:nodes"}},
	"nameless": {"system:node:", []string{"system:nodes"}},
	"ungroup":  {"system:node:n1", []string{"system:node", "nodes"}},
	"group":    {"n1", []string{"system:nodes"}},
}

// request is sent over HTTP.
type request struct {
	User   string         `json:"user"`
	Method string         `json:"method"`
	Path   string         `json:"path"`
	Body   map[string]any `json:"body,omitempty"`
	Apply  bool           `json:"apply,omitempty"` // of a PATCH: a server-side apply, else a merge patch
	// Verdict is what upstream says.
	Verdict string `json:"verdict"`
}

const (
	allowed = "allowed" // what else may be wrong with the request
	refused = "refused"
	absent  = "absent" // would be allowed, but there is no such object: whether it is told so is not the matter here
)

// resource is a kind that we serve, and Kubernetes too.
type resource struct {
	group, version, kind, plural string
	cluster                      bool // it has no namespace
	asked                        bool // it can only be created
	subs                         []string
}

func (r resource) base(namespace string) string {
	base := "/api/" + r.version
	if r.group != "" {
		base = "/apis/" + r.group + "/" + r.version
	}
	if !r.cluster && namespace != "" {
		base += "/namespaces/" + namespace
	}
	return base + "/" + r.plural
}

func (r resource) body(name string) map[string]any {
	apiVersion := r.version
	if r.group != "" {
		apiVersion = r.group + "/" + r.version
	}
	return map[string]any{"apiVersion": apiVersion, "kind": r.kind, "metadata": map[string]any{"name": name}}
}

var (
	nodes  = resource{version: "v1", kind: "Node", plural: "nodes", cluster: true, subs: []string{"status"}}
	pods   = resource{version: "v1", kind: "Pod", plural: "pods", subs: []string{"status", "log", "exec", "attach", "portforward", "proxy", "ephemeralcontainers", "binding"}}
	leases = resource{group: "coordination.k8s.io", version: "v1", kind: "Lease", plural: "leases"}
	csrs   = resource{group: "certificates.k8s.io", version: "v1", kind: "CertificateSigningRequest", plural: "certificatesigningrequests", cluster: true, subs: []string{"status", "approval"}}

	resources = []resource{nodes, pods, leases, csrs,
		{version: "v1", kind: "Namespace", plural: "namespaces", cluster: true, subs: []string{"status", "finalize"}},
		{version: "v1", kind: "Service", plural: "services", subs: []string{"status"}},
		{version: "v1", kind: "Endpoints", plural: "endpoints"},
		{group: "discovery.k8s.io", version: "v1", kind: "EndpointSlice", plural: "endpointslices"},
		{group: "networking.k8s.io", version: "v1", kind: "Ingress", plural: "ingresses", subs: []string{"status"}},
		{group: "networking.k8s.io", version: "v1", kind: "IngressClass", plural: "ingressclasses", cluster: true},
		{group: "networking.k8s.io", version: "v1", kind: "NetworkPolicy", plural: "networkpolicies"},
		{group: "networking.k8s.io", version: "v1", kind: "ServiceCIDR", plural: "servicecidrs", cluster: true, subs: []string{"status"}},
		{group: "networking.k8s.io", version: "v1", kind: "IPAddress", plural: "ipaddresses", cluster: true},
		{group: "autoscaling", version: "v2", kind: "HorizontalPodAutoscaler", plural: "horizontalpodautoscalers", subs: []string{"status"}},
		{version: "v1", kind: "ReplicationController", plural: "replicationcontrollers", subs: []string{"scale", "status"}},
		{version: "v1", kind: "PodTemplate", plural: "podtemplates"},
		{version: "v1", kind: "ConfigMap", plural: "configmaps"},
		{version: "v1", kind: "Secret", plural: "secrets"},
		{version: "v1", kind: "Event", plural: "events"},
		{group: "events.k8s.io", version: "v1", kind: "Event", plural: "events"},
		{version: "v1", kind: "ServiceAccount", plural: "serviceaccounts"},
		{group: "scheduling.k8s.io", version: "v1", kind: "PriorityClass", plural: "priorityclasses", cluster: true},
		{group: "apiregistration.k8s.io", version: "v1", kind: "APIService", plural: "apiservices", cluster: true},
		{group: "apps", version: "v1", kind: "ReplicaSet", plural: "replicasets", subs: []string{"scale", "status"}},
		{group: "apps", version: "v1", kind: "Deployment", plural: "deployments", subs: []string{"scale", "status"}},
		{group: "apps", version: "v1", kind: "DaemonSet", plural: "daemonsets", subs: []string{"status"}},
		{group: "apps", version: "v1", kind: "ControllerRevision", plural: "controllerrevisions"},
		{group: "batch", version: "v1", kind: "Job", plural: "jobs", subs: []string{"status"}},
		{group: "authentication.k8s.io", version: "v1", kind: "TokenReview", plural: "tokenreviews", cluster: true, asked: true},
		{group: "authentication.k8s.io", version: "v1", kind: "SelfSubjectReview", plural: "selfsubjectreviews", cluster: true, asked: true},
		{group: "authorization.k8s.io", version: "v1", kind: "SubjectAccessReview", plural: "subjectaccessreviews", cluster: true, asked: true},
		{group: "authorization.k8s.io", version: "v1", kind: "LocalSubjectAccessReview", plural: "localsubjectaccessreviews", asked: true},
		{group: "authorization.k8s.io", version: "v1", kind: "SelfSubjectAccessReview", plural: "selfsubjectaccessreviews", cluster: true, asked: true},
		{group: "authorization.k8s.io", version: "v1", kind: "SelfSubjectRulesReview", plural: "selfsubjectrulesreviews", cluster: true, asked: true},
	}
)

// watching is refused or begun at once: the revision is not there yet.
const watching = "watch=1&resourceVersion=999999999"

// requests is everything that is asked.
func requests(rng *rand.Rand, c cluster) []request {
	all := sweep()
	all = append(all, reads(rng, c)...)
	all = append(all, ofPods(c)...)
	all = append(all, ofNodes()...)
	all = append(all, ofLeases()...)
	all = append(all, ofTokens(c)...)
	return append(all, ofCertificates()...)
}

// sweep asks for every verb of every kind, for an object that is not there.
func sweep() []request {
	var all []request
	for _, who := range []string{"n1", "nameless", "group"} {
		for _, r := range resources {
			add := func(method, path string, body map[string]any) {
				all = append(all, request{User: who, Method: method, Path: path, Body: body})
			}
			add("POST", r.base("default"), r.body("absent"))
			if r.asked {
				continue
			}
			for _, base := range []string{r.base("default"), r.base("")} {
				add("GET", base, nil)
				add("GET", base+"?"+watching, nil)
			}
			if who != "n1" {
				add("GET", r.base("default")+"/absent", nil)
				continue
			}
			add("DELETE", r.base("default"), nil)
			for _, sub := range append([]string{""}, r.subs...) {
				path := r.base("default") + "/absent"
				if sub != "" {
					path += "/" + sub
				}
				add("GET", path, nil)
				add("PATCH", path, map[string]any{})
				if sub == "" || sub == "status" {
					add("PUT", path, r.body("absent"))
					add("DELETE", path, nil)
				}
			}
		}
	}
	return all
}

// reads ask for what pods refer to, or might.
func reads(rng *rand.Rand, c cluster) []request {
	var all []request
	for _, who := range []string{"n1", "n2", "n3", "nameless", "ungroup", "group"} {
		for _, kind := range [][2]string{{"s", "secrets"}, {"c", "configmaps"}, {"a", "serviceaccounts"}} {
			for i := range names {
				for _, ns := range namespaces {
					base, name := "/api/v1/namespaces/"+ns+"/"+kind[1], named(kind[0], i)
					if who[0] == 'n' {
						all = append(all, request{User: who, Method: "GET", Path: base + "/" + name})
					}
					path := []string{base + "?fieldSelector=metadata.name%3D" + name,
						base + "?fieldSelector=metadata.name%3D" + name + "&" + watching, "/api/v1/" + kind[1] + "?fieldSelector=metadata.name%3D" + name,
						base + "?fieldSelector=metadata.name!%3D" + name}[rng.IntN(4)]
					all = append(all, request{User: who, Method: "GET", Path: path})
				}
			}
		}
	}
	for _, who := range []string{"n1", "n2"} {
		for _, p := range c.Pods {
			for _, plural := range []string{"secrets", "configmaps"} {
				all = append(all, request{User: who, Method: "GET", Path: "/api/v1/namespaces/" + p.Namespace + "/" + plural + "/" + own(p.Name)})
			}
		}
	}
	return all
}

func ofPods(c cluster) []request {
	var all []request
	for _, who := range []string{"n1", "n2", "nameless"} {
		ask := func(method, path string, body map[string]any) {
			all = append(all, request{User: who, Method: method, Path: path, Body: body})
		}
		for _, node := range []string{"n1", "n2", ""} {
			for _, base := range []string{"/api/v1/pods", "/api/v1/namespaces/default/pods"} {
				ask("GET", base+"?fieldSelector=spec.nodeName%3D"+node, nil)
				ask("GET", base+"?fieldSelector=spec.nodeName%3D"+node+"&"+watching, nil)
				ask("GET", base+"?fieldSelector=spec.nodeName!%3D"+node, nil)
				ask("GET", base+"?fieldSelector=status.phase%3DRunning,spec.nodeName%3D"+node, nil)
				ask("DELETE", base+"?fieldSelector=spec.nodeName%3D"+node, nil)
			}
		}
		for i, p := range c.Pods {
			if p.Namespace != "default" || i > 14 && p.Name != "mirror" {
				continue
			}
			base := "/api/v1/namespaces/" + p.Namespace + "/pods"
			path := base + "/" + p.Name
			ask("GET", path, nil)
			ask("GET", base+"?fieldSelector=metadata.name%3D"+p.Name, nil)
			ask("GET", base+"?"+watching+"&fieldSelector=metadata.name%3D"+p.Name, nil)
			ask("DELETE", path, nil)
			ask("PATCH", path, map[string]any{"metadata": map[string]any{"labels": map[string]any{"a": "b"}}})
			ask("PATCH", path+"/status", map[string]any{"status": map[string]any{"message": "hello"}})
			ask("PATCH", path+"/status", map[string]any{"metadata": map[string]any{"labels": map[string]any{"a": "b"}}})
			ask("PATCH", path+"/status", map[string]any{"metadata": map[string]any{"labels": nil}})
			ask("PATCH", path+"/status", map[string]any{"metadata": map[string]any{"annotations": map[string]any{"a": "b"}}})
			ask("POST", path+"/eviction", map[string]any{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": map[string]any{"name": p.Name, "namespace": p.Namespace}})
			for _, sub := range []string{"log", "exec?command=x", "proxy", "status", "ephemeralcontainers"} {
				ask("GET", path+"/"+sub, nil)
			}
		}
		mirror := pods.body("new-" + who)
		mirror["metadata"].(map[string]any)["annotations"] = map[string]any{corev1.MirrorPodAnnotationKey: "x"}
		mirror["metadata"].(map[string]any)["ownerReferences"] = []any{map[string]any{"apiVersion": "v1", "kind": "Node", "name": who,
			"uid": string(uid("nodes", "", who)), "controller": true}}
		mirror["spec"] = map[string]any{"nodeName": who, "containers": []any{map[string]any{"name": "c", "image": "i"}}}
		ask("POST", "/api/v1/namespaces/default/pods", mirror)
		plain := pods.body("new-" + who)
		plain["spec"] = mirror["spec"]
		ask("POST", "/api/v1/namespaces/default/pods", plain)
	}
	return all
}

// labels that a node gives itself, or takes away, one at a time.
var labels = []string{"example.com/disk", "plain", "kubernetes.io/hostname", "kubernetes.io/os", "kubernetes.io/arch", "beta.kubernetes.io/os", "beta.kubernetes.io/arch",
	"beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type", "topology.kubernetes.io/zone", "topology.kubernetes.io/region",
	"failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region", "node.kubernetes.io/anything", "x.node.kubernetes.io/anything",
	"kubelet.kubernetes.io/anything", "x.kubelet.kubernetes.io/anything", "node-restriction.kubernetes.io/room", "x.node-restriction.kubernetes.io/room",
	"node-role.kubernetes.io/worker", "node-role.kubernetes.io/control-plane", "kubernetes.io/anything", "x.kubernetes.io/anything", "k8s.io/anything",
	"x.k8s.io/anything", "notkubernetes.io/anything", "kubernetes.io.example.com/anything", "topology.kubernetes.io/anything"}

func ofNodes() []request {
	var all []request
	for _, who := range []string{"n1", "n3", "nameless"} {
		ask := func(method, path string, body map[string]any) {
			all = append(all, request{User: who, Method: method, Path: path, Body: body})
		}
		patch := func(node string, body map[string]any) {
			ask("PATCH", "/api/v1/nodes/"+node, body)
			ask("PATCH", "/api/v1/nodes/"+node+"/status", body)
		}
		for _, node := range []string{"n1", "n2", "n3"} {
			for _, path := range []string{"/" + node, "?fieldSelector=metadata.name%3D" + node, "?" + watching + "&fieldSelector=metadata.name%3D" + node, "/" + node + "/status"} {
				ask("GET", "/api/v1/nodes"+path, nil)
			}
			ask("DELETE", "/api/v1/nodes/"+node, nil)
			ask("POST", "/api/v1/nodes", nodes.body(node))
			all = append(all, request{User: who, Method: "PATCH", Path: "/api/v1/nodes/" + node, Body: nodes.body(node), Apply: true})
			if node != "n3" {
				patch(node, map[string]any{"metadata": map[string]any{"annotations": map[string]any{"a": "b"}}})
				patch(node, map[string]any{"status": map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}}})
			}
		}
		if who == "nameless" {
			continue
		}
		for _, key := range labels {
			body := nodes.body(who)
			body["metadata"].(map[string]any)["labels"] = map[string]any{key: "b"}
			ask("POST", "/api/v1/nodes", body)
			if who == "n1" {
				patch(who, map[string]any{"metadata": map[string]any{"labels": map[string]any{key: "b"}}})
			}
		}
		body := nodes.body(who)
		taint := map[string]any{"key": "a", "value": "b", "effect": "NoSchedule"}
		body["spec"] = map[string]any{"taints": []any{taint}}
		ask("POST", "/api/v1/nodes", body)
		owner := []any{map[string]any{"apiVersion": "v1", "kind": "Pod", "name": "p0", "uid": "u"}}
		body = nodes.body(who)
		body["metadata"].(map[string]any)["ownerReferences"] = owner
		ask("POST", "/api/v1/nodes", body)
		body = nodes.body(who)
		body["spec"] = map[string]any{"configSource": map[string]any{"configMap": map[string]any{"namespace": "default", "name": "c0", "uid": "u", "kubeletConfigKey": "k"}}}
		ask("POST", "/api/v1/nodes", body)
		if who != "n1" {
			continue
		}
		for _, key := range []string{"kubernetes.io/hostname", "node-restriction.kubernetes.io/room", "node-role.kubernetes.io/worker", "example.com/disk"} {
			patch(who, map[string]any{"metadata": map[string]any{"labels": map[string]any{key: nil}}})
		}
		patch(who, map[string]any{"spec": map[string]any{"taints": nil}})
		patch(who, map[string]any{"spec": map[string]any{"taints": []any{taint}}})
		patch(who, map[string]any{"spec": map[string]any{"unschedulable": true}})
		patch(who, map[string]any{"metadata": map[string]any{"ownerReferences": owner}})
	}
	return all
}

func ofLeases() []request {
	var all []request
	for _, who := range []string{"n1", "n3", "nameless"} {
		for _, ns := range []string{"kube-node-lease", "default"} {
			for _, name := range []string{"n1", "n2", "n3"} {
				base := leases.base(ns)
				for _, x := range []request{{Method: "GET", Path: base + "/" + name}, {Method: "POST", Path: base, Body: leases.body(name)},
					{Method: "PUT", Path: base + "/" + name, Body: leases.body(name)}, {Method: "DELETE", Path: base + "/" + name},
					{Method: "PATCH", Path: base + "/" + name, Body: map[string]any{"spec": map[string]any{"holderIdentity": "x"}}},
					{Method: "PATCH", Path: base + "/" + name, Body: leases.body(name), Apply: true},
					{Method: "GET", Path: base + "?fieldSelector=metadata.name%3D" + name}} {
					x.User = who
					all = append(all, x)
				}
			}
		}
	}
	return all
}

// ofTokens asks for tokens of each pod's account, bound to the pod in several ways.
func ofTokens(c cluster) []request {
	var all []request
	for _, who := range []string{"n1", "n2", "nameless"} {
		for i, p := range c.Pods {
			if _, ok := audienceOf(p); !ok && i > 6 && p.Name != "mirror" {
				continue
			}
			ask := func(account string, ref map[string]any, audiences ...string) {
				spec := map[string]any{}
				if ref != nil {
					spec["boundObjectRef"] = ref
				}
				if len(audiences) > 0 {
					spec["audiences"] = audiences
				}
				all = append(all, request{User: who, Method: "POST", Path: "/api/v1/namespaces/" + p.Namespace + "/serviceaccounts/" + account + "/token",
					Body: map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}})
			}
			to := func(change map[string]any) map[string]any {
				ref := map[string]any{"apiVersion": "v1", "kind": "Pod", "name": p.Name, "uid": string(p.UID)}
				for k, v := range change {
					ref[k] = v
				}
				return ref
			}
			account := p.Spec.ServiceAccountName
			for _, audiences := range [][]string{nil, {"vault"}, {"example.com"}, {"vault", "example.com"}} {
				ask(account, to(nil), audiences...)
			}
			audience, ok := audienceOf(p)
			if !ok {
				continue
			}
			var audiences []string
			if audience != "" {
				audiences = []string{audience}
			}
			ask(account, nil, audiences...)
			ask(account, to(map[string]any{"uid": ""}), audiences...)
			ask(account, to(map[string]any{"uid": "other"}), audiences...)
			ask(account, to(map[string]any{"apiVersion": ""}), audiences...)
			ask(account, to(map[string]any{"name": "absent"}), audiences...)
			ask("absent", to(nil), audiences...)
		}
	}
	return all
}

// audienceOf is that of a token in a volume of a pod, if there is one; it may be empty.
func audienceOf(p *corev1.Pod) (string, bool) {
	for _, v := range p.Spec.Volumes {
		if v.Projected != nil && v.Projected.Sources[1].ServiceAccountToken != nil {
			return v.Projected.Sources[1].ServiceAccountToken.Audience, true
		}
	}
	return "", false
}

// ofCertificates asks for certificates of nodes.
func ofCertificates() []request {
	var all []request
	for _, who := range []string{"n1", "n3", "nameless"} {
		for _, signer := range []string{"kubernetes.io/kube-apiserver-client-kubelet", "kubernetes.io/kubelet-serving", "kubernetes.io/kube-apiserver-client", "example.com/other"} {
			for _, name := range []string{"system:node:n1", "system:node:n2", "system:node:", "alice"} {
				body := csrs.body("csr-" + strings.ReplaceAll(fmt.Sprint(who, "-", name), ":", "-") + "x")
				usage := "client auth"
				if strings.HasSuffix(signer, "serving") {
					usage = "server auth"
				}
				body["spec"] = map[string]any{"signerName": signer, "usages": []any{"digital signature", usage}, "request": certificateRequest(name)}
				all = append(all, request{User: who, Method: "POST", Path: csrs.base(""), Body: body})
			}
		}
	}
	return all
}

// certificateRequest is a request in PEM, in base64. Its key and so its signature are always the same.
func certificateRequest(name string) string {
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	der, err := x509.CreateCertificateRequest(nil, &x509.CertificateRequest{Subject: pkix.Name{CommonName: name, Organization: []string{"system:nodes"}}}, key)
	if err != nil {
		panic(err)
	}
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
}
