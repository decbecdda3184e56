package settings

import (
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/notify/mail"
	"github.com/criticizer/criticizer/notify/oncall"
	"github.com/criticizer/criticizer/notify/swarm"
	"github.com/criticizer/criticizer/review"
)

var allRoles = slices.Sorted(maps.Keys(needs))

// load reads a file with this text.
func load(t *testing.T, file string, env map[string]string) (*Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "criticizer.yaml")
	testkit.NoError(t, os.WriteFile(path, []byte(file), 0o600))
	return Load(path, func(name string) string { return env[name] })
}

// defaults returns the configuration of an empty file.
func defaults(t *testing.T) *Config {
	t.Helper()
	c, err := load(t, "", nil)
	testkit.NoError(t, err)
	return c
}

// complete returns a configuration that passes for every role.
func complete(t *testing.T) *Config {
	t.Helper()
	c := defaults(t)
	c.Database.URL = secret.New("postgres://criticizer@db/criticizer")
	c.P4.Port, c.P4.User, c.P4.Allowed = "ssl:perforce:1666", "criticizer", []string{"//depot/..."}
	c.LLM.Model, c.LLM.APIKey = "gpt", secret.New("key")
	c.Redaction.Key = secret.New("0123456789abcdef")
	c.Keysets = Keysets{secret.New("{}"), secret.New("{}"), secret.New("{}"), secret.New("{}")}
	c.Evidence.Key = secret.New("a key")
	c.Mail.SMTP.Server, c.Mail.SMTP.From = "smtp://mail.example.com", "criticizer@example.com"
	return c
}

func TestCompleteConfigurationPasses(t *testing.T) {
	t.Parallel()
	if err := complete(t).Check(allRoles...); err != nil {
		t.Error(err)
	}
}

// A new installation must set these fields before a role works. No role needs the
// credentials of another.
func TestRolesNeedTheirOwnSections(t *testing.T) {
	t.Parallel()
	tests := map[Role][]string{
		RoleStarter:   nil,
		RoleWorkflows: {"CRITICIZER_DATABASE_URL"},
		RoleFetch:     {"CRITICIZER_DATABASE_URL", "CRITICIZER_RAW_KEYSET", "p4.port", "p4.user", "p4.allowed_paths"},
		RoleRedact:    {"CRITICIZER_DATABASE_URL", "CRITICIZER_RAW_KEYSET", "CRITICIZER_REDACTED_KEYSET", "CRITICIZER_REDACTION_KEY"},
		RoleLLM: {
			"CRITICIZER_DATABASE_URL", "CRITICIZER_REDACTED_KEYSET", "CRITICIZER_REPORT_KEYSET", "CRITICIZER_ANSWERS_KEYSET", "CRITICIZER_REDACTION_KEY", "llm.model", "OPENAI_API_KEY",
		},
		RoleNotify:    {"CRITICIZER_DATABASE_URL", "CRITICIZER_REPORT_KEYSET", "CRITICIZER_EVIDENCE_KEY", "mail.server", "mail.from"},
		RoleRetention: {"CRITICIZER_DATABASE_URL"},
		RoleOperator:  {"CRITICIZER_DATABASE_URL"},
		RoleEval:      {"llm.model", "OPENAI_API_KEY"},
		RolePreview:   {"p4.port", "p4.user", "p4.allowed_paths"},
	}
	for _, role := range allRoles {
		t.Run(string(role), func(t *testing.T) {
			t.Parallel()
			got := fieldsIn(defaults(t).Check(role))
			want := tests[role]
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("lacks %v, want %v", got, want)
			}
		})
	}
}

// fieldsIn lists the fields of the problems in an error of Check.
func fieldsIn(err error) []string {
	if err == nil {
		return nil
	}
	var fields []string
	for _, line := range strings.Split(err.Error(), "\n")[1:] {
		field, _, _ := strings.Cut(line, ": ")
		fields = append(fields, field)
	}
	return fields
}

func TestPagingByMailNeedsAMailServer(t *testing.T) {
	t.Parallel()
	c := defaults(t)
	c.Database.URL, c.OnCall.Address = secret.New("postgres://db/criticizer"), "oncall@example.com"
	got := fieldsIn(c.Check(RoleWorkflows))
	if want := []string{"mail.server", "mail.from"}; !slices.Equal(got, want) {
		t.Errorf("lacks %v, want %v", got, want)
	}
}

func TestCheckReportsAllProblemsOnce(t *testing.T) {
	t.Parallel()
	c := complete(t)
	c.Database.URL = secret.Value{}
	c.Mail.SMTP.Server, c.Mail.Evidence.Settle = "pigeon://mail.example.com", 0
	err := c.Check(RoleFetch, RoleNotify, RoleLLM)
	want := []string{"CRITICIZER_DATABASE_URL", "mail.server", "mail.settle"}
	if got := fieldsIn(err); !slices.Equal(got, want) {
		t.Errorf("problems with %v, want %v", got, want)
	}
	// Every problem has the form "field: problem: hint".
	form := regexp.MustCompile(`^[A-Za-z0-9_.]+: [^:]+: [^:].+$`)
	for _, line := range strings.Split(err.Error(), "\n")[1:] {
		if !form.MatchString(line) {
			t.Errorf("problem is %q", line)
		}
	}
}

func TestCheckRefuses(t *testing.T) {
	t.Parallel()
	journal := mail.Mailbox{Server: "imap://journal@imap.example.com", Password: secret.New("p")}
	for name, tt := range map[string]struct {
		change func(*Config)
		want   string // field of the only problem
	}{
		"no server id": {func(c *Config) { c.ServerID = "" }, "server_id"},
		"a Temporal key in clear": {
			func(c *Config) {
				c.Temporal.Address, c.Temporal.APIKey, c.AllowClearText = "temporal:7233", secret.New("hunter2"), []string{"temporal"}
			}, "temporal.address",
		},
		"Temporal in clear":            {func(c *Config) { c.Temporal.Address = "temporal:7233" }, "temporal.address"},
		"Temporal at a name like ours": {func(c *Config) { c.Temporal.Address = "127.0.0.1.example.com:7233" }, "temporal.address"},
		"Temporal with a resolver":     {func(c *Config) { c.Temporal.Address = "dns:///temporal:7233" }, "temporal.address"},
		"Perforce in clear":            {func(c *Config) { c.P4.Port = "perforce:1666" }, "p4.port"},
		"Perforce at a host named ssl": {func(c *Config) { c.P4.Port = "sslhost:1666" }, "p4.port"},
		"tcp to a host named ssl":      {func(c *Config) { c.P4.Port = "tcp:ssl:1666" }, "p4.port"},
		"a model in clear":             {func(c *Config) { c.LLM.BaseURL, c.LLM.APIKey = "http://gpu:8000/v1", secret.Value{} }, "llm.base_url"},
		"an allowed model with a key": {
			func(c *Config) { c.LLM.BaseURL, c.AllowClearText = "http://gpu:8000/v1", []string{"llm"} }, "llm.base_url",
		},
		"another section in clear": {
			func(c *Config) { c.P4.Port, c.AllowClearText = "perforce:1666", []string{"temporal", "database"} }, "p4.port",
		},
		"all in clear": {func(c *Config) { c.AllowClearText = []string{"all"} }, "allow_cleartext"},
		"an inbox in clear": {func(c *Config) {
			c.Mail.Evidence.Journal.Server = "inbox://mail.example.com"
		}, "mail.journal.server"},
		"an inbox of bounces":  {func(c *Config) { c.Mail.Evidence.Bounces.Server = "inbox://127.0.0.1" }, "mail.bounces.server"},
		"no p4 command":        {func(c *Config) { c.P4.Command = "" }, "p4.command"},
		"a base URL of a file": {func(c *Config) { c.LLM.BaseURL = "file:///x" }, "llm.base_url"},
		"a password in the base URL": {
			func(c *Config) { c.LLM.BaseURL = "https://u:hunter2@host/v1" }, "llm.base_url",
		},
		"an endpoint without a key": {func(c *Config) { c.LLM.APIKey = secret.Value{} }, "OPENAI_API_KEY"},
		"three keys":                {func(c *Config) { c.LLM.APIKey = secret.New("hunter2\nb\nc") }, "OPENAI_API_KEY"},
		"three passwords": {func(c *Config) {
			c.Mail.SMTP.Server, c.Mail.SMTP.Password = "smtp://u@mail.example.com", secret.New("hunter2\nb\nc")
		}, "CRITICIZER_SMTP_PASSWORD"},
		"a key in clear": {
			func(c *Config) { c.LLM.BaseURL = "http://gpu.example.com/v1" }, "llm.base_url",
		},
		"unknown dialect":         {func(c *Config) { c.LLM.Dialect = "xml" }, "llm.dialect"},
		"a model timeout of zero": {func(c *Config) { c.LLM.Timeout = 0 }, "llm.timeout"},
		"a budget under one call": {
			func(c *Config) { c.LLM.MaxTokensPerReview = 26_191 }, "llm.max_tokens_per_review",
		},
		"a negative price":        {func(c *Config) { c.LLM.Prices = "2 -1 8 USD" }, "llm.prices"},
		"a fallback without name": {func(c *Config) { c.LLM.Fallbacks = []string{""} }, "llm.fallback_models"},
		"an empty domain":         {func(c *Config) { c.Redaction.HostSuffixes = []string{""} }, "redaction.host_suffixes"},
		"a port too large":        {func(c *Config) { c.Mail.SMTP.Server = "smtp://mail.example.com:65536" }, "mail.server"},
		"mail in clear":           {func(c *Config) { c.Mail.SMTP.Server = "smtp+insecure://mail.example.com" }, "mail.server"},
		"a password in the URL":   {func(c *Config) { c.Mail.SMTP.Server = "smtp://u:hunter2@mail.example.com" }, "mail.server"},
		"a channel of no path":    {func(c *Config) { c.Webhook.Filter.Paths = []string{"/x"} }, "webhook.paths"},
		"Swarm in clear": {func(c *Config) {
			c.Swarm = swarm.Config{Severity: c.Swarm.Severity, URL: "http://swarm.example.com", User: "bot", FailSeverity: "high", Ticket: secret.New("x")}
		}, "swarm.url"},
		"Swarm without ticket": {func(c *Config) {
			c.Swarm = swarm.Config{Severity: c.Swarm.Severity, URL: "https://swarm.example.com", User: "bot", FailSeverity: "low"}
		}, "CRITICIZER_SWARM_TICKET"},
		"Swarm without account": {func(c *Config) {
			c.Swarm = swarm.Config{Severity: c.Swarm.Severity, URL: "https://swarm.example.com", FailSeverity: "low", Ticket: secret.New("x")}
		}, "swarm.user"},
		"a link that runs a script":  {func(c *Config) { c.Links = Links{review.Links{File: "javascript:alert({path})"}} }, "links.file"},
		"a link to no change":        {func(c *Config) { c.Links = Links{review.Links{Change: "https://swarm.example.com"}} }, "links.change"},
		"feedback without a mailbox": {func(c *Config) { c.Mail.SMTP.FeedbackRelay = "mx.example.com" }, "mail.feedback_relay"},
		"nobody to page":             {func(c *Config) { c.OnCall = oncall.Config{Required: true} }, "oncall.required"},
		"a page without an address":  {func(c *Config) { c.OnCall.Address = "On Call <o@example.com>" }, "oncall.address"},
		"a webhook that is no URL":   {func(c *Config) { c.OnCall.WebhookURL = secret.New("hunter2") }, "CRITICIZER_ONCALL_WEBHOOK_URL"},
		"a webhook in clear":         {func(c *Config) { c.OnCall.WebhookURL = secret.New("http://hooks.example.com/hunter2") }, "CRITICIZER_ONCALL_WEBHOOK_URL"},
		"a page without mail server": {func(c *Config) { c.OnCall.Address, c.Mail.SMTP.Server = "o@example.com", "" }, "mail.server"},
		"a journal in clear": {func(c *Config) {
			c.Mail.Evidence.Journal = journal
			c.Mail.Evidence.Journal.Server = "imap+insecure://u@imap.example.com"
		}, "mail.journal.server"},
		"a journal without account": {func(c *Config) {
			c.Mail.Evidence.Journal = journal
			c.Mail.Evidence.Journal.Server = "imap://imap.example.com"
		}, "mail.journal.server"},
		"an unknown sign-in": {func(c *Config) {
			c.Mail.Evidence.Journal = journal
			c.Mail.Evidence.Journal.Server = "imap://u;AUTH=GSSAPI@imap.example.com"
		}, "mail.journal.server"},
		"a journal without password": {func(c *Config) { c.Mail.Evidence.Journal = journal; c.Mail.Evidence.Journal.Password = secret.Value{} }, "CRITICIZER_MAIL_JOURNAL_PASSWORD"},
		"bounces at no port": {func(c *Config) {
			c.Mail.Evidence.Bounces = journal
			c.Mail.Evidence.Bounces.Server = "imap://u@imap.example.com:0"
		}, "mail.bounces.server"},
		"no time to settle":        {func(c *Config) { c.Mail.Evidence.Settle = 0 }, "mail.settle"},
		"a bot that is no pattern": {func(c *Config) { c.Mail.Recipients.Bots = []string{"build-["} }, "mail.bots"},
		"a user, no password":      {func(c *Config) { c.Mail.SMTP.Server = "smtp://u@mail.example.com" }, "CRITICIZER_SMTP_PASSWORD"},
		"a password, no user":      {func(c *Config) { c.Mail.SMTP.Password = secret.New("k") }, "mail.server"},
		"a negative mail rate":     {func(c *Config) { c.Worker.NotifyPerSecond = -1 }, "worker.notify_per_second"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := complete(t)
			tt.change(c)
			err := c.Check(allRoles...)
			if got := fieldsIn(err); !slices.Equal(got, []string{tt.want}) {
				t.Errorf("problems with %v, want %s: %v", got, tt.want, err)
			}
			if strings.Contains(fmt.Sprint(err), "hunter2") {
				t.Errorf("problem shows a password: %v", err)
			}
			assertKnown(t, fieldsIn(err))
		})
	}
}

// assertKnown fails for a name that is neither a field nor a variable.
func assertKnown(t *testing.T, names []string) {
	t.Helper()
	for _, name := range names {
		if !slices.ContainsFunc(Program.Settings(new(Config)), func(s config.Setting) bool { return s.Name == name || s.Variable == name }) {
			t.Errorf("%s is neither a field nor a variable", name)
		}
	}
}

// Raw artifacts are kept at most 7 days, redacted ones at most 30 (security 9.4.1).
func TestRetentionIsBounded(t *testing.T) {
	t.Parallel()
	c := complete(t)
	c.Artifacts.RawTTL += time.Second
	c.Artifacts.RedactedTTL += time.Second
	c.Artifacts.ReportTTL += time.Second
	got := fieldsIn(c.Check(RoleFetch))
	if want := []string{"artifacts.raw_ttl", "artifacts.redacted_ttl", "artifacts.report_ttl"}; !slices.Equal(got, want) {
		t.Errorf("refused are %v, want %v", got, want)
	}
	c.Artifacts = Artifacts{RawTTL: time.Hour, RedactedTTL: time.Hour, ReportTTL: time.Hour}
	if err := c.Check(RoleFetch); err != nil {
		t.Errorf("shorter lives are refused: %v", err)
	}
}

func TestCheckAccepts(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Config){
		"a local model without a key": func(c *Config) { c.LLM.BaseURL, c.LLM.APIKey = "http://localhost:11434/v1", secret.Value{} },
		"a local model with a key":    func(c *Config) { c.LLM.BaseURL = "http://[::1]:8000/v1" },
		"an allowed model without a key": func(c *Config) {
			c.LLM.BaseURL, c.LLM.APIKey, c.AllowClearText = "http://gpu:8000/v1", secret.Value{}, []string{"llm"}
		},
		"allowed clear text": func(c *Config) {
			c.P4.Port, c.Temporal.Address, c.AllowClearText = "perforce:1666", "temporal:7233", []string{"p4", "temporal"}
		},
		"Perforce on this host by port": func(c *Config) { c.P4.Port = "1666" },
		"Perforce on this host by name": func(c *Config) { c.P4.Port = "tcp:localhost:1666" },
		"Perforce on this host by IPv6": func(c *Config) { c.P4.Port = "tcp6:[::1]:1666" },
		"Perforce with TLS over IPv4":   func(c *Config) { c.P4.Port = "ssl4:perforce:1666" },
		"clear text to this host":       func(c *Config) { c.Mail.SMTP.Server = "smtp+insecure://127.0.0.1" },
		"the inbox": func(c *Config) {
			c.Mail.SMTP.Server, c.Mail.Evidence.Journal.Server = "smtp+insecure://localhost:1025", "inbox://127.0.0.1:8025"
		},
		"a sign-in": func(c *Config) {
			c.Mail.SMTP.Server, c.Mail.SMTP.Password = "smtp://u@example.com@mail.example.com", secret.New("p")
		},
		"no ticket":            func(c *Config) { c.P4.Ticket = secret.Value{} },
		"a budget of one call": func(c *Config) { c.LLM.MaxTokensPerReview = 40_384 },
	} {
		c := complete(t)
		change(c)
		if err := c.Check(allRoles...); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestUnknownRoleIsRefused(t *testing.T) {
	t.Parallel()
	err := complete(t).Check("notfiy")
	if got := fieldsIn(err); !slices.Equal(got, []string{"role notfiy"}) {
		t.Errorf("error is %v", err)
	}
	if err := complete(t).Check(); err != nil {
		t.Errorf("no role lacks something: %v", err)
	}
}

func TestConfigPrintsNoSecret(t *testing.T) {
	t.Parallel()
	env := map[string]string{}
	for _, f := range Program.Settings(new(Config)) {
		if f.Secret {
			env[f.Variable] = "hunter2"
		}
	}
	c, err := Load(os.DevNull, func(name string) string { return env[name] })
	testkit.NoError(t, err)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		for _, out := range []string{fmt.Sprintf(verb, c), fmt.Sprintf(verb, *c)} {
			if strings.Contains(out, "hunter2") || strings.Contains(out, fmt.Sprintf("%x", "hunter2")) {
				t.Errorf("%s shows a secret: %s", verb, out)
			}
		}
	}
}

// The filters of each channel decide which reviews it gets.
func TestChannelsAreFiltered(t *testing.T) {
	t.Parallel()
	c, err := load(t, `
webhook: {paths: [//depot/Tools/...]}
swarm: {url: "https://swarm.example.com", user: bot, authors: ["a*"], severity: high}
`, map[string]string{"CRITICIZER_WEBHOOK_URL": "https://hooks.example.com/x"})
	testkit.NoError(t, err)
	high := review.Report{Author: "ann", Outcome: review.OutcomeFindings, Findings: []review.Finding{{Path: "//depot/a.c", Severity: review.SeverityHigh}}}
	byBob, inTools := high, high
	byBob.Author = "bob"
	inTools.Findings = []review.Finding{{Path: "//depot/Tools/a.c", Severity: review.SeverityLow}}
	got := map[review.Channel][]bool{}
	for _, channel := range c.Channels(slog.New(slog.DiscardHandler), nil) {
		got[channel.Name] = []bool{channel.Wants(high), channel.Wants(byBob), channel.Wants(inTools)}
	}
	want := map[review.Channel][]bool{review.ChannelWebhook: {false, false, true}, review.ChannelSwarm: {true, false, false}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("a high finding, one by bob, a low one in Tools: got %v, want %v", got, want)
	}
}

// The templates of docs/outputs.md give the links of their products.
func TestDocumentedLinks(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/outputs.md")
	testkit.NoError(t, err)
	for _, tc := range []struct{ template, want string }{
		{"https://swarm.example.com/changes/{changelist}", "https://swarm.example.com/changes/4711"},
		{"https://swarm.example.com/files/{path}?v=%40%3D{changelist}#L{line}", "https://swarm.example.com/files/depot/a.c?v=%40%3D4711#L7"},
		{"p4://perforce.example.com:1666/{changelist}", "p4://perforce.example.com:1666/4711"},
		{"p4://perforce.example.com:1666//{path}@{changelist}", "p4://perforce.example.com:1666//depot/a.c@4711"},
		{"http://p4web.example.com:8080/{changelist}?ac=10", "http://p4web.example.com:8080/4711?ac=10"},
		{"http://p4web.example.com:8080//{path}@{changelist}", "http://p4web.example.com:8080//depot/a.c@4711"},
	} {
		c := complete(t)
		c.Links.Change = tc.template
		got := c.Links.ToChange(4711)
		if strings.Contains(tc.template, "{path}") {
			c.Links.Change, c.Links.File = "", tc.template
			got = c.Links.ToFile(4711, review.Place{Path: "//depot/a.c", StartLine: 7})
		}
		if err := c.Check(RoleNotify); err != nil || got != tc.want || !strings.Contains(string(page), "`"+tc.template+"`") {
			t.Errorf("%s: %s, want %s; in docs/outputs.md: %t; problems %v", tc.template, got, tc.want, strings.Contains(string(page), tc.template), err)
		}
	}
}
