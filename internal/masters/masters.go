package masters

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"slices"
	"strconv"

	"minik8s/internal/api/minik8s"
	"minik8s/internal/disk"
	"minik8s/internal/informer"
)

// Of are the addresses of the masters' APIs, HOST:PORT, in order and each once. It is pure.
func Of(peers []*minik8s.Peer) []string {
	var out []string
	for _, n := range peers {
		if a := addressOf(n); a != "" {
			out = append(out, a)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// addressOf is where the API of a machine is; empty if it is no master, or does not say so.
func addressOf(p *minik8s.Peer) string {
	if p == nil || p.DeletionTimestamp != nil || !valid(p.Spec.API) {
		return ""
	}
	return p.Spec.API
}

func valid(address string) bool {
	host, port, err := net.SplitHostPort(address)
	n, perr := strconv.ParseUint(port, 10, 16)
	return err == nil && perr == nil && host != "" && n > 0
}

// Book is the file in which the masters are remembered.
type Book struct {
	path string
	list []string
}

// content is what is in the file.
type content struct {
	About   string   `json:"about"`
	Masters []string `json:"masters"`
}

// Open reads the file, if it is there. The error says what to do about a damaged one.
func Open(path string) (*Book, error) {
	b := &Book{path: path}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return b, nil
	}
	if err != nil {
		return nil, err
	}
	var c content
	if err := json.Unmarshal(data, &c); err != nil {
		return nil, fmt.Errorf("%s is damaged: %w; remove it, and give --server", path, err)
	}
	for _, a := range c.Masters {
		if valid(a) {
			b.list = append(b.list, a)
		}
	}
	return b, nil
}

// Masters are the addresses that are remembered.
func (b *Book) Masters() []string { return slices.Clone(b.list) }

func (b *Book) write(list []string) error {
	if slices.Equal(list, b.list) {
		return nil
	}
	data, err := json.MarshalIndent(content{About: "where the APIs of this cluster's masters were last", Masters: list}, "", "  ")
	if err != nil {
		return err
	}
	if err := disk.WriteFile(b.path, append(data, '\n'), 0o600); err != nil {
		return err
	}
	b.list = list
	return nil
}

// Follower tells where the masters are.
type Follower struct {
	book    *Book
	peers   *informer.Informer[*minik8s.Peer]
	own     string
	set     func(addresses []string)
	log     *slog.Logger
	changed <-chan struct{}
}

// New makes a Follower that knows the machines from an informer, which does not run yet, and tells set. own is this
// machine's own API, which is left out; empty: it has none. The Follower is the only one that uses the book from now on.
func New(book *Book, peers *informer.Informer[*minik8s.Peer], own string, set func(addresses []string), log *slog.Logger) *Follower {
	return &Follower{book: book, peers: peers, own: own, set: set, log: log,
		changed: peers.Signal(func(old, now *minik8s.Peer) bool { return addressOf(old) != addressOf(now) })}
}

// Run tells where the masters are until ctx ends, while the informer runs.
func (f *Follower) Run(ctx context.Context) {
	var last []string
	for {
		select {
		case <-f.changed:
		case <-ctx.Done():
			return
		}
		list := slices.DeleteFunc(Of(f.peers.List()), func(a string) bool { return a == f.own })
		if len(list) == 0 && f.own == "" || slices.Equal(list, last) { // a master alone has no others
			continue
		}
		if err := f.book.write(list); err != nil {
			f.log.Warn("where the masters are could not be written down: this machine may not find them after a restart", "error", err)
		}
		f.set(list)
		last = list
	}
}
