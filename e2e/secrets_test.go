package e2e

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/criticizer/criticizer/llm/llmsim"
)

// A gate lets requests through to the model that show the key of now.
type keyGate struct {
	mu  sync.Mutex
	key string
}

func (g *keyGate) setKey(key string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.key = key
}

func (g *keyGate) handler(model http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		admitted := r.Header.Get("Authorization") == "Bearer "+g.key
		g.mu.Unlock()
		if !admitted {
			http.Error(w, `{"error":{"message":"no"}}`, http.StatusUnauthorized)
			return
		}
		model.ServeHTTP(w, r)
	})
}

// Security 9.3.5: a key is rotated while the worker runs; a bad file leaves the
// key in use; the log has the name of the secret only (9.3.3).
func TestKeyIsRotatedWithoutARestart(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, map[string]string{"a.go": clean}))
	g := &keyGate{key: "first-key"}
	endpoint := httptest.NewServer(g.handler(llmsim.New(llmsim.Config{})))
	t.Cleanup(endpoint.Close)
	in.write("key", 0o600, "first-key\n")
	env := append(slices.Clone(in.env), "CRITICIZER_LLM_BASE_URL="+endpoint.URL+"/v1", "OPENAI_API_KEY=", "OPENAI_API_KEY_FILE="+in.path("key"))

	log, err := os.Create(in.path("log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	worker := exec.Command(filepath.Join(binDir, "worker"))
	worker.Env, worker.Stdout, worker.Stderr = env, log, log
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = worker.Process.Signal(os.Interrupt)
		_ = worker.Wait()
	})
	logs := func(what string) {
		t.Helper()
		waitFor(t, what+" in the log", func() bool {
			text, err := os.ReadFile(log.Name())
			return err == nil && strings.Contains(string(text), what)
		})
	}
	logs("worker ready")
	reviewed := func(version string) {
		t.Helper()
		if a := in.mustStart("--review-version", version, "--wait", "1"); a.State != "succeeded" {
			t.Errorf("version %s: %+v", version, a)
		}
	}
	reviewed("1")

	in.write("key", 0o600, "")
	logs(`"secret not reloaded: the old one stays in use"`) // by a look at the file
	logs("which is empty")
	reviewed("2")

	g.setKey("second-key")
	in.write("key", 0o600, "second-key\n")
	if err := worker.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	logs(`"secret reloaded","secret":"OPENAI_API_KEY"`)
	reviewed("3")
	text, err := os.ReadFile(log.Name())
	if err != nil || strings.Contains(string(text), "second-key") || in.countRows("dead_letters", "true") != 0 {
		t.Errorf("the log shows the key, or something was dead-lettered: %v\n%s", err, text)
	}
}
