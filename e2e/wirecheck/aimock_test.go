package wirecheck

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

	"github.com/criticizer/criticizer/e2e/e2etest"
)

// tool is the directory of package.json and the lock file, which pin aimock's version.
const tool = "../../tools/aimock"

// A fixture is an answer of aimock to user messages that contain a text.
type fixture struct {
	Match    map[string]string `json:"match"`
	Response map[string]string `json:"response"`
}

// startMock runs aimock on loopback until the test ends and returns its URL. It needs node,
// and the npm registry to install aimock.
func startMock(t *testing.T, key string, fixtures ...fixture) string {
	t.Helper()
	node := e2etest.Program(t, "nodejs", "node")
	if err := installed(); err != nil {
		e2etest.Need(t, fmt.Sprintf("aimock cannot be installed: run npm ci in tools/aimock: %v", err))
	}
	encoded, err := json.Marshal(map[string]any{"fixtures": fixtures})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "fixtures.json")
	e2etest.WriteFile(t, file, 0o600, string(encoded))
	address := e2etest.FreeAddress(t)
	_, port, _ := net.SplitHostPort(address)
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
			t.Logf("aimock printed:\n%s", &out)
		}
	})
	e2etest.WaitFor(t, "aimock", func() bool {
		resp, err := http.Get("http://" + address + "/health")
		if err == nil {
			_ = resp.Body.Close()
		}
		return err == nil
	})
	return "http://" + address
}

func script() string {
	return filepath.Join(tool, "node_modules", "@copilotkit", "aimock", "dist", "cli.js")
}

// installed installs the packages of the lock file unless they are present.
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

// The lock file pins one version, so that results are reproducible.
func TestVersionIsPinned(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"package.json", "package-lock.json"} {
		data, err := os.ReadFile(filepath.Join(tool, name))
		if err != nil {
			t.Fatal(err)
		}
		pinned := strings.Contains(string(data), `"@copilotkit/aimock": "1.43.0"`)
		if !pinned {
			t.Errorf("%s does not pin version 1.43.0", name)
		}
	}
}
