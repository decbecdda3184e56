package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	installed "github.com/criticizer/criticizer/internal/settings"
	"github.com/criticizer/criticizer/internal/testkit"
)

func TestTheConfigurationIsComplete(t *testing.T) {
	t.Parallel()
	ctx, s := testStack(t)
	in, err := newInstallation(filepath.Join(t.TempDir(), `odd "name": #1`), "depot-1")
	testkit.NoError(t, err)
	e := &environment{
		installation: in, opts: options{root: t.TempDir(), forTests: true, model: "llmsim-1"},
		depot: depot{path: "depot.txtar", sample: true}, stack: s, out: s.out,
	}
	mustWrite(t, e.command("p4sim"), "#!/bin/sh\ncat <<'END'\n"+someChanges+"END\n", 0o755)
	in.settings["temporal"] = map[string]any{"address": "127.0.0.1:7233"}
	for _, start := range []func(context.Context) error{e.checkModel, e.startSimulatedModel, e.startInbox, e.openPerforce} {
		testkit.NoError(t, start(ctx))
	}
	testkit.NoError(t, e.writeConfig())
	env := map[string]string{}
	for _, assignment := range in.secretFiles() {
		name, path, _ := strings.Cut(assignment, "=")
		mustWrite(t, path, "a secret", 0o600)
		env[name] = path
	}
	c, err := installed.Load(in.config, func(name string) string { return env[name] })
	testkit.NoError(t, err)
	err = c.Check(installed.RoleStarter, installed.RoleWorkflows, installed.RoleFetch, installed.RoleRedact, installed.RoleLLM, installed.RoleNotify)
	if err != nil {
		t.Error(err)
	}
	if c.ServerID != "depot-1" || c.P4.Command != in.p4 || !slices.Equal(c.P4.Allowed, []string{"//other/...", "//depot/..."}) || c.P4.MixedChanges != "review_allowed_only" {
		t.Errorf("the configuration is %+v", c)
	}
}

func TestTheP4CommandPassesArgumentsAndSettings(t *testing.T) {
	t.Parallel()
	in, err := newInstallation(filepath.Join(t.TempDir(), "it's here"), "depot-1")
	testkit.NoError(t, err)
	p4sim := filepath.Join(in.dir, "p4sim.sh")
	mustWrite(t, p4sim, "#!/bin/sh\n"+`printf '%s|' "$P4SIM_DEPOT" "$P4SIM_STATE" "$P4PORT" "$@"`+"\n", 0o755)
	testkit.NoError(t, in.writeP4(p4sim, "/a 'quoted' depot/$x"))
	cmd := exec.CommandContext(t.Context(), in.p4, "describe", "-s", "a b", "")
	cmd.Env = []string{"P4PORT=ssl:p4sim:1666"} // a minimal environment, as in package p4
	out, err := cmd.Output()
	testkit.NoError(t, err)
	want := "/a 'quoted' depot/$x|" + filepath.Join(in.dir, "p4sim") + "|ssl:p4sim:1666|describe|-s|a b||"
	if string(out) != want {
		t.Errorf("p4sim got %q, want %q", out, want)
	}
}

// The user of the stack can run the operator commands without further settings.
func TestTheToolIsSetUp(t *testing.T) {
	t.Parallel()
	in, err := newInstallation(filepath.Join(t.TempDir(), "it's here"), "depot-1")
	testkit.NoError(t, err)
	criticizer := filepath.Join(in.dir, "criticizer.sh")
	mustWrite(t, criticizer, "#!/bin/sh\n"+`printf '%s|' "$CRITICIZER_CONFIG" "$CRITICIZER_DATABASE_URL_FILE" "$@"`+"\n", 0o755)
	testkit.NoError(t, in.writeTool(criticizer, []string{"CRITICIZER_DATABASE_URL_FILE=/a=b"}))
	out, err := exec.CommandContext(t.Context(), in.tool, "status", "1").Output()
	if want := in.config + "|/a=b|status|1|"; err != nil || string(out) != want {
		t.Errorf("criticizer got %q, %v, want %q", out, err, want)
	}
}

func TestWithoutOurs(t *testing.T) {
	t.Parallel()
	got := withoutOurs([]string{"PATH=/bin", "CRITICIZER_DATABASE_URL=x", "CRITICIZER_REDACTION_KEY_FILE=y", "CRITICIZER_LLM_MODEL=m"})
	if !slices.Equal(got, []string{"PATH=/bin", "CRITICIZER_LLM_MODEL=m"}) {
		t.Errorf("left: %v", got)
	}
}

// A demo that was killed while Perforce rejected its ticket leaves no fault to the next.
func TestFaultsOfAnEarlierRunAreRemoved(t *testing.T) {
	t.Parallel()
	in, err := newInstallation(t.TempDir(), "depot")
	testkit.NoError(t, err)
	mustWrite(t, in.faults, "{}", 0o600)
	for range 2 {
		testkit.NoError(t, in.writeP4("p4sim", "depot.txtar"))
		if _, err := os.Stat(in.faults); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the faults are still there: %v", err)
		}
	}
}
