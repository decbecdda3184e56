// Package deploy checks the files for deployments without a container registry: the
// commands of the image run without any other file, and each file is parsed with the
// library of the program that reads it.
package deploy

import (
	"bytes"
	"debug/elf"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

const (
	root = "../.."
	docs = root + "/docs/deploy"
	// nobody is the user of the image.
	nobody = 65532
)

func read(t *testing.T, name string) []byte {
	t.Helper()
	body, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// stages reads the Dockerfile as docker build does.
func stages(t *testing.T) []instructions.Stage {
	t.Helper()
	file, err := parser.Parse(bytes.NewReader(read(t, root+"/Dockerfile")))
	if err != nil {
		t.Fatal(err)
	}
	stages, _, err := instructions.Parse(file.AST, nil)
	if err != nil {
		t.Fatal(err)
	}
	return stages
}

// find returns the commands of one kind in a stage.
func find[T instructions.Command](s instructions.Stage) (found []T) {
	for _, c := range s.Commands {
		if c, ok := c.(T); ok {
			found = append(found, c)
		}
	}
	return found
}

func TestImageHasNoBaseAndRunsAsNobody(t *testing.T) {
	all := stages(t)
	image := all[len(all)-1]
	if image.BaseName != "scratch" {
		t.Errorf("the base of the image is %s, want scratch", image.BaseName)
	}
	if users := find[*instructions.UserCommand](image); len(users) != 1 || users[0].User != "65532:65532" {
		t.Errorf("the image runs as %v", users)
	}
	if checks := find[*instructions.HealthCheckCommand](image); len(checks) != 1 {
		t.Errorf("the image has %d health checks", len(checks))
	}
	var names []string
	for _, s := range all {
		names = append(names, s.Name)
	}
	for _, c := range find[*instructions.CopyCommand](image) {
		if !slices.Contains(names, c.From) {
			t.Errorf("%s copies from %q, which is no stage", c, c.From)
		}
	}
}

// imageRoot builds the files of the image with the commands of the Dockerfile's build
// stage, without a container.
func imageRoot(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, run := range find[*instructions.RunCommand](stages(t)[0]) {
		script := strings.Join(run.CmdLine, " ")
		if !strings.Contains(script, "go build") {
			continue
		}
		script = strings.NewReplacer("/out/", dir+"/", "/root-of-image", dir).Replace(script)
		cmd := exec.CommandContext(t.Context(), "sh", "-ec", script)
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", script, err, out)
		}
	}
	return dir
}

// TestImageRuns runs each command in a root directory without other files, as the
// image's user.
func TestImageRuns(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: only root can run a command in a root directory of its own")
	}
	dir := imageRoot(t)
	for _, args := range [][]string{{"/worker", "-h"}, {"/criticizer", "keyset", "evidence"}, {"/criticizer-starter", "--trigger", "change-commit", "1"}} {
		t.Run(args[0], func(t *testing.T) {
			binary, err := elf.Open(filepath.Join(dir, args[0]))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = binary.Close() }()
			if libraries, err := binary.ImportedLibraries(); err != nil || len(libraries) > 0 {
				t.Errorf("it is not static: it needs %v, %v", libraries, err)
			}
			cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
			cmd.Dir, cmd.Env = "/", []string{"PATH=/"}
			cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: dir, Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
			if out, err := cmd.CombinedOutput(); err != nil || len(out) == 0 {
				t.Errorf("it printed %q and returned %v", out, err)
			}
		})
	}
}

// project reads docker-compose.yml as docker compose does, with the variables of
// env.example.
func project(t *testing.T) *types.Project {
	t.Helper()
	env := []string{"CRITICIZER_VERSION=1.0.0", "P4_DIRECTORY=/srv/p4"}
	for line := range strings.Lines(string(read(t, docs+"/env.example"))) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if strings.HasSuffix(name, "_PASSWORD") {
			value = "x"
		}
		if ok && value != "" && !strings.HasPrefix(name, "#") {
			env = append(env, name+"="+value)
		}
	}
	options, err := cli.NewProjectOptions([]string{root + "/docker-compose.yml"}, cli.WithEnv(env), cli.WithProfiles([]string{"*"}))
	if err != nil {
		t.Fatal(err)
	}
	p, err := options.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestComposeFile(t *testing.T) {
	p := project(t)
	names := p.ServiceNames()
	for _, want := range append([]string{"postgres", "temporal", "ui", "mailpit"}, ours...) {
		if !slices.Contains(names, want) {
			t.Errorf("there is no service %s in %v", want, names)
		}
	}
	for _, name := range ours {
		s := p.Services[name]
		if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) {
			t.Errorf("%s may do more than it needs: %+v", name, s)
		}
		for _, v := range s.Volumes {
			if _, err := os.Stat(v.Source); v.Type == types.VolumeTypeBind && err != nil {
				t.Errorf("%s mounts a missing file: %v", name, err)
			}
		}
	}
}

// A missing password is an error, not an empty password.
func TestComposeFileNeedsItsSettings(t *testing.T) {
	options, err := cli.NewProjectOptions([]string{root + "/docker-compose.yml"}, cli.WithEnv([]string{"P4_DIRECTORY=/srv/p4"}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := options.LoadProject(t.Context()); err == nil || !strings.Contains(err.Error(), "set it in .env") {
		t.Errorf("without settings it is read with error %v", err)
	}
}

func TestKubernetesManifest(t *testing.T) {
	seen := map[string]bool{}
	for document := range bytes.SplitSeq(read(t, docs+"/kubernetes.yaml"), []byte("\n---\n")) {
		var kind struct {
			Kind string `json:"kind"`
		}
		if err := yaml.Unmarshal(document, &kind); err != nil {
			t.Fatal(err)
		}
		into := map[string]any{"ConfigMap": &corev1.ConfigMap{}, "Secret": &corev1.Secret{}, "Deployment": &appsv1.Deployment{}}[kind.Kind]
		if into == nil {
			t.Fatalf("unknown kind %q", kind.Kind)
		}
		if err := yaml.UnmarshalStrict(document, into); err != nil {
			t.Errorf("%s: %v", kind.Kind, err)
		}
		seen[kind.Kind] = true
	}
	if len(seen) != 3 {
		t.Errorf("the manifest has %v", seen)
	}
}

func TestSystemdUnits(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("SKIPPED: systemd-analyze is not installed (Debian package systemd)")
	}
	dir := t.TempDir()
	var units []string
	for _, unit := range []string{"criticizer-worker@.service", "criticizer-drain.service", "criticizer-drain.timer"} {
		// systemd-analyze checks that the command exists.
		body := strings.NewReplacer("/opt/criticizer/worker", "/bin/true", "/opt/criticizer/criticizer-starter", "/bin/true").
			Replace(string(read(t, filepath.Join(docs, unit))))
		// The comma between stages is escaped in %i, and not in %I.
		if strings.Contains(body, "%i") {
			t.Errorf("%s has %%i", unit)
		}
		name := filepath.Join(dir, strings.Replace(unit, "@", `@redact\x2cnotify`, 1))
		if err := os.WriteFile(name, []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
		units = append(units, name)
	}
	out, err := exec.CommandContext(t.Context(), analyze, append([]string{"verify", "--man=no"}, units...)...).CombinedOutput()
	lines := slices.DeleteFunc(strings.Split(string(out), "\n"), func(line string) bool { return !strings.Contains(line, "criticizer-") })
	if err != nil || len(lines) > 0 {
		t.Errorf("systemd-analyze ended with %v:\n%s", err, out)
	}
}

// TestConfigurationIsAccepted checks the configuration file of the containers with
// criticizer itself.
func TestConfigurationIsAccepted(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "go", "run", "./operator", "--config", "docs/deploy/criticizer.yaml", "allowlist", "check", "--", "//depot/main/x.c")
	cmd.Dir, cmd.Stderr = root, io.Discard
	if out, err := cmd.Output(); err != nil {
		t.Errorf("criticizer printed %q, %v", out, err)
	}
}
