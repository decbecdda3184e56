// Package deploy checks of the files for deployments what no program that reads them
// checks: that each stage has its own secrets only, that variables exist, that the image
// builds and runs without a registry. make composetest, kubernetestest and systemdtest run
// the rest.
package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
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

var (
	loadedCredential = regexp.MustCompile(`(?m)^#?LoadCredential=([a-z0-9.-]+):/etc/criticizer/secrets/`)
	credentialOf     = regexp.MustCompile(`(?m)^#?Environment=([A-Z0-9_]+)_FILE=%d/([a-z0-9.-]+)$`)
)

// The drop-in replaces the environment file: a secret that is not in it is lost.
func TestCredentialsHaveEverySecret(t *testing.T) {
	dropIn := string(read(t, docs+"/credentials.conf"))
	var loaded []string
	for _, found := range loadedCredential.FindAllStringSubmatch(dropIn, -1) {
		loaded = append(loaded, found[1])
	}
	given := map[string]bool{}
	for _, found := range credentialOf.FindAllStringSubmatch(dropIn, -1) {
		if given[found[1]] = true; !slices.Contains(loaded, found[2]) {
			t.Errorf("%s is a credential that is not loaded", found[1])
		}
	}
	secrets := 0
	for _, field := range listedSetting.FindAllStringSubmatch(string(read(t, reviewSettings)), -1) {
		if field[2] != "secret" {
			continue
		}
		if secrets++; !given[field[3]] {
			t.Errorf("credentials.conf has no lines for %s", field[3])
		}
	}
	if secrets < 15 {
		t.Errorf("%s lists only %d secrets", reviewSettings, secrets)
	}
}

func TestSystemdUnits(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("SKIPPED: systemd-analyze is not installed (Debian package systemd)")
	}
	dir := t.TempDir()
	var units []string
	for _, unit := range []string{"criticizer-worker@.service", "criticizer-drain.service", "temporal-server.service", "criticizer-drain.timer"} {
		// systemd-analyze checks that the command exists.
		body := strings.NewReplacer("/opt/criticizer/criticizer-worker", "/bin/true", "/opt/criticizer/criticizer-starter", "/bin/true", "/opt/temporal/temporal-server", "/bin/true").
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
	lines := slices.DeleteFunc(strings.Split(string(out), "\n"), func(line string) bool {
		return !strings.Contains(line, "criticizer-") && !strings.Contains(line, "temporal-")
	})
	if err != nil || len(lines) > 0 {
		t.Errorf("systemd-analyze ended with %v:\n%s", err, out)
	}
	// The exposure that systemd computes is from 0 to 10.0, in tenths here.
	for _, service := range units[:3] {
		out, err := exec.CommandContext(t.Context(), analyze, "security", "--offline=yes", "--no-pager", "--threshold=20", service).CombinedOutput()
		if err != nil {
			t.Errorf("the exposure of %s is above 2: %v\n%s", filepath.Base(service), err, out)
		}
	}
}
