package hosts

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// expectMember asks a master as a person does.
func (p *play) expectMember(_ context.Context, args []string) error {
	if len(args) != 4 || args[2] != "of" {
		return errWords
	}
	h, err := p.named(args[3])
	if err != nil {
		return err
	}
	out, err := h.Ctl("etcd", "members")
	if err != nil {
		return err
	}
	state := "gone"
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); len(f) == 4 && f[0] == args[0] { // name, address, role, state
			state = f[3]
		}
	}
	if state != args[1] {
		return fmt.Errorf("it is %s:\n%s", state, out)
	}
	return nil
}

func (p *play) expectRefused(_ context.Context, args []string) error {
	if len(args) < 3 {
		return errWords
	}
	h, err := p.named(args[0])
	if err != nil {
		return err
	}
	out, err := h.Ctl(p.files(h, args[2:])...)
	switch {
	case err == nil:
		return errors.New("it is done: " + out)
	case !strings.Contains(err.Error(), args[1]):
		return fmt.Errorf("it is refused otherwise: %w", err)
	}
	fmt.Fprintf(p.out, "         | %v\n", err)
	return nil
}
