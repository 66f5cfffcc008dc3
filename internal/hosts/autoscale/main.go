package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/hosts"
	"minik8s/internal/machine"
)

func main() { machine.Run(run) }

func run() int {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: autoscale MINIK8SD IMAGES SCENARIO PICTURE")
		return 2
	}
	if os.Geteuid() != 0 {
		fmt.Fprintln(os.Stderr, "autoscale: hosts need root: try sudo")
		return 1
	}
	if err := show(os.Args[1], os.Args[2], os.Args[3], os.Args[4]); err != nil {
		fmt.Fprintln(os.Stderr, "autoscale:", err)
		return 1
	}
	return 0
}

// The scenario has a host for each of these, and the app.
const (
	master = "master"
	asking = "worker1"
	app    = "web"
)

// show sets up the machines of a scenario, raises and lowers the load, and writes the picture.
func show(binary, images, scenario, path string) (err error) {
	s, err := hosts.Read(scenario)
	if err != nil {
		return err
	}
	lab, err := hosts.New(binary, images)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lab.Close()) }()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := s.Play(ctx, lab, os.Stdout); err != nil {
		return err
	}
	if lab.Host(master) == nil || lab.Host(asking) == nil {
		return fmt.Errorf("%s: expected hosts %s and %s", scenario, master, asking)
	}
	cluster, err := lab.Host(master).API()
	if err != nil {
		return err
	}
	svc, err := client.Get[*corev1.Service](ctx, cluster, key(api.Services, app))
	if err != nil {
		return err
	}
	o := &observer{cluster: cluster, app: app, out: os.Stdout}
	if err := o.begin(ctx); err != nil {
		return err
	}
	a := newAsker(lab.Host(asking), net.JoinHostPort(svc.Spec.ClusterIP, strconv.Itoa(int(svc.Spec.Ports[0].Port))))
	fmt.Printf("\nThe autoscaler keeps %d to %d replicas, and aims at %d%% of the CPU that they request. A client on %s asks the Service.\n"+
		"Upstream's defaults would be slow to watch, so it looks every second (not 15), and takes replicas away after 5 seconds (not five minutes).\n",
		o.record.least, o.record.most, o.record.target, asking)
	err = play(ctx, o, a, phases(), os.Stdout)
	if ctx.Err() != nil {
		return err
	}
	// Whatever happened: what was seen until then is drawn.
	if derr := draw(&o.record, path); derr != nil {
		return errors.Join(err, derr)
	}
	fmt.Print("\n", o.record.summary())
	if full, aerr := filepath.Abs(path); aerr == nil {
		fmt.Println("The course is drawn in", full)
	}
	return errors.Join(err, judge(&o.record))
}

func draw(r *record, path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(picture(r).Draw(f), f.Close())
}
