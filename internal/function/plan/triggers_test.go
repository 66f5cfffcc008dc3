package plan

import (
	"testing"
	"time"
)

func TestDue(t *testing.T) {
	hourly := func(at time.Time) time.Time { return at.Truncate(time.Hour).Add(time.Hour) }
	at := func(s string) time.Time {
		v, err := time.Parse("2006-01-02 15:04", s)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	asked := 0
	counted := func(from time.Time) time.Time { asked++; return hourly(from) }
	for _, x := range []struct{ last, now, want string }{
		{"2030-01-01 10:00", "2030-01-01 10:59", ""},
		{"2030-01-01 10:00", "2030-01-01 11:00", "2030-01-01 11:00"},
		{"2030-01-01 10:00", "2030-01-01 13:30", "2030-01-01 13:00"},
		{"2020-01-01 10:00", "2030-01-01 13:30", "2030-01-01 13:00"},
	} {
		got := Due(counted, at(x.last), at(x.now))
		if x.want == "" && !got.IsZero() || x.want != "" && !got.Equal(at(x.want)) {
			t.Errorf("%s, %s: %v", x.last, x.now, got)
		}
	}
	if asked > 30 {
		t.Errorf("it went through %d times", asked)
	}
	never := func(time.Time) time.Time { return time.Time{} }
	if got := Due(never, at("2020-01-01 10:00"), at("2030-01-01 10:00")); !got.IsZero() {
		t.Errorf("of a schedule without times: %v", got)
	}
}
