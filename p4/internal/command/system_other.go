//go:build !unix

package command

import (
	"os/exec"
	"time"
)

// stopAsGroup kills the process when the context ends: Windows has no SIGTERM, and no
// process groups as on Unix.
func stopAsGroup(cmd *exec.Cmd, grace time.Duration) { cmd.WaitDelay = grace }

// killGroup does nothing: without process groups, children of p4 cannot be found.
func killGroup(*exec.Cmd) {}
