//go:build unix

package command

import (
	"os/exec"
	"syscall"
	"time"
)

// stopAsGroup makes the process the leader of a process group, and sends SIGTERM
// to the whole group when the context ends. exec kills the leader after the grace.
func stopAsGroup(cmd *exec.Cmd, grace time.Duration) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = grace
}

// killGroup kills the rest of the group: children that ignored SIGTERM, or that
// outlived their parent. The leader has been reaped, but its number belongs to the
// group as long as the group has a member.
func killGroup(cmd *exec.Cmd) {
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
}
