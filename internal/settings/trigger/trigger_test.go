package trigger

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/criticizer/criticizer/internal/testkit"
)

// A section of a newer release must not stop the trigger, which then would spool nothing. A
// section of the trigger with a typing error must.
func TestLoad(t *testing.T) {
	t.Parallel()
	for text, accepted := range map[string]bool{
		"server_id: a\nmail: {host: mx}\n": true, "newer: {a: {b: [c]}}\n": true,
		"temporl: {address: 'a:1'}\n": false, "shlef: {quiet: 2m}\n": false, "stater: {spool_dir: /a}\n": false,
	} {
		path := filepath.Join(t.TempDir(), "criticizer.yaml")
		testkit.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		if _, err := Load(path, func(string) string { return "" }); (err == nil) != accepted {
			t.Errorf("%q: %v", text, err)
		}
	}
}
