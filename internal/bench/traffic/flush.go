package traffic

import (
	"net/http"
	"time"

	"github.com/google/nftables"

	"minik8s/internal/bench/bed"
)

const flushes = 5

// Flush measures the time from the loss of all the host's nftables rules until a host port answers again: the longest
// of several in a row.
func Flush(r *bed.Report) error {
	return bed.WithDaemon(true, func(d *bed.Daemon) error { return flushing(r, d) })
}

func flushing(r *bed.Report, d *bed.Daemon) error {
	web := bed.Pod("web", "minik8s/hello")
	web["spec"].(m)["containers"].([]m)[0]["ports"] = []m{{"containerPort": 80, "hostPort": 30080}}
	if err := d.Do("POST", bed.PodsPath, web, nil); err != nil {
		return err
	}
	// A new connection each time, because an existing one continues without any rules.
	c := &http.Client{Timeout: 20 * time.Millisecond, Transport: &http.Transport{DisableKeepAlives: true}}
	answers := func() bool {
		resp, err := c.Get("http://192.0.2.1:30080/")
		if err != nil {
			return false
		}
		resp.Body.Close() //nolint:errcheck // nothing is read
		return resp.StatusCode == http.StatusOK
	}
	if err := d.Until(30*time.Second, answers); err != nil {
		return err
	}
	var times bed.Samples
	for range flushes {
		nft, err := nftables.New()
		if err != nil {
			return err
		}
		nft.FlushRuleset()
		if err := nft.Flush(); err != nil {
			return err
		}
		began := time.Now()
		if err := d.Until(30*time.Second, answers); err != nil {
			return err
		}
		times = append(times, time.Since(began))
	}
	r.Add("nft flush ruleset to whole again, longest of 5", bed.Ms(times.P(100)), "ms", "<= 1000 ms", "the first after 50 ms, the next ones later")
	return nil
}
