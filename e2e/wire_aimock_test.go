package e2e

import (
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

// mockDir is the directory of package.json and the lock file, which pin aimock's version.
const mockDir = "../tools/aimock"

// A mockFixture is an answer of aimock to user messages that contain a text.
type mockFixture struct {
	Match    map[string]string `json:"match"`
	Response map[string]string `json:"response"`
}

// startMock runs aimock on loopback until the test ends and returns its URL. It needs node,
// and the npm registry to install aimock.
func startMock(t *testing.T, key string, fixtures ...mockFixture) string {
	t.Helper()
	node := program(t, "nodejs", "node")
	var major int
	if version, err := exec.CommandContext(t.Context(), node, "--version").Output(); err != nil {
		t.Fatal(err)
	} else if _, err := fmt.Sscanf(string(version), "v%d.", &major); err != nil || major < 20 {
		t.Skipf("SKIPPED: aimock needs node 20, %s is %s", node, version)
	}
	if err := mockInstalled(); err != nil {
		need(t, fmt.Sprintf("aimock cannot be installed: run npm ci in tools/aimock: %v", err))
	}
	encoded, err := json.Marshal(map[string]any{"fixtures": fixtures})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "fixtures.json")
	writeFile(t, file, 0o600, string(encoded))
	address := freeAddress(t)
	_, port, _ := net.SplitHostPort(address)
	var out bytes.Buffer
	cmd := exec.CommandContext(t.Context(), node, mockScript(), "-p", port, "-f", file, "--strict", "--chunk-size", "100000")
	cmd.Env = append(os.Environ(), "AIMOCK_API_KEYS="+key)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("aimock printed:\n%s", &out)
		}
	})
	waitFor(t, "aimock", func() bool {
		resp, err := http.Get("http://" + address + "/health")
		if err == nil {
			_ = resp.Body.Close()
		}
		return err == nil
	})
	return "http://" + address
}

func mockScript() string {
	return filepath.Join(mockDir, "node_modules", "@copilotkit", "aimock", "dist", "cli.js")
}

// mockInstalled installs the packages of the lock file unless they are present.
var mockInstalled = sync.OnceValue(func() error {
	if _, err := os.Stat(mockScript()); err == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts")
	cmd.Dir = mockDir
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("npm ci: %w\n%s", err, out)
	}
	return nil
})

// The lock file pins one version, so that results are reproducible.
func TestWireMockIsPinned(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"package.json", "package-lock.json"} {
		data, err := os.ReadFile(filepath.Join(mockDir, name))
		if err != nil {
			t.Fatal(err)
		}
		pinned := strings.Contains(string(data), `"@copilotkit/aimock": "1.43.0"`)
		if !pinned {
			t.Errorf("%s does not pin version 1.43.0", name)
		}
	}
}
