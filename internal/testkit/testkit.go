// Package testkit has what the tests of many packages share.
package testkit

import (
	"testing"
	"time"
)

// NoError fails the test if err is not nil.
func NoError(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// Eventually waits until holds returns true. After a minute it fails the test.
func Eventually(tb testing.TB, what string, holds func() bool) {
	tb.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			tb.Fatalf("timed out: %s", what)
		}
	}
}
