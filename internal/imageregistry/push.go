package imageregistry

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"golang.org/x/sys/unix"
)

// pieceTime is how long a client that pushes may send nothing. While a push goes on, nothing can be swept.
const pieceTime = 30 * time.Second

// A push is refused when the disk has less free than keep, or than a keepPart of it where that is less: the rest is for the store and
// the pods.
const (
	keep     = 256 << 20
	keepPart = 20
)

// askAgain is after how many bytes of a push the disk is asked again: others push, too, and pods write.
const askAgain = 8 << 20

// room is how many bytes a push may add, by what the disk has free.
func room(free, size uint64) int64 { return int64(free) - int64(min(keep, size/keepPart)) }

// roomAt is room on the disk that dir is on. A disk that cannot be asked has room: the write itself will tell.
func roomAt(dir string) int64 {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return 1 << 62
	}
	return room(st.Bavail*uint64(st.Bsize), st.Blocks*uint64(st.Bsize))
}

// push serves what writes. Who sends nothing for pieceTime, or more than there is room for, is cut off.
func (r *Registry) push(w http.ResponseWriter, req *http.Request) {
	r.pushing.RLock()
	defer r.pushing.RUnlock()
	app := r.open()
	if req.Method == http.MethodDelete {
		app.ServeHTTP(w, req)
		return
	}
	free := r.room(r.cfg.Dir)
	if free < max(req.ContentLength, 0) || free < 0 {
		refuse(w, fmt.Sprintf("the disk under %s is nearly full, and the rest is kept for the cluster's own data: delete something there, or functions and images", r.cfg.Dir))
		return
	}
	if req.Body != nil && req.Body != http.NoBody {
		req.Body = &pushed{ReadCloser: req.Body, within: http.NewResponseController(w), time: r.pieceTime, ask: func() int64 { return r.room(r.cfg.Dir) }, room: min(free, askAgain)}
	}
	app.ServeHTTP(w, req)
}

// refuse answers in the form that the distribution specification has for errors.
func refuse(w http.ResponseWriter, why string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusInsufficientStorage)
	type one struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	json.NewEncoder(w).Encode(map[string][]one{"errors": {{"DENIED", why}}}) //nolint:errcheck // the client has gone
}

// pushed is the body of a push.
type pushed struct {
	io.ReadCloser
	within *http.ResponseController
	time   time.Duration
	ask    func() int64 // how much room there is
	room   int64        // how much of that may be used before it is asked again
}

func (p *pushed) Read(b []byte) (int, error) {
	p.within.SetReadDeadline(time.Now().Add(p.time)) //nolint:errcheck // who pushes within the process has no connection
	n, err := p.ReadCloser.Read(b)
	if p.room -= int64(n); p.room < 0 {
		if p.room = min(p.ask(), askAgain) - int64(n); p.room < 0 { // what was read is not on the disk yet
			err = errors.New("the disk has no room for more")
		}
	}
	if errors.Is(err, io.EOF) {
		p.within.SetReadDeadline(time.Time{}) //nolint:errcheck // as above; after another error the server reads what is left of the body, and has this time for it
	}
	return n, err
}
