package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMain is the program starter if it is called by that name: a backend calls it.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "starter" {
		main()
		return
	}
	os.Exit(m.Run())
}

// enqueue is the example in docs/rewrite.md.
func enqueue(ctx context.Context, db *sql.DB, job, message string) (jobID, status string, err error) {
	seal := exec.CommandContext(ctx, "starter", "rewrite", "seal")
	seal.Stdin = strings.NewReader(message)
	sealed, err := seal.Output()
	if err != nil {
		return "", "", err
	}
	err = db.QueryRowContext(ctx, `select job_id, status from criticizer.enqueue_rewrite($1, $2)`, job, string(sealed)).Scan(&jobID, &status)
	return jobID, status, err
}

// documented returns the block of a language in docs/rewrite.md.
func documented(t *testing.T, language string) string {
	t.Helper()
	page, err := os.ReadFile("../docs/rewrite.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), "```"+language+"\n")
	block, _, ended := strings.Cut(rest, "```")
	if !found || !ended {
		t.Fatalf("docs/rewrite.md has no block in %s", language)
	}
	return block
}

// asBackend lets the programs that the test starts find starter and its configuration.
func (b backend) asBackend(t *testing.T) {
	t.Helper()
	this, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(this, filepath.Join(dir, "starter")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	for name, value := range b.env {
		t.Setenv(name, value)
	}
}

func TestDocumentedGo(t *testing.T) {
	b := newBackend(t)
	b.asBackend(t)
	source, err := os.ReadFile("rewritebackend_test.go")
	if err != nil || !strings.Contains(string(source), documented(t, "go")) {
		t.Errorf("the function of the page is not the one that this test runs: %v", err)
	}
	db, err := sql.Open("pgx", b.db.URL.Reveal())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(t.Context(), `set role criticizer_backend`); err != nil {
		t.Fatal(err)
	}
	fields := jobFields()
	delete(fields, "text")
	delete(fields, "preferences")
	job, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	id, status, err := enqueue(t.Context(), db, string(job), `{"text": "You never clean!"}`)
	if err != nil || len(id) != 36 || status != "queued" || b.jobs(t) != 1 {
		t.Errorf("job %q is %q, %v", id, status, err)
	}
}

func TestDocumentedPython(t *testing.T) {
	for _, program := range []string{"python3", "psql"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("SKIPPED: %s is not installed", program)
		}
	}
	b := newBackend(t)
	b.asBackend(t)
	cmd := exec.CommandContext(t.Context(), "python3", "-c", documented(t, "python"), b.db.URL.Reveal())
	cmd.Env = append(os.Environ(), "PGOPTIONS=-c role=criticizer_backend")
	out, err := cmd.CombinedOutput()
	id, status, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	if err != nil || len(id) != 36 || status != "queued" || b.jobs(t) != 1 {
		t.Errorf("%v, output %q", err, out)
	}
}
