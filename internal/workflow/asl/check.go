package asl

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"minik8s/internal/suggest"
)

// check finds the mistakes of a machine as a whole, and puts its states in order.
func (p *parser) check(m *Machine, at *field.Path) {
	names := sorted(m.States)
	exists := func(name string, here *field.Path) {
		if name == "" || m.States[name] != nil {
			return
		}
		why := "there is no such state here"
		if near := suggest.Nearest(name, names); len(near) > 0 {
			why += "; did you mean " + join(near) + "?"
		}
		p.bad(here, name, why)
	}
	exists(m.StartAt, at.Child("StartAt"))
	broken := m.States[m.StartAt] == nil
	for _, name := range names {
		s, here := m.States[name], at.Child("States").Key(name)
		if stateFields[s.Type] == nil {
			broken = true // of an unknown type: nobody knows where it leads
		}
		exists(s.Next, here.Child("Next"))
		exists(s.Default, here.Child("Default"))
		for _, side := range []struct{ name, to string }{{"Left", s.Left}, {"Right", s.Right}} {
			if side.to != Return {
				exists(side.to, here.Child(side.name))
			}
		}
		for i, r := range s.Choices {
			exists(r.Next, here.Child("Choices").Index(i).Child("Next"))
		}
		for i, c := range s.Catch {
			exists(c.Next, here.Child("Catch").Index(i).Child("Next"))
		}
		for _, t := range s.Targets() {
			broken = broken || t.To != "" && m.States[t.To] == nil
		}
	}
	reached := m.reach()
	m.Order = reached
	if broken { // what cannot be reached follows from the other mistakes
		return
	}
	seen := map[string]bool{}
	for _, name := range reached {
		seen[name] = true
	}
	ends := m.ends()
	for _, name := range names {
		here := at.Child("States").Key(name)
		switch {
		case !seen[name]:
			p.bad(here, name, "no way leads to this state from "+m.StartAt)
		case !ends[name] && len(m.States[name].Targets()) > 0:
			p.bad(here, name, "no way leads from this state to an end")
		}
	}
}

// reach lists the states that can be reached, the nearer ones first.
func (m *Machine) reach() []string {
	if m.States[m.StartAt] == nil {
		return nil
	}
	out, seen := []string{m.StartAt}, map[string]bool{m.StartAt: true}
	for i := 0; i < len(out); i++ {
		for _, t := range m.States[out[i]].Targets() {
			if t.To != "" && !seen[t.To] && m.States[t.To] != nil {
				seen[t.To] = true
				out = append(out, t.To)
			}
		}
	}
	return out
}

// ends are the states from which a way leads to an end.
func (m *Machine) ends() map[string]bool {
	out, before := map[string]bool{}, map[string][]string{}
	var queue []string
	mark := func(name string) {
		if !out[name] {
			out[name] = true
			queue = append(queue, name)
		}
	}
	for name, s := range m.States {
		if s.MayEnd() {
			mark(name)
		}
		for _, t := range s.Targets() {
			before[t.To] = append(before[t.To], name)
		}
	}
	for len(queue) > 0 {
		name := queue[0]
		queue = queue[1:]
		for _, from := range before[name] {
			mark(from)
		}
	}
	return out
}
