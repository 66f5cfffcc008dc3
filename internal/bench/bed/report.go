package bed

import "fmt"

// Figure is one line of the report.
type Figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	Reach string  `json:"reach"` // the goal
	Bound string  `json:"bound"` // what limits it, measured in the same run if possible
}

// Report collects figures.
type Report struct {
	Date    string   `json:"date"`
	Cores   int      `json:"cores"`
	Load    string   `json:"load"` // of the machine, before the run
	Figures []Figure `json:"figures"`
}

// Add takes a figure and prints it.
func (r *Report) Add(name string, value float64, unit, reach, bound string) {
	r.Figures = append(r.Figures, Figure{name, value, unit, reach, bound})
	fmt.Printf("%-52s %10s   reach %-16s %s\n", name, Format(value, unit), reach, bound)
}

// Format is a value with its unit, with as many digits as are worth reading.
func Format(v float64, unit string) string {
	switch {
	case unit == "/s" || v >= 1000:
		return fmt.Sprintf("%.0f %s", v, unit)
	case v >= 10:
		return fmt.Sprintf("%.1f %s", v, unit)
	}
	return fmt.Sprintf("%.2f %s", v, unit)
}
