package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
)

// goBuild compiles the main package pkg of the module in dir to the file out.
func goBuild(ctx context.Context, out *progress, dir, pkg, file string, flags ...string) error {
	return out.during("building "+filepath.Base(file), func() error {
		// Version stamping runs git, which fails in a clone of another user.
		args := append([]string{"build", "-buildvcs=false", "-o", file}, flags...)
		cmd := exec.CommandContext(ctx, "go", append(args, pkg)...)
		cmd.Dir = dir
		if text, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w\n%s", pkg, err, text)
		}
		return nil
	})
}
