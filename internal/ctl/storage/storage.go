package storage

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/ctl/exit"
	"minik8s/internal/ctl/printer"
	"minik8s/internal/ctl/session"
	"minik8s/internal/disk"
	"minik8s/internal/membership"
)

var columns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string"}, {Name: "Address", Type: "string"}, {Name: "Role", Type: "string"}, {Name: "State", Type: "string"},
	{Name: "ID", Type: "string", Priority: 1}, {Name: "API", Type: "string", Priority: 1},
}

// Members prints the members. wide prints their IDs and APIs, too.
func Members(ctx context.Context, s *session.Session, wide bool) error {
	resp, err := s.API.Do(ctx, http.MethodGet, membership.Path, nil, "", nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // it is read
	var list membership.List
	if err := json.NewDecoder(resp.Body).Decode(&list); err != nil {
		return fmt.Errorf("%s: %w", membership.Path, err)
	}
	table := &metav1.Table{ColumnDefinitions: columns}
	none := func(s string) string {
		if s == "" {
			return "<none>"
		}
		return s
	}
	for _, m := range list.Members {
		table.Rows = append(table.Rows, metav1.TableRow{Cells: []any{none(m.Name), none(m.Address), m.Role, m.State, m.ID, none(m.API)}})
	}
	printer.NewGrid(s.Console, printer.Layout{Wide: wide}).Print(table)
	if list.Revision == 0 {
		s.Note("no majority of the members answers: this is what the master that was asked knew last. " +
			"If they are lost for good, see \"minik8sd ctl etcd recover --help\"")
	}
	return nil
}

// Remove removes a member, given by its name or ID.
func Remove(ctx context.Context, s *session.Session, member string) error {
	resp, err := s.API.Do(ctx, http.MethodDelete, membership.Path+"/"+url.PathEscape(member), nil, "", nil)
	if err != nil {
		return err
	}
	resp.Body.Close() //nolint:errcheck // only that it succeeded is asked
	s.Say("member %s removed", member)
	s.Note("a master that still runs there, or is started there again, joins as a new member; \"minik8sd clean\" on it prevents that")
	return nil
}

// Save writes a snapshot of the store to a file.
func Save(ctx context.Context, s *session.Session, file string) error {
	if info, err := os.Stat(file); err == nil && info.IsDir() {
		return exit.Usagef("%s is a directory: give the name of a file in it", file)
	}
	resp, err := s.API.Do(ctx, http.MethodGet, membership.SnapshotPath, nil, "", nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // it is read
	var size int64
	err = disk.Create(file, 0o600, func(w io.Writer) error {
		size, err = checked(w, resp.Body)
		return err
	})
	if err != nil {
		return fmt.Errorf("%s was not written: %w", file, err)
	}
	s.Say("%s written: %d bytes, revision %s", file, size, resp.Header.Get(membership.RevisionHeader))
	return nil
}

// checked copies a snapshot, whose end is the SHA-256 of all before it.
func checked(w io.Writer, r io.Reader) (int64, error) {
	end := &held{to: sha256.New()}
	n, err := io.Copy(io.MultiWriter(w, end), r)
	if err != nil {
		return n, err
	}
	if sum := end.to.Sum(nil); !bytes.Equal(sum, end.last) {
		return n, errors.New("what the server has sent is not a whole snapshot; try again")
	}
	return n, nil
}

// held passes on all but the last bytes, as many as a SHA-256 has.
type held struct {
	to interface {
		io.Writer
		Sum([]byte) []byte
	}
	last []byte
}

// Write implements io.Writer.
func (h *held) Write(p []byte) (int, error) {
	h.last = append(h.last, p...)
	if n := len(h.last) - sha256.Size; n > 0 {
		h.to.Write(h.last[:n]) //nolint:errcheck // a hash never fails
		h.last = append(h.last[:0], h.last[n:]...)
	}
	return len(p), nil
}
