package apiserver

import (
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
)

// paced writes an answer that is sent in pieces. A client that does not take a piece in time is cut
// off, so that a stalled one holds nothing for long; between the pieces there may be any time.
type paced struct {
	w  http.ResponseWriter
	rc *http.ResponseController
	// hold leaves it to the connection when a piece is sent; else each is sent at once.
	hold bool
	// timeout is how long a piece may take.
	timeout time.Duration
}

func (s *Server) paced(w *echo.Response) *paced {
	p := &paced{w: w, rc: http.NewResponseController(w.Writer), timeout: s.cfg.WriteTimeout}
	p.unhurried()
	return p
}

// unhurried takes away the deadline that every answer has from its beginning: there is none until the next piece.
func (p *paced) unhurried() {
	p.rc.SetWriteDeadline(time.Time{}) //nolint:errcheck // where it cannot be set there is none
}

// Write implements io.Writer. What is large is several pieces.
func (p *paced) Write(b []byte) (n int, err error) {
	for len(b) > 2*chunkSize && err == nil {
		var m int
		m, err = p.piece(b[:chunkSize])
		n, b = n+m, b[chunkSize:]
	}
	if err != nil {
		return n, err
	}
	m, err := p.piece(b)
	return n + m, err
}

func (p *paced) piece(b []byte) (int, error) {
	p.rc.SetWriteDeadline(time.Now().Add(p.timeout)) //nolint:errcheck // where it cannot be set there is none
	n, err := p.w.Write(b)
	if err != nil || p.hold {
		return n, err
	}
	if err := p.rc.Flush(); err != nil {
		return n, err
	}
	p.unhurried()
	return n, nil
}
