package cli

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestExecuteClassifiesErrors(t *testing.T) {
	t.Parallel()
	for args, status := range map[string]int{
		"run x": 0, "run --n 1 x": 0, "--help": 0, "group --help": 0,
		"run fails": 1, "": 2, "nonsense": 2, "group": 2, "group nonsense": 2, "run": 2, "run --nonsense x": 2, "run --n many x": 2,
	} {
		root := &cobra.Command{Use: "tool"}
		run := &cobra.Command{Use: "run", Args: cobra.ExactArgs(1), RunE: func(_ *cobra.Command, args []string) error {
			if args[0] == "fails" {
				return errors.New("failed")
			}
			return nil
		}}
		run.Flags().Int("n", 0, "")
		group := &cobra.Command{Use: "group"}
		group.AddCommand(&cobra.Command{Use: "sub", Run: func(*cobra.Command, []string) {}})
		root.AddCommand(run, group)
		err := Execute(t.Context(), root, strings.Fields(args), io.Discard, io.Discard)
		if got := Report(io.Discard, "tool", err); got != status {
			t.Errorf("%q: exit status %d (%v), want %d", args, got, err, status)
		}
	}
}
