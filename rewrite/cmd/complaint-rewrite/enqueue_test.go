package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/rewrite/store/storetest"
	"github.com/criticizer/criticizer/store/artifact"
)

// A backend is a database with a configuration for it.
type backend struct {
	db  *storetest.Database
	env map[string]string
}

func newBackend(t *testing.T) backend {
	t.Helper()
	db := storetest.New(t)
	keyset, err := artifact.NewKeyset(artifact.KEK{})
	testkit.NoError(t, err)
	return backend{db, map[string]string{
		"COMPLAINT_REWRITE_DATABASE_URL": db.URL.Reveal(), "COMPLAINT_REWRITE_KEYSET": keyset.Reveal(), "COMPLAINT_REWRITE_CONFIG": os.DevNull,
	}}
}

func (b backend) run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out, errs bytes.Buffer
	err := run(t.Context(), args, func(name string) string { return b.env[name] }, &out, &errs)
	return out.String(), err
}

func (b backend) jobs(t *testing.T) (n int) {
	t.Helper()
	testkit.NoError(t, b.db.Conn(t).QueryRow(t.Context(), `select count(*) from complaint_rewrite.jobs`).Scan(&n))
	return n
}

// sealed returns a message as seal encrypts it.
func (b backend) sealed(t *testing.T, message string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "message.json")
	testkit.NoError(t, os.WriteFile(path, []byte(message), 0o600))
	sealed, err := b.run(t, "seal", "--file", path)
	testkit.NoError(t, err)
	return sealed
}

// jobFields returns the fields of a valid line.
func jobFields() map[string]any {
	return map[string]any{
		"rewrite_request_id": uuid.NewString(), "surface": "direct_message", "rewrite_strength": "light_touch",
		"language_pair": map[string]string{"from": "en", "to": "pt-BR"}, "recipient_user_id": uuid.NewString(),
		"recipient_snapshot_id": uuid.NewString(), "recipient_preference_snapshot_id": uuid.NewString(),
		"text": "you never clean", "preferences": map[string]string{"tone": "warm"},
	}
}

func writeJobs(t *testing.T, lines ...map[string]any) string {
	t.Helper()
	var body bytes.Buffer
	for _, line := range lines {
		testkit.NoError(t, json.NewEncoder(&body).Encode(line))
	}
	path := filepath.Join(t.TempDir(), "jobs.jsonl")
	testkit.NoError(t, os.WriteFile(path, body.Bytes(), 0o600))
	return path
}

func with(field string, value any) map[string]any {
	line := jobFields()
	line[field] = value
	return line
}

func TestEnqueueRewrites(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	record := with("not_before_at", nil) // all fields
	record["max_attempts"], record["task"], record["job_id"] = 2, "complaint_rewrite", uuid.NewString()
	record["routing_decision"] = map[string]any{
		"provider": "openai", "adapter_kind": "openai_responses", "base_url": nil, "model": "m", "prompt_version": "v1",
		"policy_version": "p", "execution_mode": "batch", "cache_eligible": true, "max_retries": 2,
	}
	file := writeJobs(t, jobFields(), record)
	out, err := b.run(t, "enqueue", "--file", file)
	if err != nil || out != "enqueued 2 jobs; 0 existed already\n" {
		t.Fatalf("%q, %v", out, err)
	}
	out, err = b.run(t, "enqueue", "--json", "--file", file) // Enqueue is idempotent
	if err != nil || strings.Count(out, `"created":false`) != 2 || b.jobs(t) != 2 {
		t.Errorf("again: %q, %v, %d jobs", out, err, b.jobs(t))
	}
	var dump string
	if err := b.db.Conn(t).QueryRow(t.Context(), `select string_agg(j::text, '') || (select string_agg(r::text, '') from complaint_rewrite.requests r)
		|| (select string_agg(encode(body, 'escape'), '') from complaint_rewrite.messages) from complaint_rewrite.jobs j`).Scan(&dump); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(dump, "never") || strings.Contains(dump, "warm") {
		t.Error("the database holds the message in the clear")
	}
}

// An invalid line rejects the whole file. The error holds the numbers of all
// invalid lines and nothing of their content.
func TestInvalidLineRejectsTheFile(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		line map[string]any
		want string
	}{
		"no request":          {with("rewrite_request_id", "you never clean"), "rewrite_request_id is no UUID"},
		"unknown surface":     {with("surface", "you never clean"), "surface is none of [weekly_harmony direct_message other]"},
		"unknown strength":    {with("rewrite_strength", "you never clean"), "rewrite_strength is none of"},
		"no language":         {with("language_pair", map[string]string{"from": "en"}), "language_pair.to is no BCP-47 tag"},
		"no text":             {with("text", " "), "text is empty"},
		"a text too long":     {with("text", strings.Repeat("x", 70_000)), "text has 70000 bytes: want at most 65536"},
		"an unknown field":    {with("home_id", "x"), `unknown field "home_id"`},
		"a status":            {with("status", "completed"), `unknown field "status"`},
		"a type":              {with("max_attempts", "you never clean"), ": max_attempts is a JSON string"},
		"a time":              {with("not_before_at", "you never clean"), "not_before_at is not a time"},
		"a preference":        {with("preferences", map[string]string{"you never clean": "x"}), "the name of a preference"},
		"text for the router": {with("routing_decision", map[string]any{"text": "you never clean"}), `unknown field "text"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBackend(t)
			_, err := b.run(t, "enqueue", "--file", writeJobs(t, jobFields(), tt.line, jobFields(), tt.line))
			if err == nil || strings.Count(err.Error(), tt.want) != 2 {
				t.Fatalf("error is %v, want %q twice", err, tt.want)
			}
			for _, line := range []int{2, 4} {
				if !strings.Contains(err.Error(), fmt.Sprintf("line %d: ", line)) {
					t.Errorf("error does not name line %d: %v", line, err)
				}
			}
			if strings.Contains(err.Error(), "never clean") {
				t.Errorf("error quotes the file: %v", err)
			}
			if n := b.jobs(t); n != 0 {
				t.Errorf("%d jobs were enqueued", n)
			}
		})
	}
}

// A line that is not an object has no field to name.
func TestEnqueueRefusesAnArray(t *testing.T) {
	t.Parallel()
	b := backend{nil, map[string]string{
		"COMPLAINT_REWRITE_CONFIG": os.DevNull, "COMPLAINT_REWRITE_DATABASE_URL": "postgres://127.0.0.1/x", "COMPLAINT_REWRITE_KEYSET": "{}",
	}}
	path := filepath.Join(t.TempDir(), "jobs.jsonl")
	testkit.NoError(t, os.WriteFile(path, []byte("[]\n"), 0o600))
	if _, err := b.run(t, "enqueue", "--file", path); err == nil || !strings.Contains(err.Error(), "line 1: the line is a JSON array") {
		t.Errorf("error is %v", err)
	}
}

// An error of the database names the line, and blank lines count.
func TestEnqueueNamesTheLineOfADatabaseError(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	first, second := jobFields(), jobFields()
	second["rewrite_request_id"], second["text"] = first["rewrite_request_id"], "another text"
	file := writeJobs(t, first, second)
	body, err := os.ReadFile(file)
	testkit.NoError(t, err)
	testkit.NoError(t, os.WriteFile(file, bytes.ReplaceAll(body, []byte("\n"), []byte("\n\n")), 0o600))
	_, err = b.run(t, "enqueue", "--file", file)
	if err == nil || !strings.Contains(err.Error(), ": line 3: ") || b.jobs(t) != 0 {
		t.Errorf("error is %v, %d jobs", err, b.jobs(t))
	}
}

// A backend seals, enqueues with the SQL of the documentation, and fetches the result.
func TestDocumentedSQL(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	sealed := b.sealed(t, documented(t, "json"))
	if strings.Contains(sealed, "never") {
		t.Error("the sealed order has the message in the clear")
	}
	conn := b.db.Conn(t)
	statements := strings.Split(strings.ReplaceAll(documented(t, "sql"), ":'sealed'", "'"+sealed+"'"), ";\n")
	if _, err := conn.Exec(t.Context(), `set role complaint_rewrite_backend`); err != nil {
		t.Fatal(err)
	}
	var job, status, jobError *string
	var created bool
	var position, attempts int
	if err := conn.QueryRow(t.Context(), statements[0]).Scan(&job, &status, &created); err != nil || !created {
		t.Fatalf("enqueue: created %t, %v", created, err)
	}
	if err := conn.QueryRow(t.Context(), statements[1]).Scan(&status, &position, &jobError, &attempts); err != nil || *status != "queued" || position != 1 || attempts != 0 {
		t.Errorf("state: %v, position %d, %v", status, position, err)
	}
	if _, err := b.run(t, "result", *job); err == nil || !strings.Contains(err.Error(), "has no result") {
		t.Errorf("result of a queued job: %v", err)
	}
	if _, err := conn.Exec(t.Context(), `reset role`); err != nil {
		t.Fatal(err)
	}
	result, err := read(t, "", b.env).texts("result", nil)
	testkit.NoError(t, err)
	id, body, err := result.Seal([]byte("please clean"))
	testkit.NoError(t, err)
	for _, step := range []string{
		`update complaint_rewrite.jobs set status = 'processing', claimed_at = now(), claimed_by = 'w'`,
		fmt.Sprintf(`insert into complaint_rewrite.results (id, body) values ('%s', '\x%x')`, id, body),
		`update complaint_rewrite.jobs set status = 'completed', result_ref = 'result:` + id + `'`,
	} {
		if _, err := conn.Exec(t.Context(), step); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := b.run(t, "result", *job); err != nil || out != "please clean\n" {
		t.Errorf("result is %q, %v", out, err)
	}
}

// documented returns the block of a language in rewrite/docs/rewrite.md.
func documented(t *testing.T, language string) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/rewrite.md")
	testkit.NoError(t, err)
	_, rest, found := strings.Cut(string(page), "```"+language+"\n")
	block, _, ended := strings.Cut(rest, "```")
	if !found || !ended {
		t.Fatalf("rewrite/docs/rewrite.md has no block in %s", language)
	}
	return block
}
