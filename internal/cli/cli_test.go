package cli

import (
	"runtime/debug"
	"strings"
	"testing"
	"time"
)

func TestVersionNamesTheCommit(t *testing.T) {
	t.Parallel()
	info := &debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}, Settings: []debug.BuildSetting{
		{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.time", Value: "2026-01-02T03:04:05Z"}, {Key: "vcs.modified", Value: "true"},
	}}
	if got := versionOf("tool", info); !strings.HasPrefix(got, "tool v1.2.3, commit 0123456789ab of 2026-01-02T03:04:05Z, with changes, go1.") {
		t.Errorf("it says %q", got)
	}
	if got := Version("tool"); !strings.HasPrefix(got, "tool ") {
		t.Errorf("this build says %q", got)
	}
}

func TestProgressIsToldOnlyOfWhatTakesLong(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	Progress(&out, "tool box")()
	if out.Len() > 0 {
		t.Errorf("of what is done at once it said %q", out.String())
	}
	stop := progress(&out, "tool box", time.Millisecond, time.Millisecond)
	time.Sleep(100 * time.Millisecond)
	stop()
	if said := out.String(); strings.Count(said, "tool box: at work for 0s\n") < 2 {
		t.Errorf("of what takes long it said %q", said)
	}
}
