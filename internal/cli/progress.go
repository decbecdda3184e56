package cli

import (
	"fmt"
	"io"
	"time"
)

// When a running command reports its progress for the first time, and how often after that.
const (
	firstReport    = 2 * time.Second
	reportInterval = 10 * time.Second
)

// Progress writes to w that a command is running, after 2 s and then every 10 s,
// until stop is called. Nothing is written after stop returns.
func Progress(w io.Writer, command string) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	started := time.Now()
	go func() {
		defer close(ended)
		for wait := firstReport; ; wait = reportInterval {
			select {
			case <-done:
				return
			case <-time.After(wait):
				fmt.Fprintf(w, "%s: running for %s\n", command, time.Since(started).Round(time.Second))
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}
