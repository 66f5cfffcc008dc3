package proxy

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"mime"
	"net/http"

	"golang.org/x/net/html"
)

// linkAttributes are the HTML attributes whose value is a link.
var linkAttributes = map[string]bool{"action": true, "background": true, "cite": true, "codebase": true, "data": true, "formaction": true,
	"href": true, "icon": true, "longdesc": true, "manifest": true, "poster": true, "profile": true, "src": true, "usemap": true}

// maxToken bounds a piece of HTML that must be held as a whole, a tag or a script. If a piece is longer, the rest of
// the page is passed on unchanged.
const maxToken = 1 << 20

// page changes the links of an HTML page to go through the API, while the page arrives. An answer that is not HTML,
// or whose encoding is not supported, stays unchanged.
func (p *links) page(resp *http.Response) error {
	kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	packed := resp.Header.Get("Content-Encoding")
	part := resp.Header.Get("Content-Range") != "" // changed links would shift its byte range
	if err != nil || kind != "text/html" || part || packed != "" && packed != "gzip" ||
		resp.Request.Method == http.MethodHead || resp.StatusCode == http.StatusSwitchingProtocols {
		return nil
	}
	from := resp.Body
	r, w := io.Pipe()
	go func() {
		w.CloseWithError(p.rewrite(w, from, packed == "gzip")) //nolint:errcheck // it never fails
	}()
	resp.Body = struct {
		io.Reader
		io.Closer
	}{r, closers{r, from}}
	resp.ContentLength = -1
	resp.Header.Del("Content-Length")
	return nil
}

// closers are closed together.
type closers []io.Closer

// Close implements io.Closer.
func (c closers) Close() error {
	var errs []error
	for _, x := range c {
		errs = append(errs, x.Close())
	}
	return errors.Join(errs...)
}

// rewrite copies a page.
func (p *links) rewrite(to io.Writer, from io.Reader, packed bool) error {
	if !packed {
		return p.copyPage(to, func() error { return nil }, from)
	}
	in, err := gzip.NewReader(from)
	if errors.Is(err, io.EOF) { // an empty body, as with a 304
		return nil
	}
	if err != nil {
		return err
	}
	out := gzip.NewWriter(to)
	return errors.Join(p.copyPage(out, out.Flush, in), out.Close())
}

// copyPage copies a page and changes its links. It sends what has arrived before it waits for more.
func (p *links) copyPage(to io.Writer, flush func() error, from io.Reader) error {
	out := bufio.NewWriter(to)
	z := html.NewTokenizer(from)
	z.SetMaxBuf(maxToken)
	for {
		kind := z.Next()
		if kind == html.StartTagToken || kind == html.SelfClosingTagToken {
			raw := bytes.Clone(z.Raw())
			if changed, ok := p.tag(z.Token()); ok {
				raw = []byte(changed)
			}
			out.Write(raw) //nolint:errcheck // Flush returns the error
		} else {
			out.Write(z.Raw()) //nolint:errcheck // as above
		}
		if kind != html.ErrorToken && len(z.Buffered()) > 0 {
			continue
		}
		if err := errors.Join(out.Flush(), flush()); err != nil {
			return err
		}
		if kind != html.ErrorToken {
			continue
		}
		switch err := z.Err(); {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, html.ErrBufferExceeded):
			_, err = io.Copy(to, io.MultiReader(bytes.NewReader(z.Buffered()), from))
			return err
		default:
			return err
		}
	}
}

// tag returns a tag with its links changed; false if there are none to change.
func (p *links) tag(t html.Token) (string, bool) {
	changed := false
	for i, a := range t.Attr {
		if !linkAttributes[a.Key] || a.Key == "data" && t.Data != "object" {
			continue
		}
		if link := p.through(a.Val); link != a.Val {
			t.Attr[i].Val, changed = link, true
		}
	}
	return t.String(), changed
}
