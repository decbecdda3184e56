package config

import (
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/internal/testkit"
)

// A fileConfig has a field of each kind.
type fileConfig struct {
	ServerID string      `yaml:"server_id" default:"p4"`
	P4       p4          `yaml:"p4"`
	Mail     mailSection `yaml:"mail"`
	LLM      llm         `yaml:"llm"`
	Database db          `yaml:"database"`
	Rewrite  rewrite     `yaml:"rewrite"`
	Worker   worker      `yaml:"worker"`
	Log      log         `yaml:"log"`
}

type (
	p4 struct {
		User         string        `yaml:"user"`
		AllowedPaths []string      `yaml:"allowed_paths"`
		Embargoed    []string      `yaml:"embargoed_paths"`
		Timeout      time.Duration `yaml:"timeout" default:"60s"`
		MaxFiles     int           `yaml:"max_files" default:"2000"`
		Limits       limits        `yaml:",inline"`
		NotASetting  string
	}
	limits struct {
		MaxFileBytes   Size `yaml:"max_file_bytes" default:"1MB"`
		MaxChangeBytes Size `yaml:"max_change_bytes" default:"20MB"`
	}
	mailSection struct {
		Host     string       `yaml:"host"`
		Port     int          `yaml:"port" default:"587"`
		TLS      tlsPolicy    `yaml:"tls" default:"mandatory"`
		Password secret.Value `yaml:"password" env:"CRITICIZER_SMTP_PASSWORD"`
		Journal  mailbox      `yaml:"journal"`
	}
	tlsPolicy string
	mailbox   struct {
		Port int `yaml:"port" default:"143"`
	}
	llm struct {
		Model       string       `yaml:"model"`
		Concurrency int          `yaml:"concurrency" default:"2"`
		APIKey      secret.Value `yaml:"api_key" env:"OPENAI_API_KEY"`
	}
	db struct {
		URL secret.Value `yaml:"url"`
	}
	rewrite struct {
		Run run `yaml:"run"`
	}
	run struct {
		Backoff []int `yaml:"retry_backoff_seconds"`
	}
	worker struct {
		LLMPerSecond   float64 `yaml:"llm_per_second" default:"0"`
		FetchPerSecond float64 `yaml:"fetch_per_second" default:"0"`
		Breaker        bool    `yaml:"breaker" default:"false"`
	}
	log struct {
		Level slog.Level `yaml:"level" default:"info"`
	}
)

var program = Program{Prefix: "CRITICIZER", DefaultPath: "/missing.yaml", Page: "docs/configuration.md"}

// environment returns a getenv that reads vars.
func environment(vars map[string]string) func(string) string {
	return func(name string) string { return vars[name] }
}

func writeFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "criticizer.yaml")
	testkit.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func load(t *testing.T, file string, vars map[string]string) (*fileConfig, error) {
	t.Helper()
	c := new(fileConfig)
	return c, program.Read(c, writeFile(t, file), environment(vars))
}

func TestLoadReadsEveryKindOfField(t *testing.T) {
	t.Parallel()
	got, err := load(t, `
server_id: edge.eu  # a comment
rewrite: {run: {retry_backoff_seconds: [900, 7200]}}
p4:
  allowed_paths:
    - //depot/a/...
    - "//depot/b c/..."
  embargoed_paths: []
  timeout: 1m30s
  max_files: 7
  max_file_bytes: 512KiB
  max_change_bytes: 2000
database:
worker:
  fetch_per_second: 2.5
  llm_per_second: 3
log: {level: debug}
`, nil)
	testkit.NoError(t, err)
	want := defaults(t)
	want.ServerID = "edge.eu"
	want.P4.AllowedPaths = []string{"//depot/a/...", "//depot/b c/..."}
	want.Rewrite.Run.Backoff = []int{900, 7200}
	want.P4.Embargoed = []string{}
	want.P4.Timeout = 90 * time.Second
	want.P4.MaxFiles, want.P4.Limits.MaxFileBytes, want.P4.Limits.MaxChangeBytes = 7, 512<<10, 2000
	want.Worker.FetchPerSecond, want.Worker.LLMPerSecond = 2.5, 3
	want.Log.Level = slog.LevelDebug
	if !reflect.DeepEqual(got, want) {
		t.Errorf("loaded %+v\nwant   %+v", got, want)
	}
}

// defaults returns the configuration of an empty file.
func defaults(t *testing.T) *fileConfig {
	t.Helper()
	c, err := load(t, "", nil)
	testkit.NoError(t, err)
	return c
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	want := defaults(t)
	if want.ServerID != "p4" || want.P4.Limits.MaxChangeBytes != 20e6 || want.P4.Timeout != time.Minute || want.Mail.TLS != "mandatory" ||
		want.Log.Level != slog.LevelInfo || want.Mail.Journal.Port != 143 {
		t.Errorf("defaults are %+v", want)
	}
	if got := Default[mailSection](); !reflect.DeepEqual(got, want.Mail) {
		t.Errorf("defaults of the section alone are %+v", got)
	}
	for name, file := range map[string]string{"nothing but comments": "# log:\n", "empty sections": "mail:\np4:\n"} {
		got, err := load(t, file, nil)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v\nwant %+v", name, got, err, want)
		}
	}
}

func TestEnvironmentOverridesEveryField(t *testing.T) {
	t.Parallel()
	// A value of each type that no field has as its default.
	texts := map[reflect.Type]string{
		reflect.TypeFor[string](): "other", reflect.TypeFor[tlsPolicy](): "other", reflect.TypeFor[[]string](): "one, two ,,three", reflect.TypeFor[bool](): "true",
		reflect.TypeFor[int](): "77", reflect.TypeFor[[]int](): "7, 77", reflect.TypeFor[float64](): "7.5", reflect.TypeFor[time.Duration](): "77s",
		reflect.TypeFor[Size](): "77KB", reflect.TypeFor[slog.Level](): "error", reflect.TypeFor[*int](): "77", reflect.TypeFor[*float64](): "7.5", reflect.TypeFor[secret.Value](): "hunter2",
	}
	vars, before := map[string]string{}, program.fieldsOf(defaults(t))
	for _, f := range before {
		vars[f.Variable] = texts[f.value.Type()]
	}
	got, err := load(t, "mail: {port: 25}\n", vars)
	testkit.NoError(t, err)
	for i, f := range program.fieldsOf(got) {
		if reflect.DeepEqual(f.value.Interface(), before[i].value.Interface()) {
			t.Errorf("%s did not override %s", f.Variable, f.Name)
		}
	}
	if got.Mail.Port != 77 || got.P4.AllowedPaths[2] != "three" || got.P4.Limits.MaxFileBytes != 77_000 || got.LLM.APIKey.Reveal() != "hunter2" {
		t.Errorf("overridden configuration is %+v", got)
	}
}

func TestVariableNames(t *testing.T) {
	t.Parallel()
	variables := map[string]string{}
	for _, f := range program.fieldsOf(new(fileConfig)) {
		for name, other := range variables {
			if other == f.Variable || other == f.Variable+"_FILE" {
				t.Errorf("%s and %s share %s", f.Name, name, f.Variable)
			}
		}
		variables[f.Name] = f.Variable
	}
	for name, want := range map[string]string{
		"server_id": "CRITICIZER_SERVER_ID", "p4.max_file_bytes": "CRITICIZER_P4_MAX_FILE_BYTES",
		"mail.password": "CRITICIZER_SMTP_PASSWORD", "llm.api_key": "OPENAI_API_KEY",
	} {
		if got := variables[name]; got != want {
			t.Errorf("variable of %s is %q, want %q", name, got, want)
		}
	}
}

func TestLoadFindsTheFile(t *testing.T) {
	t.Parallel()
	path := writeFile(t, "server_id: named\n")
	missing := filepath.Join(t.TempDir(), "none.yaml")
	for name, tt := range map[string]struct {
		path    string
		vars    map[string]string
		want    string // server_id
		wantErr string
	}{
		"by its path":                     {path, nil, "named", ""},
		"by CRITICIZER_CONFIG":            {"", map[string]string{"CRITICIZER_CONFIG": path}, "named", ""},
		"the path goes first":             {path, map[string]string{"CRITICIZER_CONFIG": missing}, "named", ""},
		"the environment goes over it":    {path, map[string]string{"CRITICIZER_SERVER_ID": "env"}, "env", ""},
		"a missing path is an error":      {missing, nil, "", missing},
		"a missing CRITICIZER_CONFIG too": {"", map[string]string{"CRITICIZER_CONFIG": missing}, "", missing},
		"a directory is an error":         {t.TempDir(), nil, "", "read configuration: "},
	} {
		c := new(fileConfig)
		err := program.Read(c, tt.path, environment(tt.vars))
		switch {
		case tt.wantErr != "":
			if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
				t.Errorf("%s: error is %v, want %q", name, err, tt.wantErr)
			}
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case c.ServerID != tt.want:
			t.Errorf("%s: server_id is %q, want %q", name, c.ServerID, tt.want)
		}
	}
}

func TestMissingDefaultFileMeansDefaults(t *testing.T) {
	t.Parallel()
	c := new(fileConfig)
	testkit.NoError(t, program.Read(c, "", environment(map[string]string{"CRITICIZER_SERVER_ID": "env"})))
	if c.ServerID != "env" || c.Mail.Port != 587 {
		t.Errorf("configuration is %+v, want defaults and environment", c)
	}
}

// The problem names the field in full, and its line.
func TestLoadRefuses(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		file string
		want string
	}{
		"an unknown field":            {"mail:\n  prot: 25\n", "mail.prot (line 2)"},
		"an unknown section":          {"\nmial: {port: 25}\n", "mial (line 2)"},
		"a field of a section on top": {"port: 25\n", "port (line 1)"},
		"a dotted name":               {"mail.port: 25\n", "mail.port (line 1)"},
		"a duplicate field":           {"p4:\n  user: a\n  port: b\n  user: c\n", "p4.user (line 4)"},
		"a duplicate section":         {"p4: {user: a}\nmail: {port: 1}\np4: {port: b}\n", "p4 (line 3)"},
		"a text for a number":         {"mail: {port: smtp}\n", "mail.port (line 1)"},
		"a fraction":                  {"mail: {port: 2.5}\n", "mail.port (line 1)"},
		"a number in hexadecimal":     {"mail: {port: 0x19}\n", "mail.port (line 1)"},
		"a number too large":          {"mail: {port: 99999999999999999999}\n", "mail.port (line 1)"},
		"yes for true":                {"worker: {breaker: yes}\n", "worker.breaker (line 1)"},
		"a duration without unit":     {"p4: {timeout: 60}\n", "p4.timeout (line 1)"},
		"a duration of days":          {"p4: {timeout: 7d}\n", "p4.timeout (line 1)"},
		"a size with another unit":    {"p4: {max_file_bytes: 1 lump}\n", "p4.max_file_bytes (line 1)"},
		"a negative size":             {"p4: {max_file_bytes: -1}\n", "p4.max_file_bytes (line 1)"},
		"a size too large":            {"p4: {max_file_bytes: 9999999999GB}\n", "p4.max_file_bytes (line 1)"},
		"an infinite rate":            {"worker: {llm_per_second: .inf}\n", "worker.llm_per_second (line 1)"},
		"unknown level":               {"log: {level: loud}\n", "log.level (line 1)"},
		"a text for a list":           {"p4: {allowed_paths: //depot/...}\n", "p4.allowed_paths (line 1)"},
		"a text in a list of numbers": {"rewrite: {run: {retry_backoff_seconds: [soon]}}\n", "rewrite.run.retry_backoff_seconds (line 1)"},
		"a list in a list":            {"p4: {allowed_paths: [[a]]}\n", "p4.allowed_paths (line 1)"},
		"a list for a text":           {"p4: {user: [a]}\n", "p4.user (line 1)"},
		"a section for a text":        {"p4: {user: {name: a}}\n", "p4.user (line 1)"},
		"a field without a value":     {"p4:\n  user:\n", "p4.user (line 2)"},
		"a text for a section":        {"p4: perforce:1666\n", "p4 (line 1)"},
		"a list for the file":         {"- p4\n", "the file (line 1): is not a section"},
		"an alias":                    {"server_id: &a x\np4: {user: *a}\n", "p4.user (line 2)"},
		"a merge":                     {"p4: {<<: {user: a}}\n", "p4.<< (line 1)"},
		"a typing error":              {"mail:\n  prot: 25\n", "write one of host, port, tls, password, journal"},
		"two documents":               {"server_id: a\n---\nserver_id: b\n", "the file holds several documents"},
		"broken YAML":                 {"p4:\n  user: \"a\n", "line 3: found unexpected end of stream (while scanning a quoted scalar that begins on line 2): correct the YAML there"},
		"a tab":                       {"p4:\n\tuser: a\n", "line 2: found character"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refuses(t, tt.file, nil, tt.want)
		})
	}
}

// refuses fails the test unless the configuration is refused with an error that names want
// and does not show the plain secret.
func refuses(t *testing.T, file string, vars map[string]string, want string) {
	t.Helper()
	c, err := load(t, file, vars)
	if err == nil {
		t.Fatalf("loaded %+v, want an error about %q", c, want)
	}
	if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), plain) {
		t.Errorf("error is\n%v\nwant in it\n%s", err, want)
	}
}

// plain is a secret in a file.
const plain = "correct-horse-battery"

func TestLoadRefusesVariables(t *testing.T) {
	t.Parallel()
	for variable, text := range map[string]string{
		"CRITICIZER_MAIL_PORT": "smtp", "CRITICIZER_P4_TIMEOUT": "60", "CRITICIZER_WORKER_BREAKER": "1",
		"CRITICIZER_WORKER_LLM_PER_SECOND": "NaN", "OPENAI_API_KEY_FILE": "no/such/file",
	} {
		refuses(t, "", map[string]string{variable: text}, variable)
	}
}

func TestLoadReportsAllProblemsAtOnce(t *testing.T) {
	t.Parallel()
	path := writeFile(t, "mail: {prot: 1, port: x}\np4: {timeout: 60}\n")
	err := program.Read(new(fileConfig), path, environment(map[string]string{"CRITICIZER_LLM_CONCURRENCY": "two"}))
	if err == nil {
		t.Fatal("loaded")
	}
	for _, want := range []string{path, "mail.prot", "mail.port", "p4.timeout", "CRITICIZER_LLM_CONCURRENCY"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error does not name %s:\n%v", want, err)
		}
	}
	if lines := strings.Count(err.Error(), "\n"); lines != 4 {
		t.Errorf("error has %d lines of problems, want 4:\n%v", lines, err)
	}
}

// No secret comes from a file, and errors show none (security 9.3.1).
func TestSecretsInTheFileAreRefused(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		file string
		want string // variable in the hint, or field
	}{
		"a password":                  {"mail: {password: " + plain + "}", "CRITICIZER_SMTP_PASSWORD"},
		"an API key":                  {"llm: {api_key: " + plain + "}", "OPENAI_API_KEY"},
		"by another name":             {"llm: {apikey: " + plain + "}", "OPENAI_API_KEY"},
		"a token":                     {"llm: {token: " + plain + "}", "OPENAI_API_KEY"},
		"a database URL":              {"database: {url: postgres://u:" + plain + "@h/d}", "CRITICIZER_DATABASE_URL"},
		"a database URL of a section": {"database: postgres://u:" + plain + "@h/d", "database (line 1)"},
		"at the top":                  {"smtp_password: " + plain, "docs/configuration.md"},
		"in a section without":        {"log: {token: " + plain + "}", "log.token (line 1)"},
		"as a mapping":                {"mail: {password: {value: " + plain + "}}", "CRITICIZER_SMTP_PASSWORD"},
		"empty":                       {"mail: {password: }", "CRITICIZER_SMTP_PASSWORD"},
		"in broken YAML":              {"mail:\n  password: \"" + plain + "\n  host: x\n", "begins on line 2"},
		"that is not an alias":        {"mail: {password: *" + plain + "}", "line 1: it is not YAML"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refuses(t, tt.file, nil, tt.want)
		})
	}
}

func TestSecretsAreReadFromFiles(t *testing.T) {
	t.Parallel()
	path := writeFile(t, "hunter2\n")
	c, err := load(t, "", map[string]string{"CRITICIZER_SMTP_PASSWORD_FILE": path})
	testkit.NoError(t, err)
	if got := c.Mail.Password.Reveal(); got != "hunter2" {
		t.Errorf("password is %q", got)
	}
}

func TestSizes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Size{
		"0": 0, "17": 17, "17B": 17, "2KB": 2000, "2KiB": 2048, "3MB": 3e6, "3 MB": 3e6, "3MiB": 3 << 20, "1GB": 1e9, "1GiB": 1 << 30,
	} {
		if got, err := parseSize(text); got != want || err != nil {
			t.Errorf("%q is %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "KB", "1.5MB", "1mb", "MB1", "-1KB", "1TB", "9223372036854775808", "9007199254740992KiB"} {
		if got, err := parseSize(text); err == nil {
			t.Errorf("%q is taken for %d", text, got)
		}
	}
}

func FuzzLoad(f *testing.F) {
	for _, file := range []string{"", "p4: {user: a}\n", "a: &a [*a]\n", "? x\n: y\n", "--- |\n x\n...\n", "p4:\n- a: b\n", "<<: *x"} {
		f.Add(file)
	}
	f.Fuzz(func(t *testing.T, file string) {
		if problems := program.setFromYAML(program.fieldsOf(new(fileConfig)), []byte(file)); len(problems) > 0 && problems[0].Error() == "" {
			t.Error("an empty problem")
		}
	})
}

// The file of the workers also serves the trigger, which knows some of its sections. A section
// of a newer release must not stop the trigger; one with a typing error must.
func TestSectionsOfOthersAreIgnored(t *testing.T) {
	t.Parallel()
	shared := program
	shared.Shared = true
	for file, accepted := range map[string]bool{
		"swarm: {users: [a, b]}\nserver_id: x\n": true, "swarm:\n": true,
		"mial: {port: 25}\n": false, "mail: {swarm: 25}\n": false, "swarm: {a: b}\nswarm: {a: c}\n": false,
		"sever_id: x\n": false, "users: [a]\n": false,
	} {
		if err := shared.Read(new(fileConfig), writeFile(t, file), environment(nil)); (err == nil) != accepted {
			t.Errorf("%q: %v", file, err)
		}
	}
}
