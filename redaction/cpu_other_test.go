//go:build !linux

package redaction

import "time"

// threadTime returns how long f takes.
func threadTime(f func()) time.Duration {
	start := time.Now()
	f()
	return time.Since(start)
}
