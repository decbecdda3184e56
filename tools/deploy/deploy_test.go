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

// The image is compiled for its platform on that of the engine.
func TestImageIsCompiledForItsPlatform(t *testing.T) {
	all := stages(t)
	if all[0].Platform != "$BUILDPLATFORM" {
		t.Errorf("the stage that compiles runs on %q", all[0].Platform)
	}
	for _, s := range all {
		for _, run := range find[*instructions.RunCommand](s) {
			if script := strings.Join(run.CmdLine, " "); strings.Contains(script, "go build") && !strings.HasPrefix(script, "export CGO_ENABLED=0 GOARCH=$TARGETARCH ") {
				t.Errorf("%s is not compiled for the platform of the image", script)
			}
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

// load reads compose files as docker compose does.
func load(t *testing.T, env []string, files ...string) (*types.Project, error) {
	t.Helper()
	options, err := cli.NewProjectOptions(files, cli.WithEnv(env), cli.WithProfiles([]string{"*"}))
	if err != nil {
		t.Fatal(err)
	}
	return options.LoadProject(t.Context())
}

// projects returns the sample, and what production.yml makes of it with the variables of
// env.example.
func projects(t *testing.T) map[string]*types.Project {
	t.Helper()
	env := []string{"CRITICIZER_VERSION=1.0.0", "P4_DIRECTORY=/srv/p4"}
	var files []string
	for line := range strings.Lines(string(read(t, docs+"/env.example"))) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if name == "COMPOSE_FILE" {
			for file := range strings.SplitSeq(value, ":") {
				files = append(files, root+"/"+file)
			}
		}
		if ok && value != "" && !strings.HasPrefix(name, "#") {
			env = append(env, name+"="+value)
		}
	}
	sample, err := load(t, nil, root+"/docker-compose.yml")
	if err != nil {
		t.Fatal(err)
	}
	production, err := load(t, env, files...)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]*types.Project{"docker-compose.yml": sample, "production.yml": production}
}

func TestComposeFile(t *testing.T) {
	for file, p := range projects(t) {
		names := p.ServiceNames()
		for _, want := range append([]string{"postgres", "temporal", "ui"}, ours...) {
			if !slices.Contains(names, want) {
				t.Errorf("%s: there is no service %s in %v", file, want, names)
			}
		}
		for _, name := range []string{"standin", "mailpit", "allowlist"} {
			if slices.Contains(names, name) != (file == "docker-compose.yml") {
				t.Errorf("%s has the services %v", file, names)
			}
		}
		for name, s := range p.Services {
			if name != "postgres" && name != "temporal" && name != "ui" && name != "mailpit" && (!s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"})) {
				t.Errorf("%s: %s may do more than it needs: %+v", file, name, s)
			}
			if slices.Contains(ours, name) && (s.User != "" || !slices.Equal(s.SecurityOpt, []string{"no-new-privileges:true"})) {
				t.Errorf("%s: %s may do more than it needs: %+v", file, name, s)
			}
			for _, v := range s.Volumes {
				if _, err := os.Stat(v.Source); v.Type == types.VolumeTypeBind && err != nil {
					t.Errorf("%s: %s mounts a missing file: %v", file, name, err)
				}
			}
		}
	}
}

// Without .env the sample starts. For production, a missing setting is an error, and the
// volumes of the sample are not used.
func TestComposeFileNeedsItsSettings(t *testing.T) {
	env := []string{"CRITICIZER_VERSION=1.0.0", "P4_DIRECTORY=/srv/p4", "P4PORT=1", "P4USER=p", "CRITICIZER_LLM_MODEL=m"}
	for i := range env {
		missing := slices.Delete(slices.Clone(env), i, i+1)
		if _, err := load(t, missing, root+"/docker-compose.yml", root+"/production.yml"); err == nil || !strings.Contains(err.Error(), "set it in .env") {
			t.Errorf("without %s it is read with error %v", env[i], err)
		}
	}
	p := projects(t)
	if p["docker-compose.yml"].Name == p["production.yml"].Name {
		t.Errorf("both have the volumes of %s", p["production.yml"].Name)
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
	// The exposure that systemd computes is from 0 to 10.0, in tenths here.
	for _, service := range units[:2] {
		out, err := exec.CommandContext(t.Context(), analyze, "security", "--offline=yes", "--no-pager", "--threshold=20", service).CombinedOutput()
		if err != nil {
			t.Errorf("the exposure of %s is above 2: %v\n%s", filepath.Base(service), err, out)
		}
	}
}

// TestConfigurationIsAccepted checks the configuration files of the containers with
// criticizer itself.
func TestConfigurationIsAccepted(t *testing.T) {
	for file, path := range map[string]string{"criticizer.yaml": "//depot/main/x.c", "sample.yaml": "//depot/harbor/server/x.c"} {
		cmd := exec.CommandContext(t.Context(), "go", "run", "./operator", "--config", "docs/deploy/"+file, "allowlist", "check", "--", path)
		cmd.Dir, cmd.Stderr = root, io.Discard
		if out, err := cmd.Output(); err != nil {
			t.Errorf("%s: criticizer printed %q, %v", file, out, err)
		}
	}
}
