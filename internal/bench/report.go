package main

import "fmt"

// figure is one line of the report.
type figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	Reach string  `json:"reach"` // the goal
	Bound string  `json:"bound"` // what limits it, measured in the same run if possible
}

// report collects figures.
type report struct {
	Date    string   `json:"date"`
	Cores   int      `json:"cores"`
	Load    string   `json:"load"` // of the machine, before the run
	Figures []figure `json:"figures"`
}

// add takes a figure and prints it.
func (r *report) add(name string, value float64, unit, reach, bound string) {
	r.Figures = append(r.Figures, figure{name, value, unit, reach, bound})
	fmt.Printf("%-52s %10s   reach %-16s %s\n", name, format(value, unit), reach, bound)
}

// format is a value with its unit, with as many digits as are worth reading.
func format(v float64, unit string) string {
	switch {
	case unit == "/s" || v >= 1000:
		return fmt.Sprintf("%.0f %s", v, unit)
	case v >= 10:
		return fmt.Sprintf("%.1f %s", v, unit)
	}
	return fmt.Sprintf("%.2f %s", v, unit)
}
