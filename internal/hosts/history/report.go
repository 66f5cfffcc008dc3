package history

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/anishathalye/porcupine"
)

// Judge checks a history. If it is bad, the history, the problems and porcupine's drawings are written to a new directory
// below dir, and the error names that and the first problems.
func Judge(h *History, dir string) error {
	p := check(h)
	if len(p.all) == 0 {
		return nil
	}
	to := filepath.Join(dir, fmt.Sprintf("seed-%d-round-%d", h.Seed, h.Round))
	err := fmt.Errorf("%d promises were not kept with seed %d in round %d; see %s", len(p.all), h.Seed, h.Round, to)
	for _, one := range p.all[:min(5, len(p.all))] {
		err = fmt.Errorf("%w\n%s", err, one)
	}
	return errors.Join(err, p.write(h, to))
}

func (p *problems) write(h *History, to string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	text := fmt.Sprintf("seed %d, round %d\n\n", h.Seed, h.Round)
	for _, one := range p.all {
		text += one.String() + "\n"
	}
	if err := os.WriteFile(filepath.Join(to, "problems.txt"), []byte(text), 0o644); err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(to, "history.json"))
	if err != nil {
		return err
	}
	slices.SortFunc(h.Ops, func(a, b *Op) int { return int(a.Call - b.Call) })
	out := json.NewEncoder(f)
	out.SetIndent("", " ")
	if err := errors.Join(out.Encode(h), f.Close()); err != nil {
		return err
	}
	for k, info := range p.drawings {
		var marks []porcupine.Annotation
		for _, ft := range h.Faults {
			marks = append(marks, porcupine.Annotation{Tag: "faults", Start: int64(ft.At), Description: ft.What})
		}
		info.AddAnnotations(marks)
		if err := porcupine.VisualizePath(model(h.Start), info, filepath.Join(to, k+".html")); err != nil {
			return err
		}
	}
	return nil
}

// Load reads a history that was written.
func Load(path string) (*History, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	h := &History{}
	return h, json.Unmarshal(b, h)
}
