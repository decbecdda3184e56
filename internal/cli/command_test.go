package cli

import (
	"errors"
	"io"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"
)

func newTool() *cobra.Command {
	root := &cobra.Command{Use: "tool"}
	run := &cobra.Command{Use: "run NAME [MORE...]", RunE: func(_ *cobra.Command, args []string) error {
		switch args[0] {
		case "fails":
			return errors.New("failed")
		case "wrong":
			return UsageError{Err: errors.New("wrong name")}
		}
		return nil
	}}
	run.Flags().Int("n", 0, "")
	run.Flags().Bool("dry", false, "")
	run.Flags().Bool("wet", false, "")
	run.MarkFlagsMutuallyExclusive("dry", "wet")
	run.Flags().Duration("every", time.Second, "")
	group := &cobra.Command{Use: "group"}
	group.AddCommand(&cobra.Command{Use: "sub", Run: func(*cobra.Command, []string) {}})
	note := &cobra.Command{Use: "note", Run: func(*cobra.Command, []string) {}}
	note.Flags().String("text", "", "")
	_ = note.MarkFlagRequired("text")
	root.AddCommand(run, group, note)
	return root
}

func TestExecuteClassifiesErrors(t *testing.T) {
	t.Parallel()
	for args, status := range map[string]int{
		"run x": 0, "run --n 1 x y z": 0, "--help": 0, "group --help": 0, "help": 0, "help group sub": 0,
		"note": 2, "note --text x": 0, "run --dry --wet x": 2,
		"run fails": 1, "run wrong": 2, "": 2, "nonsense": 2, "nonsense --help": 2, "group": 2, "group nonsense": 2, "group nonsense --help": 2,
		"run": 2, "run --nonsense x": 2, "run --n many x": 2, "group sub x": 2, "help nonsense": 2, "help group nonsense": 2, "completion tcsh": 2,
	} {
		err := Execute(t.Context(), newTool(), strings.Fields(args), io.Discard, io.Discard)
		if got := Report(io.Discard, "tool", err); got != status {
			t.Errorf("%q: exit status %d (%v), want %d", args, got, err, status)
		}
	}
}

func TestUsageErrorsAreExplained(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"run":               "tool: error: tool run wants NAME [MORE...]: got 0 arguments\nhint: see tool run --help\n",
		"group sub x":       "tool: error: tool group sub takes no arguments: got \"x\"\nhint: see tool group sub --help\n",
		"rn --n 1":          "tool: error: unknown command \"rn\" for tool\nhint: did you mean run? tool --help lists the commands\n",
		"group su --help":   "tool: error: unknown command \"su\" for tool group\nhint: did you mean sub? tool group --help lists the commands\n",
		"run --n=many x":    "tool: error: --n \"many\": want a whole number\nhint: see tool run --help\n",
		"run --dry=maybe x": "tool: error: --dry \"maybe\": want true or false\nhint: see tool run --help\n",
		"run --every=30 x":  "tool: error: --every \"30\": want a duration with its unit, such as 30s, 5m or 24h\nhint: see tool run --help\n",
		"run --nonsense x":  "tool: error: unknown flag: --nonsense\nhint: see tool run --help\n",
		"run wrong":         "tool: error: wrong name\nhint: see tool run --help\n",
	} {
		var stderr strings.Builder
		Report(&stderr, "tool", Execute(t.Context(), newTool(), strings.Fields(args), io.Discard, io.Discard))
		if stderr.String() != want {
			t.Errorf("%q: %q, want %q", args, stderr.String(), want)
		}
	}
}

func TestVersionNamesTheCommit(t *testing.T) {
	t.Parallel()
	info := &debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}, Settings: []debug.BuildSetting{
		{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.time", Value: "2026-01-02T03:04:05Z"}, {Key: "vcs.modified", Value: "true"},
	}}
	if got := versionOf("tool", info); !strings.HasPrefix(got, "tool v1.2.3, commit 0123456789ab of 2026-01-02T03:04:05Z, with changes, go1.") {
		t.Errorf("got %q", got)
	}
	if got := Version("tool"); !strings.HasPrefix(got, "tool ") {
		t.Errorf("got %q", got)
	}
}

func TestProgress(t *testing.T) {
	t.Parallel()
	for ran, want := range map[time.Duration]string{
		time.Second: "", 3 * time.Second: "tool box: running for 2s\n", 15 * time.Second: "tool box: running for 2s\ntool box: running for 12s\n",
	} {
		synctest.Test(t, func(t *testing.T) {
			var out strings.Builder
			stop := Progress(&out, "tool box")
			time.Sleep(ran) // on the bubble's clock
			stop()
			if out.String() != want {
				t.Errorf("after %s: %q, want %q", ran, out.String(), want)
			}
		})
	}
}
