package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestLoadPaths(t *testing.T) {
	t.Parallel()
	both := []string{"//depot/a/...", "//depot/b/f"}
	tests := map[string]struct {
		text               string
		allowed, embargoed []string
		problem            string
	}{
		"one per line":             {text: "# ours\n//depot/a/...\n\n  //depot/b/f\r\n", allowed: both},
		"a revision is no comment": {text: "//depot/a/f #3\n", allowed: []string{"//depot/a/f #3"}},
		"an exclusion is an entry": {text: "-//depot/a/...\n", allowed: []string{"-//depot/a/..."}},
		"a configuration":          {text: "server_id: x\np4:\n  port: ssl:x:1\n  allowed_paths: [//depot/a/...]\n  embargoed_paths: [//depot/a/x]\n", allowed: both[:1], embargoed: []string{"//depot/a/x"}},
		"a section":                {text: "allowed_paths: [//depot/a/...]\nembargoed_paths:\n  - //depot/a/x\n", allowed: both[:1], embargoed: []string{"//depot/a/x"}},
		"an empty file":            {text: "# nothing\n"},
		"a misspelt field":         {text: "p4: {allowed_paths: [//depot/a/...], embargod_paths: [//depot/a/x]}\n", problem: "p4.embargod_paths"},
		"a misspelt section":       {text: "p5: {allowed_paths: [//depot/a/...]}\n", problem: "p5"},
		"a list that is none":      {text: "p4: {allowed_paths: //depot/a/...}\n", problem: "p4.allowed_paths"},
		"a file that is not YAML":  {text: "p4: [//depot/a/...\n", problem: "line 1"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "paths")
			if err := os.WriteFile(file, []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			allowed, embargoed, err := LoadPaths(file)
			if !slices.Equal(allowed, tt.allowed) || !slices.Equal(embargoed, tt.embargoed) {
				t.Errorf("paths are %q and %q, want %q and %q", allowed, embargoed, tt.allowed, tt.embargoed)
			}
			if (err == nil) != (tt.problem == "") || err != nil && !strings.Contains(err.Error(), tt.problem) {
				t.Errorf("error is %v, want %q", err, tt.problem)
			}
		})
	}
}
