package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// interruptible makes cmd end its own children when its context ends.
func interruptible(cmd *exec.Cmd) {
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
}

// goBuild runs go build with args in dir. what names the result.
func goBuild(ctx context.Context, out *progress, what, dir string, args ...string) error {
	return out.during("building "+what, func() error {
		// Version stamping runs git, which fails in a clone that belongs to another user.
		cmd := exec.CommandContext(ctx, "go", append([]string{"build", "-buildvcs=false"}, args...)...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0") // as make build
		interruptible(cmd)
		if text, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w\n%s", what, err, text)
		}
		return nil
	})
}
