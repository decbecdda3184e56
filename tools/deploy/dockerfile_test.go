package deploy

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// A builder builds the Dockerfile with buildah, which needs no daemon, as root in its
// own directory.
type builder struct {
	t    *testing.T
	args []string
}

func newBuilder(t *testing.T) builder {
	t.Helper()
	for _, name := range []string{"buildah", "busybox"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("SKIPPED: %s is not installed (Debian packages buildah, runc and busybox-static)", name)
		}
	}
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: only root can build an image here")
	}
	dir := t.TempDir()
	b := builder{t, []string{"--root", dir + "/root", "--runroot", dir + "/run", "--storage-driver", "vfs"}}
	t.Cleanup(func() { _ = exec.Command("buildah", append(b.args, "rm", "--all")...).Run() })
	return b
}

// do runs buildah and returns the last line of its output.
func (b builder) do(args ...string) string {
	b.t.Helper()
	cmd := exec.CommandContext(b.t.Context(), "buildah", append(slices.Clone(b.args), args...)...)
	cmd.Dir, cmd.Env = root, append(os.Environ(), "BUILDAH_ISOLATION=chroot")
	out, err := cmd.CombinedOutput()
	if err != nil {
		b.t.Fatalf("buildah %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1]
}

// base makes the base image of the first stage, because there is no registry: it has
// this machine's Go and a shell.
func (b builder) base(name string) {
	b.t.Helper()
	c := b.do("from", "scratch")
	at := b.do("mount", c)
	b.do("add", "-q", c, goEnv(b.t, "GOROOT"), "/usr/local/go")
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		b.t.Fatal(err)
	}
	script := `mkdir -p bin etc/ssl/certs tmp root && chmod 1777 tmp && cp "$0" bin/busybox && cp /etc/ssl/certs/ca-certificates.crt etc/ssl/certs/
for tool in sh mkdir chmod chown; do ln -s busybox bin/$tool; done
echo root:x:0:0:root:/root:/bin/sh > etc/passwd`
	cmd := exec.CommandContext(b.t.Context(), "sh", "-ec", script, busybox)
	cmd.Dir = at
	if out, err := cmd.CombinedOutput(); err != nil {
		b.t.Fatalf("make the base: %v\n%s", err, out)
	}
	b.do("umount", c)
	b.do("config", "--env", "PATH=/usr/local/go/bin:/bin", c)
	b.do("commit", "-q", c, "docker.io/library/"+name)
}

// TestDockerfileBuilds runs every step of the Dockerfile, with a p4 from a directory
// as its first comment describes, and checks the image.
func TestDockerfileBuilds(t *testing.T) {
	b := newBuilder(t)
	base := regexp.MustCompile(`golang:[0-9.]+`).FindString(string(read(t, root+"/Dockerfile")))
	b.base(base)
	p4 := t.TempDir()
	if err := os.MkdirAll(p4+"/usr/local/bin", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p4+"/usr/local/bin/p4", []byte("of Perforce"), 0o755); err != nil {
		t.Fatal(err)
	}
	// The modules of the program that writes /sbom, into the cache that the build uses.
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-C", root+"/tools/lint", "-o", os.DevNull, "github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	args := []string{"build", "--pull-never", "--format", "docker", "--network", "host", "--build-context", "p4=" + p4, "-t", "criticizer"}
	for _, name := range []string{"GOPROXY", "GOMODCACHE", "GOCACHE"} { // so that nothing is downloaded or built twice
		value := goEnv(t, name)
		args = append(args, "--env", name+"="+value)
		if filepath.IsAbs(value) {
			args = append(args, "-v", value+":"+value+":O")
		}
	}
	b.do(append(args, ".")...)
	c := b.do("from", "--pull-never", "localhost/criticizer")
	b.wantSettings(c)
	at := b.do("mount", c)
	b.wantFiles(at)
	b.wantCommands(at)
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

func (b builder) wantSettings(c string) {
	b.t.Helper()
	cmd := exec.CommandContext(b.t.Context(), "buildah", append(slices.Clone(b.args), "inspect", c)...)
	out, err := cmd.Output()
	if err != nil {
		b.t.Fatal(err)
	}
	var image struct {
		Docker struct {
			Config struct {
				User        string              `json:"User"`
				Entrypoint  []string            `json:"Entrypoint"`
				Volumes     map[string]struct{} `json:"Volumes"`
				Healthcheck struct{ Test []string }
				Labels      map[string]string `json:"Labels"`
			} `json:"config"`
		}
	}
	if err := json.Unmarshal(out, &image); err != nil {
		b.t.Fatal(err)
	}
	got := image.Docker.Config
	if _, kept := got.Volumes["/var/lib/criticizer"]; got.Labels["com.criticizer.sbom"] != "/sbom" || got.User != "65532:65532" || !slices.Equal(got.Entrypoint, []string{"/criticizer-worker"}) || !kept ||
		!slices.Equal(got.Healthcheck.Test, []string{"CMD", "/criticizer-worker", "--healthy"}) {
		b.t.Errorf("the configuration of the image is %+v", got)
	}
}

// wantFiles checks the files of the image: the commands, the directories that they
// write, and no other executable.
func (b builder) wantFiles(at string) {
	b.t.Helper()
	for name, want := range map[string]struct {
		owner uint32
		mode  os.FileMode
	}{
		"var/lib/criticizer": {nobody, 0o700}, "var/lib/criticizer/p4": {nobody, 0o700}, "var/lib/criticizer/spool": {nobody, 0o700},
		"criticizer-worker": {0, 0o755}, "criticizer": {0, 0o755}, "criticizer-starter": {0, 0o755}, "complaint-rewrite": {0, 0o755}, "usr/local/bin/p4": {0, 0o755},
		"etc/ssl/certs/ca-certificates.crt": {0, 0o644}, "tmp": {0, 0o777},
		"sbom/criticizer-worker.cdx.json": {0, 0o644}, "sbom/criticizer.cdx.json": {0, 0o644}, "sbom/criticizer-starter.cdx.json": {0, 0o644}, "sbom/complaint-rewrite.cdx.json": {0, 0o644},
	} {
		info, err := os.Stat(filepath.Join(at, name))
		if err != nil {
			b.t.Error(err)
			continue
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); !ok || stat.Uid != want.owner || info.Mode().Perm() != want.mode {
			b.t.Errorf("%s is %s of %d, want %s of %d", name, info.Mode(), stat.Uid, want.mode, want.owner)
		}
	}
	scripts, err := filepath.Glob(root + "/tools/triage/*")
	if err != nil {
		b.t.Fatal(err)
	}
	for _, script := range scripts {
		name := filepath.Base(script)
		if got, err := os.ReadFile(filepath.Join(at, "triage", name)); err != nil || string(got) != string(read(b.t, script)) {
			b.t.Errorf("/triage/%s is not the script of the tree: %v", name, err)
		}
	}
	out, err := exec.CommandContext(b.t.Context(), "find", at, "-type", "f").Output()
	if n, want := strings.Count(string(out), "\n"), 10+len(scripts); err != nil || n != want {
		b.t.Errorf("the image has %d files, want %d:\n%s", n, want, strings.ReplaceAll(string(out), at, ""))
	}
}

// wantCommands runs each command as the image's user, with no other files than the image's.
func (b builder) wantCommands(at string) {
	b.t.Helper()
	for _, args := range [][]string{{"/criticizer-worker", "-h"}, {"/criticizer", "keyset", "evidence"}, {"/complaint-rewrite", "keyset"}, {"/criticizer-starter", "--trigger", "change-commit", "1"}} {
		cmd := exec.CommandContext(b.t.Context(), args[0], args[1:]...)
		cmd.Dir, cmd.Env = "/", []string{"PATH=/"}
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: at, Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		if out, err := cmd.CombinedOutput(); err != nil || len(out) == 0 {
			b.t.Errorf("%v printed %q and returned %v", args, out, err)
		}
	}
}
