package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The step before stage fetch puts the fingerprint where p4 reads it, in a directory that the
// product accepts: no other user can enter it.
func TestKnownHostIsPlaced(t *testing.T) {
	t.Parallel()
	n := 0
	for _, overlay := range overlays {
		for _, w := range build(t, overlay).workloads() {
			for _, c := range w.template.Spec.InitContainers {
				if c.Name != "known-host" {
					continue
				}
				n++
				dir := t.TempDir()
				if err := os.WriteFile(filepath.Join(dir, "p4trust"), []byte("10.0.0.1:1666=**++**:AA"), 0o440); err != nil {
					t.Fatal(err)
				}
				script := strings.NewReplacer(mounted, dir, "/var/lib/criticizer", dir+"/state").Replace(c.Args[0])
				if !slices.Equal(c.Command, []string{"/bin/sh", "-euc"}) {
					t.Errorf("%s: it runs %v", overlay, c.Command)
				}
				if out, err := exec.CommandContext(t.Context(), "/bin/sh", "-euc", script).CombinedOutput(); err != nil {
					t.Fatalf("%s: %v\n%s", script, err, out)
				}
				state := filepath.Join(dir, "state/p4")
				if info, err := os.Stat(state); err != nil || info.Mode().Perm() != 0o700 {
					t.Errorf("%s: the directory is %v, %v", overlay, info, err)
				}
				if got := string(read(t, filepath.Join(state, "p4trust"))); got != "10.0.0.1:1666=**++**:AA" {
					t.Errorf("%s: the fingerprint is %q", overlay, got)
				}
			}
		}
	}
	if n != 2 {
		t.Errorf("%d overlays have the step, want production and trial", n)
	}
}
