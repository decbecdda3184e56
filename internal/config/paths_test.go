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
		"one per line":                             {text: "# ours\n//depot/a/...\n\n  //depot/b/f\r\n", allowed: both},
		"a revision is no comment":                 {text: "//depot/a/f #3\n", allowed: []string{"//depot/a/f #3"}},
		"an exclusion is an entry":                 {text: "-//depot/a/...\n", allowed: []string{"-//depot/a/..."}},
		"a YAML list":                              {text: "- //depot/a/...\n- \"//depot/b/f\"\n", allowed: both},
		"a YAML list in one line":                  {text: "[//depot/a/..., //depot/b/f]", allowed: both},
		"both lists":                               {text: "allowed_paths: [//depot/a/...]\nembargoed_paths:\n  - //depot/a/x\n", allowed: both[:1], embargoed: []string{"//depot/a/x"}},
		"a whole configuration":                    {text: "server_id: x\np4:\n  port: ssl:x:1\n  allowed_paths: [//depot/a/...]\n", allowed: both[:1]},
		"an empty file":                            {text: "# nothing\n"},
		"a misspelt name in a whole configuration": {text: "p4: {allowed_paths: [//depot/a/...], embargod_paths: [//depot/a/x]}\n", problem: "p4.embargod_paths: is unknown"},
		"a misspelt name":                          {text: "allowed_path: [//depot/a/...]\n", problem: "allowed_path: is unknown"},
		"a number among the paths":                 {text: "- //depot/a/...\n- 12\n", problem: "entry 2 is not text"},
		"one path that is no list":                 {text: "allowed_paths: //depot/a/...\n", problem: "allowed_paths is not a list"},
		"what is no YAML after all":                {text: "[//depot/a/...\n", problem: "correct the YAML"},
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
