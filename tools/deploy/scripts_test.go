package deploy

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// check.sh names what is too old for the compose files, and the version that is needed.
func TestVersionsOfDockerAreChecked(t *testing.T) {
	for name, tt := range map[string]struct{ engine, compose, want string }{
		"minimum":     {"23.0.0", "2.24.4", ""},
		"newer":       {"28.2.2", "v2.40.3", ""},
		"old engine":  {"20.10.24+dfsg1", "2.40.3", "Docker Engine 20.10.24+dfsg1: version 23.0.0 or later is needed"},
		"old compose": {"28.2.2", "2.20.2", "Docker Compose 2.20.2: version 2.24.4 or later is needed"},
		"no engine":   {"", "2.40.3", "Docker Engine is missing or cannot be reached: version 23.0.0 or later is needed"},
		"no compose":  {"28.2.2", "", "Docker Compose is missing or cannot be reached: version 2.24.4 or later is needed"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			docker := "#!/bin/sh\nif [ \"$1\" = version ]; then echo '" + tt.engine + "'; else echo '" + tt.compose + "'; fi\n"
			if err := os.WriteFile(dir+"/docker", []byte(docker), 0o700); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), "sh", docs+"/check.sh")
			cmd.Env = []string{"PATH=" + dir + ":" + os.Getenv("PATH")}
			out, err := cmd.CombinedOutput()
			if (err == nil) != (tt.want == "") || !strings.Contains(string(out), tt.want) {
				t.Errorf("it printed %q and ended with %v, want %q", out, err, tt.want)
			}
		})
	}
}

// fuzz.sh runs a target again only if its time ended at a bad moment, and then once.
func TestFuzzTargetIsRunAgainForItsTime(t *testing.T) {
	const deadline = "--- FAIL: FuzzA (20.10s)\\n    context deadline exceeded\\nFAIL"
	const input = "--- FAIL: FuzzA (3.10s)\\n    context deadline exceeded\\n    Failing input written to testdata/fuzz/FuzzA/1"
	for name, tt := range map[string]struct {
		first, second string
		runs, status  int
	}{
		"passes":           {"", "", 1, 0},
		"bad moment":       {deadline, "", 2, 0},
		"twice":            {deadline, deadline, 2, 1},
		"failing input":    {input, "", 1, 3},
		"failing seed":     {"failure while testing seed corpus entry: FuzzA/seed#0", "", 1, 1},
		"error of its own": {"--- FAIL: FuzzA (0.10s)\\n    a_test.go:1: load: context deadline exceeded", "", 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for path, text := range map[string]string{
				"tools/fuzz.sh": string(read(t, "../fuzz.sh")),
				"a_test.go":     "func FuzzA(f *testing.F) {}\n",
				// It writes a line per run, and fails if the text for the run is not empty.
				"bin/go": "#!/bin/sh\necho >>" + dir + "/runs\ncase $(wc -l <" + dir + "/runs) in 1) text='" + tt.first + "' ;; *) text='" + tt.second +
					"' ;; esac\nprintf '%b\\n' \"$text\"\n[ -z \"$text\" ]\n",
			} {
				if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, path)), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, path), []byte(text), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.CommandContext(t.Context(), "sh", dir+"/tools/fuzz.sh", "20s")
			cmd.Env = []string{"PATH=" + dir + "/bin:" + os.Getenv("PATH")}
			out, err := cmd.CombinedOutput()
			if runs := strings.Count(string(read(t, dir+"/runs")), "\n"); cmd.ProcessState.ExitCode() != tt.status || runs != tt.runs {
				t.Errorf("%d runs, %v, want %d runs, status %d\n%s", runs, err, tt.runs, tt.status, out)
			}
		})
	}
}

// secrets.sh makes each password once, gives each service a copy that only its user can
// read, repairs what an interrupted run has left, and passes on a rotated key.
func TestSecretsAreMadeOnce(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: only root can give a file to another user")
	}
	dir := t.TempDir()
	script := strings.NewReplacer("/keys", dir+"/keys", "/secrets", dir+"/secrets").Replace(string(read(t, docs+"/secrets.sh")))
	for _, sub := range []string{"keys", "secrets/postgres", "secrets/temporal", "secrets/mailpit", "secrets/migrate", "secrets/workflows", "secrets/fetch",
		"secrets/redact", "secrets/llm", "secrets/notify", "secrets/retention", "secrets/criticizer"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	run := func() map[string]string {
		t.Helper()
		// With the capabilities of the service.
		if out, err := exec.CommandContext(t.Context(), "setpriv", "--bounding-set", "-all,+chown", "sh", "-c", script).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		all := map[string]string{}
		for _, name := range []string{"postgres/worker_llm", "llm/database-url", "llm/redacted-keyset", "temporal/password", "postgres/postgres", "mailpit/mailpit.key", "notify/mailpit.pem"} {
			path := filepath.Join(dir, "secrets", name)
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			owner := map[string]uint32{"llm": nobody, "notify": nobody, "temporal": 1000}[filepath.Base(filepath.Dir(path))]
			if stat, ok := info.Sys().(*syscall.Stat_t); !ok || stat.Uid != owner || info.Mode().Perm() != 0o400 {
				t.Errorf("%s is %s of %d, want it to be readable by %d", name, info.Mode(), stat.Uid, owner)
			}
			all[name] = string(read(t, path))
		}
		return all
	}
	for _, key := range []string{"raw-keyset", "redacted-keyset", "report-keyset", "answers-keyset", "redaction-key", "evidence-key"} {
		if err := os.WriteFile(filepath.Join(dir, "keys", key), []byte("old "+key), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	first := run()
	password := strings.TrimSpace(first["postgres/worker_llm"])
	if len(password) != 48 || first["llm/database-url"] != "postgres://worker_llm:"+password+"@postgres:5432/criticizer?sslmode=disable\n" {
		t.Errorf("the secrets are %q", first)
	}
	for path, text := range map[string]string{"keys/redacted-keyset": "new", "secrets/llm/redaction-key.new": "half"} {
		if err := os.WriteFile(filepath.Join(dir, path), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chown(filepath.Join(dir, "secrets/llm/redaction-key.new"), nobody, nobody); err != nil {
		t.Fatal(err)
	}
	second := run()
	first["llm/redacted-keyset"] = "new"
	if !maps.Equal(first, second) {
		t.Errorf("the second run changed %q to %q", first, second)
	}
	if left, err := filepath.Glob(dir + "/*/*/*.new"); err != nil || len(left) > 0 {
		t.Errorf("it left %v, %v", left, err)
	}
}
