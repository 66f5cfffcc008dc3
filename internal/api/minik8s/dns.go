package minik8s

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// DNS gives a host name to Services: under each of its paths lies one of them. The name resolves to the service address,
// where the gateway of every node answers.
type DNS struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   DNSSpec   `json:"spec,omitempty"`
	Status DNSStatus `json:"status,omitempty"`
}

// DNSSpec is what people write.
type DNSSpec struct {
	// Host is one host name in lower case. No other DNS object has it.
	Host string `json:"host"`
	// ServiceAddress is the IPv4 address to which the name resolves. It belongs to this object alone. Empty: one of the
	// service range is given.
	ServiceAddress string `json:"serviceAddress,omitempty"`
	// Paths are what lies under the name. For a request the longest path that matches decides.
	Paths []DNSPath `json:"paths,omitempty"`
}

// DNSPath leads a path to a Service or an address. Exactly one of Service and Address is set.
type DNSPath struct {
	// Path is a prefix that ends between two segments: "/a" has /a and /a/b, and not /ab. It is taken off before the
	// request goes on. A slash at its end means nothing.
	Path string `json:"path"`
	// Service is a Service of the object's namespace.
	Service *DNSServiceRef `json:"service,omitempty"`
	// Address is http://HOST or http://HOST:PORT, where HOST is an IP address or the name of a Service of the object's
	// namespace; see Target.
	Address string `json:"address,omitempty"`
}

// DNSServiceRef is a port of a Service.
type DNSServiceRef struct {
	Name string `json:"name"`
	Port int32  `json:"port"`
}

// DNSStatus is what the controller writes.
type DNSStatus struct {
	// Conditions say whether everything that the paths name exists.
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
}

// DNSList is a list of DNS objects.
type DNSList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []DNS `json:"items"`
}

// SwaggerDoc returns the text for `kubectl explain`.
func (DNS) SwaggerDoc() map[string]string {
	return map[string]string{
		"":         "DNS gives a host name to Services: under each of its paths lies one of them.",
		"metadata": "Standard object's metadata.",
		"spec":     "The name and its paths.",
		"status":   "What is known of the Services that the paths name.",
	}
}

// SwaggerDoc returns the text for `kubectl explain`.
func (DNSSpec) SwaggerDoc() map[string]string {
	return map[string]string{
		"":               "A host name and its paths.",
		"host":           "One host name in lower case. No other DNS object has it.",
		"serviceAddress": "The IPv4 address to which the name resolves, of this object alone. Without it one of the range of Services is given.",
		"paths":          "What lies under the name. For a request the longest path that matches decides.",
	}
}

// SwaggerDoc returns the text for `kubectl explain`.
func (DNSPath) SwaggerDoc() map[string]string {
	return map[string]string{
		"":        "A path and where it leads: exactly one of service and address.",
		"path":    "A prefix that ends between two segments: /a has /a and /a/b, and not /ab. It is taken off before the request goes on.",
		"service": "A port of a Service of the same namespace.",
		"address": "http://HOST or http://HOST:PORT, where HOST is an IP address or the name of a Service of the same namespace.",
	}
}

// SwaggerDoc returns the text for `kubectl explain`.
func (DNSServiceRef) SwaggerDoc() map[string]string {
	return map[string]string{"": "A port of a Service.", "name": "The name of the Service.", "port": "The number of its port."}
}

// SwaggerDoc returns the text for `kubectl explain`.
func (DNSStatus) SwaggerDoc() map[string]string {
	return map[string]string{"": "What is known of what the paths name.", "conditions": "Whether everything that the paths name exists."}
}

// DeepCopyInto copies d to out.
func (d *DNS) DeepCopyInto(out *DNS) {
	*out = *d
	d.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Spec.Paths = slices.Clone(d.Spec.Paths)
	for i := range out.Spec.Paths {
		if s := out.Spec.Paths[i].Service; s != nil {
			out.Spec.Paths[i].Service = new(*s)
		}
	}
	out.Status.Conditions = slices.Clone(d.Status.Conditions)
	for i := range out.Status.Conditions {
		d.Status.Conditions[i].DeepCopyInto(&out.Status.Conditions[i])
	}
}

// DeepCopy returns a copy that shares nothing with d.
func (d *DNS) DeepCopy() *DNS {
	if d == nil {
		return nil
	}
	out := &DNS{}
	d.DeepCopyInto(out)
	return out
}

// DeepCopyObject implements runtime.Object.
func (d *DNS) DeepCopyObject() runtime.Object {
	if d == nil {
		return nil
	}
	return d.DeepCopy()
}

// DeepCopyObject implements runtime.Object.
func (l *DNSList) DeepCopyObject() runtime.Object {
	if l == nil {
		return nil
	}
	out := &DNSList{TypeMeta: l.TypeMeta}
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	if l.Items != nil {
		out.Items = make([]DNS, len(l.Items))
		for i := range l.Items {
			l.Items[i].DeepCopyInto(&out.Items[i])
		}
	}
	return out
}
