package login

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"
)

// link is one connection that stands.
type link struct {
	client *ssh.Client
	under  *link // the connection to the jump host
	gone   chan struct{}
	once   sync.Once
	stall  time.Duration
	failed chan error // why the link has to end

	mu    sync.Mutex
	files *sftp.Client
}

func (l *link) close() {
	l.once.Do(func() { close(l.gone) })
	l.client.Close()
	if l.under != nil {
		l.under.close()
	}
}

// fail ends the link.
func (l *link) fail(err error) {
	select {
	case l.failed <- err:
	default:
	}
}

func (l *link) broken() bool {
	select {
	case <-l.gone:
		return true
	default:
		return false
	}
}

// keep ends the link when the host no longer answers.
func (l *link) keep(lost func(error)) {
	ended := make(chan error, 1)
	go func() { ended <- l.client.Wait() }()
	tick := time.NewTicker(aliveEvery)
	defer tick.Stop()
	for {
		var err error
		select {
		case <-l.gone:
			return
		case err = <-ended:
		case err = <-l.failed:
		case <-tick.C:
			answer := make(chan error, 1)
			go func() {
				_, _, err := l.client.SendRequest("keepalive@openssh.com", true, nil)
				answer <- err
			}()
			select {
			case err = <-answer:
			case <-time.After(aliveEvery):
				err = errors.New("no sign of life")
			case <-l.gone:
				return
			}
			if err == nil {
				continue
			}
		}
		if !l.broken() {
			lost(err)
		}
		l.close()
		return
	}
}

// sftp returns the one channel for files.
func (l *link) sftp() (*sftp.Client, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.files != nil {
		return l.files, nil
	}
	c, err := l.subsystem()
	if err != nil {
		return nil, fmt.Errorf("files over the connection (sftp): %w", err)
	}
	l.files = c
	go func() {
		c.Wait()
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.files == c {
			l.files = nil
		}
	}()
	return c, nil
}

// subsystem begins SFTP. When the host leaves requests without an answer the whole link ends: closing a session alone waits for the host.
func (l *link) subsystem() (*sftp.Client, error) {
	s, err := l.client.NewSession()
	if err != nil {
		return nil, err
	}
	to, err := s.StdinPipe()
	if err == nil {
		var from io.Reader
		if from, err = s.StdoutPipe(); err == nil {
			if err = s.RequestSubsystem("sftp"); err == nil {
				watch := &stall{limit: l.stall, fire: func() { l.fail(errors.New("the host gives no answer about files: do its disks hang?")) }}
				files, err := sftp.NewClientPipe(&watchedReader{Reader: from, s: watch}, &watchedWriter{WriteCloser: to, s: watch}, sftp.UseConcurrentWrites(true))
				if err != nil {
					return nil, err
				}
				_, limits := files.HasExtension("limits@openssh.com")
				return files, larger(files, string(l.client.ServerVersion()), limits)
			}
		}
	}
	s.Close()
	return nil, err
}
