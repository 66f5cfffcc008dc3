package logind

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/godbus/dbus/v5"
)

const (
	service = "org.freedesktop.login1"
	object  = dbus.ObjectPath("/org/freedesktop/login1")
	manager = "org.freedesktop.login1.Manager"
)

// ErrNone means that there is no system bus, or no logind on it, as in most containers.
var ErrNone = errors.New("there is no logind here")

// callTime bounds a call; logind answers at once.
const callTime = 10 * time.Second

// Conn is a connection to logind. Its methods are safe for concurrent use, but for Next.
type Conn struct {
	bus     *dbus.Conn
	signals chan *dbus.Signal
	owner   string
	dir     string
}

// Open connects to logind; from then on no shutdown is missed. owner distinguishes daemons on one machine, in the name
// of a file. The error is ErrNone where there is no logind.
func Open(ctx context.Context, owner string) (*Conn, error) { return open(ctx, owner, DropIns) }

func open(ctx context.Context, owner, dir string) (*Conn, error) {
	// The connection outlives ctx only until Close.
	bus, err := dbus.ConnectSystemBus(dbus.WithContext(ctx))
	if err != nil {
		return nil, fmt.Errorf("%w: the system bus: %w", ErrNone, err)
	}
	c := &Conn{bus: bus, signals: make(chan *dbus.Signal, 8), owner: owner, dir: dir}
	bus.Signal(c.signals)
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	err = bus.AddMatchSignalContext(ctx, dbus.WithMatchSender(service), dbus.WithMatchObjectPath(object),
		dbus.WithMatchInterface(manager), dbus.WithMatchMember("PrepareForShutdown"))
	if err == nil {
		_, err = c.MaxDelay(ctx)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Close ends the connection. Locks are not released.
func (c *Conn) Close() {
	c.bus.Close() //nolint:errcheck // nothing was left to send
}

// Next waits for the next word of logind: true, the machine is about to shut down, or false, it does not after all. The
// error is one of the connection, or that of ctx.
func (c *Conn) Next(ctx context.Context) (down bool, err error) {
	for {
		select {
		case s, ok := <-c.signals:
			if !ok {
				return false, errors.New("the system bus has closed the connection")
			}
			// The match is the bus's, but what is sent to this connection alone arrives unmatched.
			if s.Name == manager+".PrepareForShutdown" && s.Path == object && len(s.Body) == 1 {
				if down, ok := s.Body[0].(bool); ok {
					return down, nil
				}
			}
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

// ShuttingDown reports whether a shutdown is under way.
func (c *Conn) ShuttingDown(ctx context.Context) (bool, error) {
	return property[bool](ctx, c, "PreparingForShutdown")
}

// MaxDelay is how long logind waits for a lock at most.
func (c *Conn) MaxDelay(ctx context.Context) (time.Duration, error) {
	micro, err := property[uint64](ctx, c, "InhibitDelayMaxUSec")
	return time.Duration(min(micro, uint64(1<<62/time.Microsecond))) * time.Microsecond, err
}

// Inhibit takes a lock that delays a shutdown until it is closed. who and why are what "systemd-inhibit --list" shows.
func (c *Conn) Inhibit(ctx context.Context, who, why string) (io.Closer, error) {
	var fd dbus.UnixFD
	if err := c.call(ctx, manager+".Inhibit", "shutdown", who, why, "delay").Store(&fd); err != nil {
		return nil, fmt.Errorf("logind gives no inhibitor lock: %w", err)
	}
	return os.NewFile(uintptr(fd), "inhibitor"), nil
}

func (c *Conn) call(ctx context.Context, method string, args ...any) *dbus.Call {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	return c.bus.Object(service, object).CallWithContext(ctx, method, 0, args...)
}

func property[T any](ctx context.Context, c *Conn, name string) (value T, err error) {
	var v dbus.Variant
	if err := c.call(ctx, "org.freedesktop.DBus.Properties.Get", manager, name).Store(&v); err != nil {
		if absent(err) {
			return value, fmt.Errorf("%w: %w", ErrNone, err)
		}
		return value, fmt.Errorf("logind's %s: %w", name, err)
	}
	value, ok := v.Value().(T)
	if !ok {
		return value, fmt.Errorf("logind's %s is %s, which is not expected", name, v)
	}
	return value, nil
}

// absent reports whether an error says that nobody has logind's name on the bus.
func absent(err error) bool {
	var e dbus.Error
	return errors.As(err, &e) && slices.Contains([]string{"org.freedesktop.DBus.Error.ServiceUnknown",
		"org.freedesktop.DBus.Error.NameHasNoOwner", "org.freedesktop.DBus.Error.Spawn.ServiceNotFound"}, e.Name)
}
