package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

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
	if err := play(os.Args[1], os.Args[2], os.Args[3], os.Args[4]); err != nil {
		fmt.Fprintln(os.Stderr, "autoscale:", err)
		return 1
	}
	return 0
}

// longest is how long a phase may take to come to its end.
const longest = 2 * time.Minute

func play(binary, images, scenario, picture string) (err error) {
	s, err := hosts.Read(scenario)
	if err != nil {
		return err
	}
	lab, err := hosts.New(binary, images)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := lab.Close(); err == nil {
			err = cerr
		}
	}()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := s.Play(ctx, lab, os.Stdout); err != nil {
		return err
	}
	c, err := watch(ctx, lab)
	if err != nil {
		return err
	}
	defer c.end()
	fmt.Println("\nA client on worker1 asks the Service twenty times a second.")
	err = c.phases(ctx)
	c.end()
	if werr := c.draw(picture); err == nil {
		err = werr
	}
	if err != nil {
		return err
	}
	if path, err := filepath.Abs(picture); err == nil {
		fmt.Println("\nThe course is drawn in", path)
	}
	return judge(c.samples, c.answers, c.failures)
}

// phases raises the load, waits until replicas have followed, and lowers it.
func (c *course) phases(ctx context.Context) error {
	if err := c.pass(ctx, 4*time.Second); err != nil {
		return err
	}
	fmt.Println("\nThe web server has to do six tenths of a core's work: GET /higher, six times.")
	c.mark("higher")
	for range 6 {
		if _, err := c.get(ctx, "/higher"); err != nil {
			return err
		}
	}
	if err := c.until(ctx, "as many replicas as there may be are ready", func(s sample) bool { return s.ready == s.most }); err != nil {
		return err
	}
	if err := c.pass(ctx, 8*time.Second); err != nil {
		return err
	}
	fmt.Println("\nAll of it ends: GET /lower, until no replica has any.")
	c.mark("lower")
	for range 10 * c.last().ready {
		if _, err := c.get(ctx, "/lower"); err != nil {
			return err
		}
	}
	if err := c.until(ctx, "one replica is left", func(s sample) bool { return s.pods == s.least && s.ready == s.least }); err != nil {
		return err
	}
	return c.pass(ctx, 4*time.Second)
}
