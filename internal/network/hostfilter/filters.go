package hostfilter

import (
	"fmt"
	"log/slog"
	"net/netip"
	"slices"

	"minik8s/internal/nft"
)

// Trouble is what in the host's packet filter stops pods' traffic; normally nothing.
type Trouble struct {
	// Stopped names filters that stop all of it, or all of it from or to the node, and could not be opened.
	Stopped []string
	// Partly names the rules that drop some of it, such as one port or address. They are assumed to be intended.
	Partly []string
}

// Filters are the host's other filters. Its calls must not overlap.
type Filters struct {
	nf                nft.Ruleset
	own               string // the prefix of the names of tables that are no others'
	tag               string // in the comments of our rules
	log               *slog.Logger
	firewalld, legacy client
	legacyInUse       func() bool // whether the older iptables has a filter table here
	trouble           Trouble
}

// New is for the filters that are in a ruleset beside tables whose names begin with own. tag is what names our rules in
// them.
func New(nf nft.Ruleset, own, tag string, log *slog.Logger) *Filters {
	return &Filters{nf: nf, own: own, tag: tag, log: log,
		firewalld: firewalld{runTool}, legacy: legacy{runTool, legacyInUse, tag}, legacyInUse: legacyInUse}
}

// Open makes the filters accept the traffic, records those that still stop it, and reports whether it changed any.
func (f *Filters) Open(t Traffic) (changed bool, err error) {
	changed, trouble, err := f.open(t)
	if err != nil {
		return changed, err
	}
	if !slices.Equal(trouble.Stopped, f.trouble.Stopped) {
		for _, by := range trouble.Stopped {
			f.log.Warn("pods' traffic is stopped by the host's packet filter", "by", by)
		}
	}
	if !slices.Equal(trouble.Partly, f.trouble.Partly) {
		for _, by := range trouble.Partly {
			f.log.Info("a part of pods' traffic is stopped by the host's packet filter", "by", by)
		}
	}
	f.trouble = trouble
	return changed, nil
}

// Trouble is what the last Open has found.
func (f *Filters) Trouble() Trouble { return f.trouble }

// Unheard reports whether a filter may have changed without an event: there is none for a change of the older iptables,
// nor for the end of a table's owner.
func (f *Filters) Unheard() bool { return len(f.trouble.Stopped) > 0 || f.legacyInUse() }

// client opens a filter that only its own tool may change.
type client interface {
	// open accepts the pods' range; done is false if there is nothing to open for this client.
	open(pods netip.Prefix, want map[nft.Hook][]nft.Accept) (done bool, err error)
	// close undoes open.
	close(pods netip.Prefix, want map[nft.Hook][]nft.Accept) error
}

func (f *Filters) open(traffic Traffic) (changed bool, t Trouble, err error) {
	chains, err := f.nf.Others(f.own)
	if err != nil {
		return false, t, err
	}
	want := traffic.admitted()
	list, partly := openings(chains, f.tag, traffic)
	t.Partly = partly
	for _, o := range list {
		err := f.nf.Admit(o.chain, f.tag, o.rules)
		changed = changed || err == nil
		if err == nil || len(o.rules) == 0 {
			continue
		}
		if o.chain.Table == "firewalld" {
			// Newer versions of firewalld own their table, which then nothing else can change.
			if done, ferr := f.firewalld.open(traffic.Pods, want); done && ferr == nil {
				continue
			} else if ferr != nil {
				err = ferr
			}
		}
		t.Stopped = append(t.Stopped, fmt.Sprintf("%s (an accepting rule could not be put before it: %v)", o.where, err))
	}
	if _, err := f.legacy.open(traffic.Pods, want); err != nil {
		t.Stopped = append(t.Stopped, err.Error())
	}
	slices.Sort(t.Stopped)
	return changed, t, nil
}

// Close removes our rules from the filters.
func (f *Filters) Close(t Traffic) []error {
	chains, err := f.nf.Others(f.own)
	errs := []error{err}
	firewalld := false
	for _, c := range chains {
		firewalld = firewalld || c.Table == "firewalld"
		if !c.Admitted(f.tag, nil, 0) {
			errs = append(errs, f.nf.Admit(c, f.tag, nil))
		}
	}
	if !t.Pods.IsValid() {
		return errs
	}
	want := t.admitted()
	if firewalld {
		errs = append(errs, f.firewalld.close(t.Pods, want))
	}
	return append(errs, f.legacy.close(t.Pods, want))
}
