package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/testkit"
)

// leak is an invented password.
const leak = "Xk29dkQ0dks!"

func runRedact(t *testing.T, stdin string, args ...string) (string, error) {
	t.Helper()
	var stdout strings.Builder
	c := &app{getenv: func(string) string { return "" }, stdin: strings.NewReader(stdin), stdout: &stdout, stderr: io.Discard}
	root := c.rootCommand()
	root.SetArgs(append([]string{"redact"}, args...))
	err := root.ExecuteContext(t.Context())
	return stdout.String(), err
}

func TestRedact(t *testing.T) {
	t.Parallel()
	out, err := runRedact(t, "@@ -1 +1 @@\n-a\n+password = \""+leak+"\"\n")
	if err != nil || strings.Contains(out, leak) || !strings.HasPrefix(out, "@@ -1 +1 @@\n-a\n+password = \"[REDACTED:password:") || !strings.HasSuffix(out, "]\"\n") {
		t.Errorf("got %q, %v", out, err)
	}
}

// What the configuration masks in a review is masked here; a mistake in it is an error.
func TestRedactUsesTheConfiguration(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		testkit.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	write("own.rules", "token studio-token stud_{lalnum:30} stud_abcdefghij0123456789abcdefghij\n")
	for name, tc := range map[string]struct {
		section string
		status  int
	}{
		"good": {fmt.Sprintf("{rules: [%q], host_suffixes: [corp.example]}", filepath.Join(dir, "own.rules")), 0},
		"bad":  {"{bogus: 1}", 1},
	} {
		var out, errs strings.Builder
		path := write(name+".yaml", "redaction: "+tc.section+"\n")
		c := &app{
			getenv: func(name string) string { return map[string]string{"CRITICIZER_CONFIG": path}[name] },
			stdin:  strings.NewReader("see build01.corp.example stud_q1w2e3r4t5y6u7i8o9p0a1s2d3f4g5\n"), stdout: &out, stderr: &errs,
		}
		status := c.run(t.Context(), []string{"redact"})
		if status != tc.status || strings.Contains(out.String(), "corp.example") || strings.Contains(out.String(), "stud_") || !strings.Contains(errs.String(), name+".yaml") {
			t.Errorf("%s: status %d, printed %q and %q", name, status, out.String(), errs.String())
		}
	}
}

func TestRedactExplainsWithoutTheSecret(t *testing.T) {
	t.Parallel()
	out, err := runRedact(t, "x\npassword = \""+leak+"\"\ntoken = \"hello world\"\n", "--explain")
	if err != nil || strings.Contains(out, leak) {
		t.Errorf("got %q, %v", out, err)
	}
	for i, want := range [][]string{
		{"line 2 bytes 14-26 password: name password", "place: form NAME CLOSE @assign VALUE", "classifier: quoted value", "example: password = "},
		{"line 3 bytes 37-48 not masked: name token", "classifier: no key", "example: token = "},
	} {
		line := strings.Split(out, "\n")[i]
		for _, part := range want {
			if !strings.Contains(line, part) {
				t.Errorf("line %d is %q: want %q in it", i, line, part)
			}
		}
	}
}

func TestRedactLines(t *testing.T) {
	t.Parallel()
	out, err := runRedact(t, `{"id":7,"text":"password = \"`+leak+`\"","path":"a"}`+"\n\n"+`{"id":"b","text":"x","path":""}`, "--jsonl")
	testkit.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	var first struct {
		ID    int
		Text  string
		Spans [][2]int
		Rules []string
	}
	testkit.NoError(t, json.Unmarshal([]byte(lines[0]), &first))
	if len(lines) != 2 || first.ID != 7 || len(first.Spans) != 1 || first.Spans[0] != [2]int{12, 24} || first.Rules[0] != "password: name password" || strings.Contains(out, leak) {
		t.Errorf("got %s", out)
	}
	if lines[1] != `{"id":"b","text":"x","spans":[],"rules":[]}` {
		t.Errorf("got %s", lines[1])
	}
}

// The member path gives the language of a line: a word without quotes is a name in Go and a value in YAML.
func TestRedactLinesReadsThePath(t *testing.T) {
	t.Parallel()
	const line = `{"id":1,"text":"password: Fj0rdWater9\n","path":"%s"}`
	out, err := runRedact(t, fmt.Sprintf(line+"\n"+line, "a.go", "a.yaml"), "--jsonl")
	testkit.NoError(t, err)
	if asGo, asYAML, _ := strings.Cut(out, "\n"); !strings.Contains(asGo, "Fj0rdWater9") || strings.Contains(asYAML, "Fj0rdWater9") {
		t.Errorf("got %s", out)
	}
}

func TestRedactRejects(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stdin string
		args  []string
		class failure.Class
	}{
		"a line of no JSON": {"x\n", []string{"--jsonl"}, failure.InputInvalid},
		"a missing rules":   {"", []string{"--rules", "does-not-exist"}, failure.ConfigInvalid},
		"binary":            {strings.Repeat("\x00\x01", 100), nil, failure.RedactionBlocked},
		"a diff of binary":  {"@@ -1 +1 @@\n+" + strings.Repeat("\x00\x01", 100), []string{"--diff"}, failure.RedactionBlocked},
		"binary, explained": {strings.Repeat("\x00\x01", 100), []string{"--explain"}, failure.RedactionBlocked},
		"bad rules":         {"", []string{"--rules", "redact_test.go"}, failure.ConfigInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if out, err := runRedact(t, c.stdin, c.args...); failure.ClassOf(err) != c.class || out != "" {
				t.Errorf("got %q, %v: want class %s and no output", out, err, c.class)
			}
		})
	}
}

// The error names the number of an invalid line; the lines before it are answered.
func TestRedactLinesRejects(t *testing.T) {
	t.Parallel()
	good := `{"id":1,"text":"x","path":""}`
	for name, c := range map[string]struct{ line, want string }{
		"no JSON":               {"x", "JSON"},
		"cut off":               {`{"id":2,"text":"pass`, "JSON"},
		"two values":            {`{"id":2,"text":"x"} {"id":3,"text":"x"}`, "JSON"},
		"a list":                {`[2,"x"]`, "JSON"},
		"no text":               {`{"id":2,"path":"a"}`, "are required"},
		"text of null":          {`{"id":2,"text":null}`, "are required"},
		"text of no string":     {`{"id":2,"text":["x"]}`, "JSON"},
		"no id":                 {`{"text":"x"}`, "are required"},
		"a path of no string":   {`{"id":2,"text":"x","path":["/etc/passwd"]}`, "JSON"},
		"UTF-16":                {"\xff\xfe{\x00}\x00", "not UTF-8"},
		"UTF-16 without a mark": {"{\x00\"\x00i\x00", "JSON"},
		"NULs":                  {"{\"id\":2,\"text\":\"a\x00b\"}", "JSON"},
		"invalid UTF-8":         {"{\"id\":2,\"text\":\"a\xffb\"}", "not UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := runRedact(t, good+"\n\n"+c.line+"\n"+strings.Replace(good, "1", "9", 1)+"\n", "--jsonl")
			if failure.ClassOf(err) != failure.InputInvalid || !strings.Contains(err.Error(), "line 3") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v: want class %s, line 3 and %q", err, failure.InputInvalid, c.want)
			}
			if out != `{"id":1,"text":"x","spans":[],"rules":[]}`+"\n" {
				t.Errorf("printed %q: want the answer to the first line", out)
			}
		})
	}
}

// Unusual lines are answered: offsets refer to the text as sent, and text that cannot
// be read is masked entirely.
func TestRedactLinesAnswersOddLines(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ line, spans string }{
		"an odd path":              {`{"id":{"a":[1]},"text":"password = \"` + leak + `\"","path":"../\u0000\n//..%2f"}`, "[[12,24]]"},
		"no path":                  {`{"id":"","text":"password = \"` + leak + `\""}`, "[[12,24]]"},
		"half of a surrogate pair": {"{\"id\":1,\"text\":\"\xed\xa0\x80 password = '" + leak + "'\"}", "[[16,28]]"},
		"the same, escaped":        {`{"id":1,"text":"\ud800 password = '` + leak + `'"}`, "[[16,28]]"},
		"UTF-16 as text":           {`{"id":1,"text":"p\u0000w\u0000d\u0000=\u0000X\u0000k\u00002\u00009\u0000d\u0000k\u0000"}`, "[[8,19]]"},
		"binary":                   {`{"id":1,"text":"` + strings.Repeat(`\u0000\u0001`, 40) + `"}`, "[[0,80]]"},
		"an empty text":            {`{"id":1,"text":""}`, "[]"},
		"a huge line":              {`{"id":1,"text":"` + strings.Repeat("a", 3<<20) + ` password = '` + leak + `'"}`, "[[3145741,3145753]]"},
		"a text over the limit":    {`{"id":1,"text":"` + strings.Repeat("a ", 17<<20) + `"}`, "[[0,35651584]]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := runRedact(t, c.line, "--jsonl")
			if err != nil || !strings.Contains(out, `"spans":`+c.spans+`,`) || strings.Contains(out, leak) || strings.Count(out, "\n") != 1 {
				t.Errorf("got %.200q, %v: want spans %s", out, err, c.spans)
			}
		})
	}
}

// --jsonl combines with --diff, but not with --explain.
func TestRedactLinesTakesFlags(t *testing.T) {
	t.Parallel()
	line := `{"id":1,"text":"-----BEGIN RSA PRIVATE KEY-----\n"}`
	if out, err := runRedact(t, line, "--jsonl", "--diff"); err != nil || !strings.Contains(out, `"id":1`) {
		t.Errorf("got %q, %v", out, err)
	}
	if out, err := runRedact(t, line+"\n"+line, "--jsonl"); err != nil || strings.Count(out, `"id":1`) != 2 {
		t.Errorf("two lines of one id: got %q, %v", out, err)
	}
	if out, err := runRedact(t, line, "--jsonl", "--explain"); err == nil || out != "" {
		t.Errorf("got %q, %v: want wrong usage", out, err)
	}
}

// Whole texts reveal what the hunks do not show: the head of the table is far above.
func TestRedactOfWholeFiles(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	text := func(password string) string {
		return "id,name,password\n" + strings.Repeat("1,user,\n", 40) + "2,bob," + password + "\n"
	}
	const before, after = "tr0ub4dor-zebra", "mellow-pelican-9"
	for i, password := range []string{before, after} {
		for _, name := range []string{"users.csv", []string{"old.csv", "new.csv"}[i]} {
			testkit.NoError(t, os.WriteFile(name, []byte(text(password)), 0o600))
		}
		for _, args := range [][]string{{"init", "-q"}, {"add", "users.csv"}, {"-c", "user.name=x", "-c", "user.email=x@example.com", "commit", "-qm", "x"}} {
			if out, err := exec.CommandContext(t.Context(), "git", args...).CombinedOutput(); err != nil {
				t.Fatalf("git %v: %v: %s", args, err, out)
			}
		}
	}
	for _, args := range [][]string{{"--before", "old.csv", "--after", "new.csv"}, {"--git", "HEAD~1..HEAD"}} {
		out, err := runRedact(t, "", args...)
		if err != nil || strings.Contains(out, before) || strings.Contains(out, after) || strings.Count(out, "2,bob,[REDACTED:") != 2 {
			t.Errorf("%v: got %q, %v", args, out, err)
		}
	}
	for _, args := range [][]string{{"--git", "HEAD"}, {"--git", "no..such"}, {"--after", "missing"}, {"--after", "new.csv", "--explain"}} {
		if out, err := runRedact(t, "", args...); err == nil {
			t.Errorf("%v is accepted: %q", args, out)
		}
	}
}
