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
