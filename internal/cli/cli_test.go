package cli

import (
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

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
