package etcd

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"minik8s/internal/disk"
)

// Others are the other members, asked by another way than etcd's: a member that was removed while it was away is not let
// in there any more. servers are where they were last, as each has said with Config.API.
type Others interface {
	// Members are the members that a majority of the others agrees on now, and the store's revision there. It is an
	// error if none of the others can say.
	Members(ctx context.Context, servers []string) (ids []uint64, revision int64, err error)
	// Admit has this machine admitted as a new member, and returns the addresses of all members.
	Admit(ctx context.Context, servers []string) ([]string, error)
}

const (
	// askLimit is how long a start waits for the others' answer, which comes in milliseconds if it comes at all.
	askLimit                = time.Second
	askPause, maxAskPause   = 100 * time.Millisecond, 5 * time.Second
	removedName, othersName = "removed", "others"
	// behind is how long others may take to hear of a removal after the member that was removed.
	behind = 5 * time.Second
)

// gone is the error that this member is none of the others' any more; servers is where they are.
type gone struct{ servers []string }

func (gone) Error() string { return "this member was removed from the others' cluster" }

// verdict is what the others say about this member, once they have.
type verdict struct {
	stays, gone chan struct{} // one of them is closed then; both are nil if nobody is to be asked
}

// servers is where the others are.
func (m *member) servers() []string {
	var out []string
	for _, e := range m.server.Cluster().Members() {
		if e.ID != m.server.MemberID() {
			out = append(out, e.ClientURLs...)
		}
	}
	return out
}

// askOthers finds out whether this member is still one of the others'. There may be two reasons that it is not: it was
// removed, or the cluster was made anew elsewhere, by Recover or Restore; then it must not go on as the old one.
func (s *Store) askOthers(m *member) {
	if s.cfg.Others == nil || m.alone || len(m.server.Cluster().Members()) < 2 {
		return
	}
	m.verdict = verdict{make(chan struct{}), make(chan struct{})}
	go func() {
		if known, ok := s.isKnown(m); ok && known {
			close(m.verdict.stays)
		} else if ok {
			close(m.verdict.gone)
		}
	}()
}

// isKnown asks the others until one answers; ok is false if the member ends before.
func (s *Store) isKnown(m *member) (known, ok bool) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-m.closed:
			cancel()
		case <-ctx.Done():
		}
	}()
	for pause := askPause; ; pause = min(2*pause, maxAskPause) {
		ids, revision, err := s.cfg.Others.Members(ctx, m.servers())
		switch {
		case err != nil:
		case slices.Contains(ids, uint64(m.server.MemberID())):
			return true, true
		case revision >= m.server.KV().Rev():
			return false, true
		default:
			// They are the ones that were left behind: what is here is newer.
			s.cfg.Log.Error("other masters are of an older cluster than this one, and do not know it: stop them, and start them again while this one runs",
				"masters", m.servers(), "their revision", revision, "revision", m.server.KV().Rev())
		}
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return false, false
		}
	}
}

// isGone reports whether a member whose server has ended by itself is none of the others' any more. It may have heard of its removal before them, so
// they are asked for a while.
func (s *Store) isGone(m *member) bool {
	for until := time.Now().Add(behind); ; {
		known, ok := s.isKnown(m)
		if !ok || !known || time.Now().After(until) {
			return ok && !known
		}
		select {
		case <-time.After(askPause):
		case <-m.closed:
			return false
		}
	}
}

// start starts the server; as a new member, each time that it is told that it is none any more.
func (s *Store) start(ctx context.Context) (*member, error) {
	for {
		m, err := s.startMember(ctx)
		var g gone
		if !errors.As(err, &g) {
			return m, err
		}
		if err := s.leave(g.servers); err != nil {
			return nil, err
		}
	}
}

// removedMeanwhile reports whether a member that has ended was removed since it was last asked for.
func (s *Store) removedMeanwhile(ctx context.Context, m *member) bool {
	if s.cfg.Others == nil || m.alone {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	ids, revision, err := s.cfg.Others.Members(ctx, m.servers())
	return err == nil && !slices.Contains(ids, uint64(m.server.MemberID())) && revision >= m.server.KV().Rev()
}

// MemberDir is where in the store's directory a member's log and database are.
func MemberDir(dir string) string { return filepath.Join(dir, "member") }

func (s *Store) removedDir() string { return filepath.Join(s.cfg.Dir, removedName) }

// leave puts the data of a member that is none any more aside, until that happens again: in one step and with the way to the others, so that a kill
// does not make it forget that it is to join them. The member has ended.
func (s *Store) leave(servers []string) error {
	s.cfg.Log.Warn("this master was removed from the store's members: it joins the others as a new one", "masters", servers)
	list, err := json.Marshal(servers)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(s.removedDir()); err != nil {
		return err
	}
	if err := disk.WriteFile(filepath.Join(MemberDir(s.cfg.Dir), othersName), list, 0o600); err != nil {
		return err
	}
	if err := os.Rename(MemberDir(s.cfg.Dir), s.removedDir()); err != nil {
		return err
	}
	if err := disk.SyncDir(s.cfg.Dir); err != nil {
		return err
	}
	return s.resume()
}

// resume prepares for joining others that this member has left, or began to leave before it was killed.
func (s *Store) resume() error {
	if _, err := os.Stat(filepath.Join(MemberDir(s.cfg.Dir), "wal")); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	list, err := os.ReadFile(filepath.Join(s.removedDir(), othersName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var servers []string
	if err == nil {
		err = json.Unmarshal(list, &servers)
	}
	s.join = func(ctx context.Context) ([]string, error) { return s.cfg.Others.Admit(ctx, servers) }
	return err
}

// watchEnd looks after a member that is used, and has it join anew if it was removed.
func (s *Store) watchEnd(m *member) {
	select {
	case <-m.ending:
		return
	case <-m.verdict.gone:
	case <-m.server.StopNotify():
		if m.ended() {
			return
		}
		if s.cfg.Others == nil || m.alone || !s.isGone(m) {
			s.fail(errors.New("etcd's server has ended"))
			return
		}
	}
	if err := s.rejoin(m); err != nil {
		s.fail(err)
	}
}

// rejoin makes this machine a new member, which may take as long as the others have no majority. Watches go on where they
// were.
func (s *Store) rejoin(m *member) error {
	s.restarting.Lock()
	defer s.restarting.Unlock()
	if m.ended() {
		return nil
	}
	servers := m.servers()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-s.quit:
			cancel()
		case <-ctx.Done():
		}
	}()
	return s.replace(func() (*member, error) {
		if err := s.leave(servers); err != nil {
			return nil, err
		}
		return s.start(ctx)
	})
}
