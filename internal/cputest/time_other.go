//go:build !linux

package cputest

import "time"

// Time returns how long f takes.
func Time(f func()) time.Duration {
	start := time.Now()
	f()
	return time.Since(start)
}
