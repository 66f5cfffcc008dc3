package work

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api/minik8s"
	"minik8s/internal/bench/bed"
)

const (
	functionsPath = "/apis/minik8s.io/v1/namespaces/default/functions"
	functionBase  = "build/functions/python.tar"
	functionPort  = "127.0.0.1:18091"

	functionsCold   = 20
	functionsFirst  = 10
	functionsWarm   = 1000
	functionsBurst  = 200
	functionsAtRest = 1000
	functionsRate   = 3 * time.Second
	functionsIdle   = 10 * time.Second
)

// trivial is a function that does next to nothing.
const trivial = "def main(params):\n    return {'x': params['x'] + 5}\n"

// Functions measures functions of Python, called on the port for calls.
func Functions(r *bed.Report) error {
	if _, err := os.Stat(functionBase); err != nil {
		fmt.Fprintln(os.Stderr, "bench: functions are left out: no image with Python:", err)
		return nil
	}
	args := []string{"--function-base", functionBase, "--function-address", functionPort}
	err := bed.WithDaemon(true, func(d *bed.Daemon) error {
		for _, f := range []func(*bed.Report, *bed.Daemon) error{functionFirst, functionCold, functionWarm, functionBurst} {
			if err := f(r, d); err != nil {
				return err
			}
		}
		return nil
	}, args...)
	if err != nil {
		return err
	}
	return bed.WithDaemon(true, func(d *bed.Daemon) error { return functionRest(r, d) }, args...)
}

func functionAdd(d *bed.Daemon, name, source string, change func(*minik8s.FunctionSpec)) error {
	f := &minik8s.Function{TypeMeta: metav1.TypeMeta{APIVersion: "minik8s.io/v1", Kind: "Function"}, ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: minik8s.FunctionSpec{Source: source}}
	if change != nil {
		change(&f.Spec)
	}
	return d.Do("POST", functionsPath, f, nil)
}

// functionClient keeps as many connections as there are callers.
func functionClient(callers int) *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: callers, DisableCompression: true}}
}

// functionCall makes one call, and says how long it took.
func functionCall(c *http.Client, url string) (time.Duration, error) {
	began := time.Now()
	resp, err := c.Post(url, "application/json", strings.NewReader(`{"x": 100}`))
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close() //nolint:errcheck // it was only read
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, bytes.TrimSpace(body))
	}
	return time.Since(began), err
}

// functionPods are the instances of a function.
func functionPods(d *bed.Daemon, name string) ([]corev1.Pod, error) {
	var pods corev1.PodList
	err := d.Do("GET", "/api/v1/namespaces/default/pods?labelSelector="+minik8s.FunctionLabel+"%3D"+name, nil, &pods)
	return pods.Items, err
}

// functionFirst is the time from the POST of 10 kB of Python to the first answer.
func functionFirst(r *bed.Report, d *bed.Daemon) error {
	c := functionClient(1)
	padding := strings.Repeat("# 0123456789012345678901234567890123456789012345678901234567890123\n", 150)
	var took bed.Samples
	for i := range functionsFirst {
		name := fmt.Sprintf("first-%d", i)
		began := time.Now()
		if err := functionAdd(d, name, trivial+padding+fmt.Sprintf("# %d\n", i), nil); err != nil {
			return err
		}
		if _, err := functionCall(c, "http://"+functionPort+"/"+name); err != nil {
			return err
		}
		took = append(took, time.Since(began))
	}
	r.Add("function: upload of 10 kB to the first answer, p50", bed.Ms(took.P(50)), "ms", "<= 500", "image, pull, and a cold start")
	return nil
}

// functionCold is the time of a call at a function without instances whose image the node has.
func functionCold(r *bed.Report, d *bed.Daemon) error {
	c := functionClient(1)
	for i := range functionsCold {
		if err := functionAdd(d, fmt.Sprintf("cold-%d", i), trivial+fmt.Sprintf("# %d\n", i), func(s *minik8s.FunctionSpec) { s.IdleSeconds = 1 }); err != nil {
			return err
		}
		if _, err := functionCall(c, fmt.Sprintf("http://%s/cold-%d", functionPort, i)); err != nil {
			return err
		}
	}
	var took bed.Samples
	for i := range functionsCold {
		name := fmt.Sprintf("cold-%d", i)
		err := d.Until(time.Minute, func() bool {
			time.Sleep(20 * time.Millisecond)
			pods, err := functionPods(d, name)
			return err == nil && len(pods) == 0
		})
		if err != nil {
			return err
		}
		t, err := functionCall(c, "http://"+functionPort+"/"+name)
		if err != nil {
			return err
		}
		took = append(took, t)
	}
	r.Add("function at zero, image present, p50", bed.Ms(took.P(50)), "ms", "<= 200", "a pod's start, and Python's")
	r.Add("  p99", bed.Ms(took.P(99)), "ms", "", "")
	return nil
}

// functionWarm is what the platform adds to a call, against calling the pod itself: in turns, so that both have the same machine.
func functionWarm(r *bed.Report, d *bed.Daemon) error {
	if err := functionAdd(d, "warm", trivial, func(s *minik8s.FunctionSpec) { s.MinInstances, s.MaxInstances, s.Concurrency = 1, 1, 100 }); err != nil {
		return err
	}
	const callers = 8
	c, by := functionClient(callers), "http://"+functionPort+"/warm"
	if _, err := functionCall(c, by); err != nil {
		return err
	}
	pods, err := functionPods(d, "warm")
	if err != nil || len(pods) != 1 {
		return errors.Join(fmt.Errorf("%d instances", len(pods)), err)
	}
	direct := "http://" + pods[0].Status.PodIP + ":8080/"
	var with, without bed.Samples
	for range functionsWarm {
		for _, x := range []struct {
			url string
			to  *bed.Samples
		}{{by, &with}, {direct, &without}} {
			t, err := functionCall(c, x.url)
			if err != nil {
				return err
			}
			*x.to = append(*x.to, t)
		}
	}
	r.Add("warm call: added to the pod's own answer, p50", bed.Ms(with.P(50)-without.P(50)), "ms", "<= 0.2", fmt.Sprintf("the pod: %.2f ms", bed.Ms(without.P(50))))
	r.Add("  p99", bed.Ms(with.P(99)-without.P(99)), "ms", "<= 2", fmt.Sprintf("the pod: %.2f ms", bed.Ms(without.P(99))))
	rate := func(url string) (float64, error) {
		var n atomic.Int64
		var wg sync.WaitGroup
		failed := make(chan error, callers)
		began := time.Now()
		for range callers {
			wg.Go(func() {
				for time.Since(began) < functionsRate {
					if _, err := functionCall(c, url); err != nil {
						failed <- err
						return
					}
					n.Add(1)
				}
			})
		}
		wg.Wait()
		select {
		case err := <-failed:
			return 0, err
		default:
			return float64(n.Load()) / time.Since(began).Seconds(), nil
		}
	}
	alone, err := rate(direct)
	if err != nil {
		return err
	}
	through, err := rate(by)
	if err != nil {
		return err
	}
	r.Add("warm calls of a trivial function, against its pod", through/alone, "of it", ">= 0.9", fmt.Sprintf("%.0f/s, the pod alone %.0f/s; caller, platform and Python share the cores", through, alone))
	return nil
}

// functionBurst is 200 calls at once, of 100 ms each, at a function without instances.
func functionBurst(r *bed.Report, d *bed.Daemon) error {
	source := "import time\ndef main(params):\n    time.sleep(0.1)\n    return 1\n"
	if err := functionAdd(d, "burst", source, func(s *minik8s.FunctionSpec) { s.IdleSeconds, s.Concurrency, s.MaxInstances = 2, 10, 20 }); err != nil {
		return err
	}
	c, url := functionClient(functionsBurst), "http://"+functionPort+"/burst"
	if _, err := functionCall(c, url); err != nil {
		return err
	}
	err := d.Until(time.Minute, func() bool {
		time.Sleep(20 * time.Millisecond)
		pods, err := functionPods(d, "burst")
		return err == nil && len(pods) == 0
	})
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	var took bed.Samples
	var failed error
	for range functionsBurst {
		wg.Go(func() {
			t, err := functionCall(c, url)
			mu.Lock()
			defer mu.Unlock()
			took, failed = append(took, t), errors.Join(failed, err)
		})
	}
	wg.Wait()
	if failed != nil {
		return failed
	}
	pods, err := functionPods(d, "burst")
	r.Add("burst of 200 calls of 100 ms at zero, p99", took.P(99).Seconds(), "s", "<= 1.5", fmt.Sprintf("all answered; %d instances of 10 calls each were started", len(pods)))
	return err
}

// functionRest is what functions cost that nobody calls.
func functionRest(r *bed.Report, d *bed.Daemon) error {
	if err := functionAdd(d, "one", trivial, nil); err != nil { // the registry and the base image are there
		return err
	}
	time.Sleep(functionsIdle)
	_, before, _ := bed.Memory(d)
	used := bed.CPU(d)
	time.Sleep(functionsIdle)
	idle := bed.CPU(d) - used
	began := time.Now()
	for i := range functionsAtRest {
		if err := functionAdd(d, fmt.Sprintf("rest-%d", i), trivial+fmt.Sprintf("# %d\n", i), nil); err != nil {
			return err
		}
	}
	err := d.Until(5*time.Minute, func() bool {
		time.Sleep(500 * time.Millisecond)
		var list minik8s.FunctionList
		if d.Do("GET", functionsPath, nil, &list) != nil {
			return false
		}
		for i := range list.Items {
			if list.Items[i].Status.Image == "" {
				return false
			}
		}
		return true
	})
	if err != nil {
		return err
	}
	made := time.Since(began)
	time.Sleep(3 * functionsIdle)
	_, after, _ := bed.Memory(d)
	used = bed.CPU(d)
	time.Sleep(functionsIdle)
	at := bed.CPU(d) - used
	r.Add("1,000 functions at rest: memory (anonymous)", (after-before)/1024, "MiB", "<= 5 MiB", fmt.Sprintf("made in %.0f s", made.Seconds()))
	r.Add("  CPU beyond that of one function", (at-idle)/functionsIdle.Seconds()*100, "%", "none", fmt.Sprintf("of a core; with one function %.2f %%", idle/functionsIdle.Seconds()*100))
	return nil
}
