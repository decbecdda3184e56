package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// imitated are the recorded command lines over the Jam depot that p4sim imitates,
// with what package p4 never runs left out: other commands and flags.
var imitated = [][]string{
	{"describe", "-s"}, {"changes", "-m"}, {"changes", "-s"}, {"files", "-m"}, {"files", "//depot/jam/Jamlang.html"},
	{"files", "//depot/jam/nosuch.c"}, {"filelog", "-m"}, {"print", "//depot/jam/pathsys.h#1"},
}

// TestCorpus compares p4sim byte for byte with recorded runs of the real client,
// where they are available.
func TestCorpus(t *testing.T) {
	t.Parallel()
	dir := os.Getenv("CRITICIZER_CORPUS_DIR")
	if dir == "" {
		t.Skip("corpus: CRITICIZER_CORPUS_DIR is not set; make corpus CORPUS=DIR sets it")
	}
	text, err := os.ReadFile(filepath.Join(dir, "p4-fixtures/client-transcripts/jam-transcripts.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	env := []string{"P4SIM_DEPOT=" + filepath.Join(dir, "p4-fixtures/jam-depot"), "P4SIM_STATE=" + t.TempDir()}
	compared := 0
	for line := range bytes.Lines(text) {
		var recorded struct {
			Argv           []string
			Exit           int
			Stdout, Stderr string
			Base64         string `json:"stdout_b64"`
		}
		if err := json.Unmarshal(line, &recorded); err != nil {
			t.Fatal(err)
		}
		args := recorded.Argv[1:]
		if args[0] != "-G" || slices.Contains(args[2:], "-l") || args[1] == "describe" && slices.Contains(args, "-m") ||
			!slices.ContainsFunc(imitated, func(c []string) bool { return slices.Equal(args[1:3], c) }) {
			continue
		}
		decoded, err := base64.StdEncoding.DecodeString(recorded.Base64)
		if err != nil {
			t.Fatal(err)
		}
		compared++
		want := result{recorded.Exit, recorded.Stdout + string(decoded), recorded.Stderr}
		if got := p4(env, "", args...); got != want {
			t.Errorf("%q: got %+v\nwant %+v", args, got, want)
		}
	}
	if compared < 20 {
		t.Errorf("compared %d runs, want 20 or more", compared)
	}
}
