package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/criticizer/criticizer/internal/cli"
)

func manCommand() *cobra.Command {
	return &cobra.Command{
		Use: "man DIR", Short: "Write the man pages into a directory",
		Example:     `  criticizer man /usr/local/share/man/man1`,
		Annotations: map[string]string{rawOutput: "yes"},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil { //nolint:gosec // man pages are public
				return fmt.Errorf("write man pages: %w", err)
			}
			header := &doc.GenManHeader{Section: "1", Source: cli.Version("criticizer")}
			if err := doc.GenManTree(cmd.Root(), header, args[0]); err != nil {
				return fmt.Errorf("write man pages: %w", err)
			}
			return nil
		},
	}
}
