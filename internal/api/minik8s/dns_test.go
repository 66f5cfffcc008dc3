package minik8s

import (
	"encoding/json"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func text(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// A copy is equal, and what is done to it does not reach the original: objects are shared between all who read.
func TestDNSCopy(t *testing.T) {
	d := &DNS{ObjectMeta: metav1.ObjectMeta{Name: "d", Labels: map[string]string{"a": "b"}},
		Spec:   DNSSpec{Host: "a.example", Paths: []DNSPath{{Path: "/a", Service: &DNSServiceRef{Name: "web", Port: 80}}}},
		Status: DNSStatus{Conditions: []metav1.Condition{{Type: "Ready"}}}}
	list := &DNSList{Items: []DNS{*d}}
	before, beforeList := text(t, d), text(t, list)
	c, l := d.DeepCopyObject().(*DNS), list.DeepCopyObject().(*DNSList)
	if text(t, c) != before || text(t, l) != beforeList {
		t.Errorf("%+v %+v", c, l)
	}
	for _, x := range []*DNS{c, &l.Items[0]} {
		x.Labels["a"], x.Spec.Paths[0].Path, x.Spec.Paths[0].Service.Port, x.Status.Conditions[0].Type = "c", "/b", 81, "Other"
	}
	if text(t, d) != before || text(t, list) != beforeList {
		t.Errorf("%+v %+v", d, list)
	}
}

func TestDNSTargets(t *testing.T) {
	for want, p := range map[string]DNSPath{
		"web:80":          {Service: &DNSServiceRef{Name: "web", Port: 80}},
		"dns-world:80":    {Address: "http://dns-world:80"},
		"web:8080":        {Address: "http://web:8080/"},
		"10.6.1.1:80":     {Address: "http://10.6.1.1"},
		"[fd00::1]:65535": {Address: "http://[fd00::1]:65535"},
	} {
		if got, err := p.Target(); err != nil || got.String() != want {
			t.Errorf("%+v: %s, %v", p, got, err)
		}
	}
	for path, want := range map[string]string{"/": "/", "/a": "/a", "/a/": "/a", "/a/b/": "/a/b", "": "/"} {
		if p := (&DNSPath{Path: path}); p.CleanPath() != want {
			t.Errorf("%s: %s", path, p.CleanPath())
		}
	}
}
