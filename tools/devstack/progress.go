package main

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// progressEvery is how often a long step reports that it is running.
const progressEvery = 10 * time.Second

// progress prints what devstack does.
type progress struct {
	mu sync.Mutex
	w  io.Writer
}

// say prints one line.
func (p *progress) say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.w, "==> "+format+"\n", args...)
}

// during runs f and reports every few seconds that it is running. The label is
// what f does: "building temporal".
func (p *progress) during(label string, f func() error) error {
	p.say("%s", label)
	start := time.Now()
	done := make(chan struct{})
	var ticker sync.WaitGroup
	ticker.Go(func() {
		tick := time.NewTicker(progressEvery)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				p.detail("still %s (%ds)", label, int(time.Since(start).Seconds()))
			}
		}
	})
	err := f()
	close(done)
	ticker.Wait()
	return err
}

// detail prints one line that belongs to the last one.
func (p *progress) detail(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.w, "    "+format+"\n", args...)
}
