package redaction

import (
	"runtime"
	"syscall"
	"time"
)

// threadTime returns the processor time that f takes on its thread, which other
// programs do not change.
func threadTime(f func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := usedTime()
	f()
	return usedTime() - before
}

func usedTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_THREAD, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
