package pods

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/gorilla/websocket"

	"minik8s/internal/bench/bed"
	"minik8s/internal/client/remote"
	"minik8s/internal/machine"
)

const (
	streamed = 100
	clearing = 50 * time.Millisecond // until nothing is left of a command that has ended
)

// Streams measures exec and logs through the API server, which passes them on to the kubelet's server, and logs directly
// at the kubelet's server, which is their lower limit.
func Streams(r *bed.Report) error {
	return bed.WithDaemon(true, func(d *bed.Daemon) error { return execAndLogs(r, d) })
}

func execAndLogs(r *bed.Report, d *bed.Daemon) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	ch, err := bed.Watch(ctx, d.HTTP, "http://minik8s"+bed.PodsPath+"?watch=1")
	if err != nil {
		return err
	}
	if err := d.Until(time.Minute, func() bool { return bed.ImagePresent(d) }); err != nil {
		return err
	}
	if err := d.Do("POST", bed.PodsPath, bed.Pod("talks", "busybox", bed.Polite...), nil); err != nil {
		return err
	}
	if _, err := bed.Wait(ch, time.Minute, func(s bed.Event) bool { return s.Object.Metadata.Name == "talks" && s.Object.Status.Phase == "Running" }); err != nil {
		return err
	}
	c, err := remote.FromKubeconfig(filepath.Join(d.Dir, "admin.kubeconfig"), "")
	if err != nil {
		return err
	}
	defer c.Close()
	h, base, err := d.Secure(1)
	if err != nil {
		return err
	}
	const kubelet = "https://" + machine.Address + ":10250"
	direct, err := kubeletExec(h, kubelet+"/exec/default/talks/c?command=true&stdout=true")
	if err != nil {
		return err
	}
	execs, directExecs, err := alternate(func() error {
		return c.Exec(ctx, "default", "talks", "", []string{"true"}, remote.Streams{Stdout: io.Discard, Stderr: io.Discard})
	}, direct)
	if err != nil {
		return err
	}
	logs, directLogs, err := alternate(func() error { return read(h, base+bed.PodsPath+"/talks/log") },
		func() error { return read(h, kubelet+"/containerLogs/default/talks/c") })
	if err != nil {
		return err
	}
	r.Add("exec of true in a pod, p50", bed.Ms(execs.P(50)), "ms", "", "the time of runc, and a new connection")
	r.Add("  p95", bed.Ms(execs.P(95)), "ms", "", "")
	r.Add("  more than directly at the kubelet, p50", bed.Ms(execs.P(50)-directExecs.P(50)), "ms", "<= 3 ms", fmt.Sprintf("%.2f ms there", bed.Ms(directExecs.P(50))))
	r.Add("a log, p50", bed.Ms(logs.P(50)), "ms", "", "")
	r.Add("  more than directly at the kubelet, p50", bed.Ms(logs.P(50)-directLogs.P(50)), "ms", "<= 3 ms", fmt.Sprintf("%.2f ms there", bed.Ms(directLogs.P(50))))
	return nil
}

// kubeletExec returns a command that runs in a container by the kubelet's own server, to its end.
func kubeletExec(c *http.Client, url string) (func() error, error) {
	tr, ok := c.Transport.(*http.Transport)
	if !ok {
		return nil, fmt.Errorf("%T has no TLS configuration", c.Transport)
	}
	d := websocket.Dialer{TLSClientConfig: tr.TLSClientConfig, Subprotocols: []string{"v5.channel.k8s.io"}}
	return func() error {
		conn, resp, err := d.Dial("wss"+strings.TrimPrefix(url, "https"), nil)
		if err != nil {
			return err
		}
		defer conn.Close()      //nolint:errcheck // it is over
		defer resp.Body.Close() //nolint:errcheck // as above
		for {
			if _, _, err := conn.ReadMessage(); err != nil {
				if websocket.IsCloseError(err, websocket.CloseNormalClosure) {
					return nil
				}
				return err
			}
		}
	}, nil
}

// alternate measures two ways of doing the same in turn, so that both meet the same load, after a first time that is not
// counted. Before each there is a pause, for what is cleared away after the one before.
func alternate(one, other func() error) (a, b bed.Samples, err error) {
	timed := func(do func() error) time.Duration {
		time.Sleep(clearing)
		began := time.Now()
		if derr := do(); err == nil {
			err = derr
		}
		return time.Since(began)
	}
	for i := range streamed + 1 {
		x, y := timed(one), timed(other)
		if err != nil {
			return nil, nil, err
		}
		if i > 0 {
			a, b = append(a, x), append(b, y)
		}
	}
	return a, b, nil
}

// read reads an answer to its end.
func read(c *http.Client, url string) error {
	resp, err := c.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // it was only read
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, resp.Status)
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}
