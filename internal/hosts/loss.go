package hosts

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// Way is a direction of a host's packets: what comes from it, what goes to it, or both.
type Way int

// The directions.
const (
	From Way = 1 << iota
	To
	Both = From | To
)

var ways = map[string]Way{"from": From, "to": To}

// Lose has the network lose so many percent of the host's packets in a direction, each by chance; 100 cuts one direction.
// It takes the place of an earlier Lose, in both directions; Heal ends it.
func (h *Host) Lose(way Way, percent int) error {
	if percent < 1 || percent > 100 {
		return fmt.Errorf("%d%% cannot be lost: 1 to 100 can", percent)
	}
	h.cut, h.lossy = percent == 100, true
	return h.lab.hub.do(func() error { return h.filter(way, percent) })
}

// Cut takes the host off the network, without its link going down; Heal puts it back. (To take the link off its bridge
// would not do: the router's stack may still take what the host sends to other subnets.)
func (h *Host) Cut() error { return h.Lose(Both, 100) }

// Heal ends Cut, Lose, Part and Delay.
func (h *Host) Heal() error {
	err := errors.Join(h.unpart(), h.Delay(0))
	if !h.lossy {
		return err
	}
	h.cut, h.lossy = false, false
	return errors.Join(err, h.lab.hub.do(func() error { return h.filter(Both, 0) }))
}

// filter makes the host's table in the network's namespace anew. The kernel here has no netem; a bridge's packets pass
// nftables as well. The first hook sees all that comes from the host's link, the last all that goes out by it.
func (h *Host) filter(way Way, percent int) error {
	c, err := nftables.New()
	if err != nil {
		return err
	}
	t := c.AddTable(&nftables.Table{Family: nftables.TableFamilyBridge, Name: h.link})
	c.DelTable(t) // it may be there from before
	if percent > 0 {
		c.AddTable(t)
		for _, hook := range []struct {
			way  Way
			at   *nftables.ChainHook
			name string
			link expr.MetaKey
		}{{From, nftables.ChainHookPrerouting, "from", expr.MetaKeyIIFNAME}, {To, nftables.ChainHookPostrouting, "to", expr.MetaKeyOIFNAME}} {
			if way&hook.way == 0 {
				continue
			}
			ch := c.AddChain(&nftables.Chain{Name: hook.name, Table: t, Type: nftables.ChainTypeFilter, Hooknum: hook.at, Priority: nftables.ChainPriorityFilter})
			c.AddRule(&nftables.Rule{Table: t, Chain: ch, Exprs: slices.Concat(onLink(hook.link, h.port), byChance(percent), []expr.Any{
				&expr.Verdict{Kind: expr.VerdictDrop}})})
		}
	}
	return c.Flush()
}

func onLink(key expr.MetaKey, name string) []expr.Any {
	padded := make([]byte, unix.IFNAMSIZ)
	copy(padded, name)
	return []expr.Any{
		&expr.Meta{Key: key, Register: unix.NFT_REG_1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: unix.NFT_REG_1, Data: padded},
	}
}

// byChance matches so many percent of the packets. The random number is brought into the order of the network's bytes,
// in which the kernel compares.
func byChance(percent int) []expr.Any {
	return []expr.Any{
		&expr.Numgen{Register: unix.NFT_REG_1, Modulus: 100, Type: unix.NFT_NG_RANDOM},
		&expr.Byteorder{SourceRegister: unix.NFT_REG_1, DestRegister: unix.NFT_REG_1, Op: expr.ByteorderHton, Len: 4, Size: 4},
		&expr.Cmp{Op: expr.CmpOpLt, Register: unix.NFT_REG_1, Data: binaryutil.BigEndian.PutUint32(uint32(percent))},
	}
}

// stepCut is the step "cut NAME [from | to]".
func (p *play) stepCut(_ context.Context, args []string) error {
	h, way, err := p.hostAndWay(args)
	switch {
	case err != nil:
		return err
	case way == Both:
		return h.Cut()
	}
	return h.Lose(way, 100)
}

// stepLoss is the step "loss NAME PERCENT [from | to]".
func (p *play) stepLoss(_ context.Context, args []string) error {
	if len(args) < 2 {
		return errWords
	}
	percent, err := strconv.Atoi(args[1])
	if err != nil {
		return fmt.Errorf("%q is no number: how many percent of the packets are lost?", args[1])
	}
	h, way, err := p.hostAndWay(slices.Delete(slices.Clone(args), 1, 2))
	if err != nil {
		return err
	}
	return h.Lose(way, percent)
}

func (p *play) hostAndWay(args []string) (*Host, Way, error) {
	if len(args) < 1 || len(args) > 2 {
		return nil, 0, errWords
	}
	h, err := p.named(args[0])
	if err != nil || len(args) == 1 {
		return h, Both, err
	}
	way, ok := ways[args[1]]
	if !ok {
		return nil, 0, fmt.Errorf("%q is no direction: from or to", args[1])
	}
	return h, way, nil
}
