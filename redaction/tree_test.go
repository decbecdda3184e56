package redaction

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// samples are the files beside tests that show what a secret looks like.
var samples = []string{
	"../redaction/rules/tokens.rules", "../tools/devstack/harbor.txtar", "../notify/mail/refusals.txt",
	"../eval/builtin/hostile-secret-cloud-key.txtar", "../eval/builtin/hostile-secret-private-key.txtar",
	"../eval/builtin/hostile-secret-removed.txtar", "../eval/builtin/hostile-secret-url.txtar", "../review/plain/plaintest/payloads.txt",
}

// No credential stands in the source, in a default configuration or in a page (security
// 9.3.2). Tests have invented ones.
func TestTreeHoldsNoSecret(t *testing.T) {
	t.Parallel()
	p := newTestPipeline(t, Config{MaxBytes: 64 << 20})
	files := 0
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{".git", "build", "testdata"}, d.Name()):
			return filepath.SkipDir
		case !d.Type().IsRegular(), strings.HasSuffix(path, "_test.go"), slices.Contains(samples, filepath.ToSlash(path)):
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		body, err := json.Marshal(string(content))
		if err != nil {
			return err
		}
		files++
		if err := p.Check(body); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		return nil
	})
	if err != nil || files < 500 {
		t.Errorf("read %d files, %v", files, err)
	}
}
