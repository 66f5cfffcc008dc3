package proxy

import (
	"bytes"
	"strings"
	"testing"
	"testing/iotest"
)

func TestLinksOfAPage(t *testing.T) {
	p := &links{prefix: "/p/proxy", backend: "10.0.0.2:80", host: "api"}
	long := "<script>" + strings.Repeat("x", maxToken+1000) + "</script>"
	for _, x := range []struct{ name, in, want string }{
		{"a link", `<p><a class="b" href="/x?a=1&amp;b=2#c">x</a>`, `<p><a class="b" href="/p/proxy/x?a=1&amp;b=2#c">x</a>`},
		{"of the pod by name", `<form action='http://10.0.0.2:80/go'>`, `<form action="/p/proxy/go">`},
		{"of the API", `<img src=http://api/i.png>`, `<img src="/p/proxy/i.png">`},
		{"closed at once", `<link href="/a.css"/>`, `<link href="/p/proxy/a.css"/>`},
		{"an object", `<object data="/o"><p data="/o">`, `<object data="/p/proxy/o"><p data="/o">`},
		{"through the API already", `<a href="/p/proxy/x">`, `<a href="/p/proxy/x">`},
		{"elsewhere", `<a href="https://example.org/x"><a href="x"><a href="#x"><a href="mailto:a@b">`, `<a href="https://example.org/x"><a href="x"><a href="#x"><a href="mailto:a@b">`},
		{"no tag", `<!DOCTYPE html><!-- <a href="/x"> --><script>let a = '<a href="/x">' && b</script> a < b &amp; c`, `<!DOCTYPE html><!-- <a href="/x"> --><script>let a = '<a href="/x">' && b</script> a < b &amp; c`},
		{"odd writing stays", "<A  HREF='x'\n  Bad>&nbsp\x00\xff", "<A  HREF='x'\n  Bad>&nbsp\x00\xff"},
		{"half a tag", `<p><a href="/x`, `<p><a href="/x`},
		{"half an end", `<p></`, `<p></`},
		{"too long to hold", `<a href="/x">` + long + `<a href="/y">`, `<a href="/p/proxy/x">` + long + `<a href="/y">`},
		{"nothing", ``, ``},
	} {
		var out bytes.Buffer
		flushed := 0
		if err := p.copyPage(&out, func() error { flushed++; return nil }, iotest.HalfReader(strings.NewReader(x.in))); err != nil {
			t.Errorf("%s: %v", x.name, err)
		}
		if got := out.String(); got != x.want || flushed == 0 {
			if len(got) > 300 {
				got = got[:100] + "..." + got[len(got)-100:]
			}
			t.Errorf("%s: %q (%d bytes, want %d), flushed %d times", x.name, got, out.Len(), len(x.want), flushed)
		}
	}
}
