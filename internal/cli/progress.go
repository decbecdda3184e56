package cli

import (
	"fmt"
	"io"
	"time"
)

// When a command that has not ended says so, and how often again.
const (
	firstSign = 2 * time.Second
	nextSigns = 10 * time.Second
)

// Progress says on w that a command is at work, once that has taken 2 s, and
// every 10 s from then on, until stop is called. Nothing is written after that.
func Progress(w io.Writer, command string) (stop func()) {
	return progress(w, command, firstSign, nextSigns)
}

func progress(w io.Writer, command string, first, next time.Duration) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	begun := time.Now()
	go func() {
		defer close(ended)
		for wait := first; ; wait = next {
			select {
			case <-done:
				return
			case <-time.After(wait):
				fmt.Fprintf(w, "%s: at work for %s\n", command, time.Since(begun).Round(time.Second))
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}
