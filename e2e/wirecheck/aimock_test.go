package wirecheck

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// tool is where package.json and the lock file name the version that is checked
// against.
const tool = "../../tools/aimock"

// A fixture is what aimock answers to a user message that contains a text.
type fixture struct {
	Match    map[string]string `json:"match"`
	Response map[string]string `json:"response"`
}

// startMock runs aimock on loopback until the test ends and returns its URL. It
// skips where there is no node, or no registry to install aimock from.
func startMock(t *testing.T, key string, fixtures ...fixture) string {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("WIRE CHECK SKIPPED: there is no node on this machine; install node 20 or newer to check against @copilotkit/aimock")
	}
	if err := installed(); err != nil {
		t.Skipf("WIRE CHECK SKIPPED: aimock is not there and cannot be installed; run npm ci in tools/aimock: %v", err)
	}
	encoded, err := json.Marshal(map[string]any{"fixtures": fixtures})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "fixtures.json")
	if err := os.WriteFile(file, encoded, 0o600); err != nil {
		t.Fatal(err)
	}
	port := freePort(t)
	var out bytes.Buffer
	cmd := exec.CommandContext(t.Context(), node, script(), "-p", port, "-f", file, "--strict")
	cmd.Env = append(os.Environ(), "AIMOCK_API_KEYS="+key)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("aimock said:\n%s", &out)
		}
	})
	url := "http://127.0.0.1:" + port
	awaitMock(t, url)
	return url
}

func script() string {
	return filepath.Join(tool, "node_modules", "@copilotkit", "aimock", "dist", "cli.js")
}

// installed installs what the lock file names, unless it is there.
var installed = sync.OnceValue(func() error {
	if _, err := os.Stat(script()); err == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts")
	cmd.Dir = tool
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("npm ci: %w\n%s", err, out)
	}
	return nil
})

func freePort(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

func awaitMock(t *testing.T, url string) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/health", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if resp, err := http.DefaultClient.Do(req); err == nil {
			_ = resp.Body.Close()
			return
		}
	}
	t.Fatal("aimock does not answer")
}

// The lock file pins one version, so that a check means the same everywhere.
func TestVersionIsPinned(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"package.json", "package-lock.json"} {
		data, err := os.Open(filepath.Join(tool, name))
		if err != nil {
			t.Fatal(err)
		}
		pinned := false
		for lines := bufio.NewScanner(data); lines.Scan(); {
			pinned = pinned || strings.Contains(lines.Text(), fmt.Sprintf("%q: %q", "@copilotkit/aimock", "1.43.0"))
		}
		_ = data.Close()
		if !pinned {
			t.Errorf("%s does not pin version 1.43.0", name)
		}
	}
}
