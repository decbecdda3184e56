package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/secret"
)

var allRoles = slices.Sorted(maps.Keys(needs))

// complete is a configuration every role can work with.
func complete(t *testing.T) *Config {
	t.Helper()
	c := defaults(t)
	c.Database.URL = secret.New("postgres://criticizer@db/criticizer")
	c.Rewrite.Route.Model = "a-model"
	c.P4.Port, c.P4.User, c.P4.AllowedPaths = "ssl:perforce:1666", "criticizer", []string{"//depot/..."}
	c.LLM.Model, c.LLM.APIKey = "gpt", secret.New("key")
	c.Redaction.Key = secret.New("0123456789abcdef")
	c.Artifacts.Keyset = secret.New("{}")
	c.Mail.Provider, c.Mail.Host, c.Mail.From = "smtp", "mail.example.com", "criticizer@example.com"
	return c
}

func TestCompleteConfigurationPasses(t *testing.T) {
	t.Parallel()
	if err := complete(t).Check(allRoles...); err != nil {
		t.Error(err)
	}
}

// What a new installation has to say before each role works. A process gets by
// with its own credentials: no role asks for those of another.
func TestRolesNeedTheirOwnSections(t *testing.T) {
	t.Parallel()
	tests := map[Role][]string{
		RoleStarter:   nil,
		RoleWorkflows: {"CRITICIZER_DATABASE_URL"},
		RoleFetch:     {"CRITICIZER_DATABASE_URL", "CRITICIZER_ARTIFACT_KEYSET", "p4.port", "p4.user", "p4.allowed_paths"},
		RoleRedact:    {"CRITICIZER_DATABASE_URL", "CRITICIZER_ARTIFACT_KEYSET", "CRITICIZER_REDACTION_KEY"},
		RoleLLM: {
			"CRITICIZER_DATABASE_URL", "CRITICIZER_ARTIFACT_KEYSET", "CRITICIZER_REDACTION_KEY", "llm.model", "OPENAI_API_KEY",
		},
		RoleNotify:    {"CRITICIZER_DATABASE_URL", "CRITICIZER_ARTIFACT_KEYSET", "mail.provider", "mail.host", "mail.from"},
		RoleRetention: {"CRITICIZER_DATABASE_URL"},
		RoleBackend:   {"CRITICIZER_DATABASE_URL", "CRITICIZER_ARTIFACT_KEYSET"},
		RoleRewrite:   {"CRITICIZER_DATABASE_URL", "CRITICIZER_ARTIFACT_KEYSET", "CRITICIZER_REDACTION_KEY", "rewrite.route.model"},
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

// fieldsIn lists the fields an error of Check speaks about.
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

// Who pages by mail needs a mail server, whichever stages it serves.
func TestPagingByMailNeedsAMailServer(t *testing.T) {
	t.Parallel()
	c := defaults(t)
	c.Database.URL, c.OnCall.Address = secret.New("postgres://db/criticizer"), "oncall@example.com"
	got := fieldsIn(c.Check(RoleWorkflows))
	if want := []string{"mail.provider", "mail.host", "mail.from"}; !slices.Equal(got, want) {
		t.Errorf("lacks %v, want %v", got, want)
	}
}

func TestCheckReportsAllProblemsOnce(t *testing.T) {
	t.Parallel()
	c := complete(t)
	c.Database.URL = secret.Value{}
	c.Mail.Provider, c.Mail.Port = "pigeon", 0
	err := c.Check(RoleFetch, RoleNotify, RoleLLM)
	want := `check configuration:
CRITICIZER_DATABASE_URL: is not set: set it to a Postgres URL, or CRITICIZER_DATABASE_URL_FILE to a file that holds it
mail.provider: "pigeon" is no choice: write one of smtp, resend, inbox
mail.port: 0 is no port: write 1 to 65535`
	if err == nil || err.Error() != want {
		t.Errorf("error is\n%v\nwant\n%s", err, want)
	}
}

func TestCheckRefuses(t *testing.T) {
	t.Parallel()
	journal := MailJournal{Host: "imap.example.com", Port: 143, TLS: "mandatory", Username: "journal", Password: secret.New("p")}
	tests := map[string]struct {
		change func(*Config)
		want   string // beginning of the only problem
	}{
		"no server id":        {func(c *Config) { c.ServerID = "" }, "server_id: is not set"},
		"no Temporal address": {func(c *Config) { c.Temporal.Address = "" }, "temporal.address: is not set"},
		"no namespace":        {func(c *Config) { c.Temporal.Namespace = "" }, "temporal.namespace: is not set"},
		"a Temporal key in clear": {
			func(c *Config) { c.Temporal.APIKey = secret.New("k") },
			"temporal.tls: would send CRITICIZER_TEMPORAL_API_KEY in clear: set it to true",
		},
		"no p4 command":        {func(c *Config) { c.P4.Command = "" }, "p4.command: is not set"},
		"no state directory":   {func(c *Config) { c.P4.StateDir = "" }, "p4.state_dir: is not set"},
		"a p4 timeout of zero": {func(c *Config) { c.P4.Timeout = 0 }, "p4.timeout: is not positive"},
		"no files":             {func(c *Config) { c.P4.MaxFiles = -1 }, "p4.max_files: is not positive"},
		"no bytes of a file":   {func(c *Config) { c.P4.MaxFileBytes = 0 }, "p4.max_file_bytes: is not positive"},
		"no bytes of a change": {func(c *Config) { c.P4.MaxChangeBytes = 0 }, "p4.max_change_bytes: is not positive"},
		"negative context":     {func(c *Config) { c.P4.ContextLines = -1 }, "p4.context_lines: is not positive"},
		"no base URL":          {func(c *Config) { c.LLM.BaseURL = "" }, "llm.base_url: is no http address"},
		"a base URL of a file": {func(c *Config) { c.LLM.BaseURL = "file:///x" }, "llm.base_url: is no http address"},
		"a password in the base URL": {
			func(c *Config) { c.LLM.BaseURL = "https://u:hunter2@host/v1" }, "llm.base_url: holds a user or password",
		},
		"an endpoint without a key": {func(c *Config) { c.LLM.APIKey = secret.Value{} }, "OPENAI_API_KEY: is not set: set it to the key of api.openai.com"},
		"an old key alone": {
			func(c *Config) {
				c.LLM.BaseURL, c.LLM.APIKey, c.LLM.APIKeyOld = "http://127.0.0.1:1/v1", secret.Value{}, secret.New("k")
			}, "OPENAI_API_KEY_OLD: is set without a key that replaces it",
		},
		"a key in clear": {
			func(c *Config) { c.LLM.BaseURL = "http://gpu.example.com/v1" }, "llm.base_url: would send OPENAI_API_KEY in clear",
		},
		"an answer format there is not": {func(c *Config) { c.LLM.AnswerFormat = "xml" }, `llm.answer_format: "xml" is no choice`},
		"a model timeout of zero":       {func(c *Config) { c.LLM.Timeout = 0 }, "llm.timeout: is not positive"},
		"no prompt":                     {func(c *Config) { c.LLM.MaxPromptTokens = 0 }, "llm.max_prompt_tokens: is not positive"},
		"no answer":                     {func(c *Config) { c.LLM.MaxAnswerTokens = 0 }, "llm.max_answer_tokens: is not positive"},
		"a budget under one call": {
			func(c *Config) { c.LLM.MaxTokensPerReview = 27_999 }, "llm.max_tokens_per_review: does not hold one call: write at least 28000",
		},
		"no concurrency":          {func(c *Config) { c.LLM.Concurrency = 0 }, "llm.concurrency: is not positive"},
		"a day of less than none": {func(c *Config) { c.LLM.MaxTokensPerDay = -1 }, "llm.max_tokens_per_day: is negative: 0 is no limit"},
		"a negative price":        {func(c *Config) { c.LLM.PricePerMillionCached = -1 }, "llm.price_per_million_prompt: or another price is negative"},
		"a severity there is not": {func(c *Config) { c.LLM.MinSeverity = "blocker" }, `llm.min_severity: "blocker" is no choice`},
		"no findings":             {func(c *Config) { c.LLM.MaxFindings = 0 }, "llm.max_findings: is not positive"},
		"half a second look":      {func(c *Config) { c.LLM.Falsify = "maybe" }, `llm.falsify: "maybe" is no choice`},
		"a fallback of no name":   {func(c *Config) { c.LLM.FallbackModels = []string{""} }, "llm.fallback_models: names a model without a name"},
		"an empty domain":         {func(c *Config) { c.Redaction.HostSuffixes = []string{""} }, "redaction.host_suffixes: holds an empty entry"},
		"a profile there is not":  {func(c *Config) { c.Rewrite.Run.Profile = "test" }, `rewrite.run.profile: "test" is no choice: write one of dev, stage, prod`},
		"less than no jobs":       {func(c *Config) { c.Rewrite.Run.MaxJobsPerRun = -1 }, "rewrite.run.max_jobs_per_run: is negative"},
		"a wait of no time":       {func(c *Config) { c.Rewrite.Run.RetryBackoffSeconds = []int{0} }, "rewrite.run.retry_backoff_seconds: holds a wait below 1 second"},
		"batches of nothing":      {func(c *Config) { c.Rewrite.Batch.MaxRequests = 0 }, "rewrite.batch.max_requests: is not positive"},
		"no retention":            {func(c *Config) { c.Artifacts.ReportTTL = 0 }, "artifacts.report_ttl: 0s is not allowed: write at most 720h"},
		"a port too large":        {func(c *Config) { c.Mail.Port = 65536 }, "mail.port: 65536 is no port"},
		"mail in clear": {
			func(c *Config) { c.Mail.TLS = "none" }, "mail.tls: is none for a server on another host: set it to mandatory or implicit",
		},
		"opportunistic TLS": {func(c *Config) { c.Mail.TLS = "optional" }, `mail.tls: "optional" is no choice`},
		"clean to no one":   {func(c *Config) { c.Mail.CleanTo = "" }, "mail.clean_to: is not set: write one of author, everyone, nobody"},
		"a chat in clear":   {func(c *Config) { c.Webhook.URL = secret.New("http://hooks.example.com/hunter2") }, "CRITICIZER_WEBHOOK_URL: would be sent in clear to another host"},
		"a chat in doubt":   {func(c *Config) { c.Webhook.OnAmbiguous = "drop" }, `webhook.on_ambiguous: "drop" is no choice: write one of hold, resend`},
		"code review in clear": {func(c *Config) {
			c.Swarm = Swarm{URL: "http://swarm.example.com", User: "bot", Ticket: secret.New("x")}
		}, "swarm.url: would send CRITICIZER_SWARM_TICKET in clear"},
		"code review without ticket":  {func(c *Config) { c.Swarm = Swarm{URL: "https://swarm.example.com", User: "bot"} }, "CRITICIZER_SWARM_TICKET: is not set"},
		"code review without account": {func(c *Config) { c.Swarm = Swarm{URL: "https://swarm.example.com", Ticket: secret.New("x")} }, "swarm.user: is not set"},
		"feedback to no address":      {func(c *Config) { c.Feedback.Address = "reviews" }, "feedback.address: is no mail address"},
		"feedback on no page":         {func(c *Config) { c.Feedback.URL = "reviews" }, "feedback.url: is no http address"},
		"a pager without an address":  {func(c *Config) { c.OnCall.Address = "On Call <o@example.com>" }, "oncall.address: is no mail address"},
		"a webhook that is no URL":    {func(c *Config) { c.OnCall.WebhookURL = secret.New("hunter2") }, "CRITICIZER_ONCALL_WEBHOOK_URL: is no http address"},
		"a webhook in clear":          {func(c *Config) { c.OnCall.WebhookURL = secret.New("http://hooks.example.com/hunter2") }, "CRITICIZER_ONCALL_WEBHOOK_URL: would be sent in clear"},
		"a pager without mail server": {func(c *Config) { c.OnCall.Address, c.Mail.Host = "o@example.com", "" }, "mail.host: is not set"},
		"a journal in clear":          {func(c *Config) { c.Mail.Journal = journal; c.Mail.Journal.TLS = "none" }, "mail.journal.tls: is none for a server on another host"},
		"a journal without account":   {func(c *Config) { c.Mail.Journal = journal; c.Mail.Journal.Username = "" }, "mail.journal.username: is not set"},
		"a journal with both":         {func(c *Config) { c.Mail.Journal = journal; c.Mail.Journal.TokenFile = "token" }, "mail.journal.token_file: is set, so is CRITICIZER_JOURNAL_PASSWORD"},
		"a journal without password":  {func(c *Config) { c.Mail.Journal = journal; c.Mail.Journal.Password = secret.Value{} }, "CRITICIZER_JOURNAL_PASSWORD: is not set"},
		"bounces without password":    {func(c *Config) { c.Mail.Bounces = MailBounces(journal); c.Mail.Bounces.Password = secret.Value{} }, "CRITICIZER_BOUNCES_PASSWORD: is not set"},
		"bounces at no port":          {func(c *Config) { c.Mail.Bounces = MailBounces(journal); c.Mail.Bounces.Port = 0 }, "mail.bounces.port: 0 is no port"},
		"no time to settle":           {func(c *Config) { c.Mail.Settle = 0 }, "mail.settle: is not positive"},
		"a guess when in doubt":       {func(c *Config) { c.Mail.OnAmbiguous = "guess" }, `mail.on_ambiguous: "guess" is no choice`},
		"resend without a key":        {func(c *Config) { c.Mail.Provider = "resend" }, "CRITICIZER_RESEND_API_KEY: is not set"},
		"no recipients":               {func(c *Config) { c.Mail.MaxRecipients = 0 }, "mail.max_recipients: is not positive"},
		"a bot that is no pattern":    {func(c *Config) { c.Mail.Bots = []string{"build-["} }, `mail.bots: "build-[" is no pattern`},
		"reconciled all the time":     {func(c *Config) { c.Mail.ReconcileEvery = 0 }, "mail.reconcile_every: is not positive"},
		"a user, no password":         {func(c *Config) { c.Mail.Username = "u" }, "CRITICIZER_SMTP_PASSWORD: is not set"},
		"a password, no user":         {func(c *Config) { c.Mail.Password = secret.New("k") }, "mail.username: is not set, CRITICIZER_SMTP_PASSWORD is"},
		"a token, no user":            {func(c *Config) { c.Mail.TokenFile = "token" }, "mail.username: is not set, mail.token_file is"},
		"a token and a password": {
			func(c *Config) {
				c.Mail.Username, c.Mail.TokenFile, c.Mail.Password = "u", "token", secret.New("k")
			}, "mail.token_file: is set, so is CRITICIZER_SMTP_PASSWORD",
		},
		"an inbox nowhere":      {func(c *Config) { c.Mail.Provider = "inbox" }, "mail.inbox_url: is no http address"},
		"a negative fetch rate": {func(c *Config) { c.Worker.FetchPerSecond = -1 }, "worker.fetch_per_second: is negative"},
		"a negative model rate": {func(c *Config) { c.Worker.LLMPerSecond = -1 }, "worker.llm_per_second: is negative"},
		"a negative mail rate":  {func(c *Config) { c.Worker.NotifyPerSecond = -1 }, "worker.notify_per_second: is negative"},
		"a path without limit":  {func(c *Config) { c.Worker.MaxInFlightPerPath = []string{"//depot/a/... 4", "//depot/..."} }, `worker.max_in_flight_per_path: "//depot/..." is not a path with a number`},
		"a limit of none":       {func(c *Config) { c.Worker.MaxInFlightPerPath = []string{"//depot/... 0"} }, "worker.max_in_flight_per_path"},
		"no time to stop":       {func(c *Config) { c.Worker.StopGrace = 0 }, "worker.stop_grace"},
		"a build of nothing":    {func(c *Config) { c.Worker.BuildID = "7" }, "worker.build_id: is set, worker.deployment is not"},
		"an alarm on nothing":   {func(c *Config) { c.Breaker.Failures = 0 }, "breaker.failures"},
		"an alarm on no review": {func(c *Config) { c.Breaker.Reviews = -1 }, "breaker.reviews"},
		"a format there is not": {func(c *Config) { c.Log.Format = "xml" }, `log.format: "xml" is no choice: write one of auto, text, json`},
	}
	shape := regexp.MustCompile(`^[A-Za-z0-9_.]+: [^:]+: [^:].+$`)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := complete(t)
			tt.change(c)
			err := c.Check(allRoles...)
			if err == nil {
				t.Fatalf("passes, want %q", tt.want)
			}
			problem := strings.TrimPrefix(err.Error(), "check configuration:\n")
			if !strings.HasPrefix(problem, tt.want) || !shape.MatchString(problem) {
				t.Errorf("problem is %q, want %q in the shape field: what: to do", problem, tt.want)
			}
			if strings.Contains(problem, "hunter2") {
				t.Errorf("problem shows a password: %s", problem)
			}
			assertKnown(t, fieldsIn(err))
		})
	}
}

// assertKnown fails for a name that is neither a field nor a variable: Check
// writes them by hand.
func assertKnown(t *testing.T, names []string) {
	t.Helper()
	for _, name := range names {
		if !slices.ContainsFunc(fieldsOf(new(Config)), func(f field) bool { return f.name == name || f.variable == name }) {
			t.Errorf("%s is no field and no variable", name)
		}
	}
}

// Security 9.4.1: raw artifacts live at most 7 days, redacted ones at most 30.
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
	c.Artifacts = Artifacts{RawTTL: time.Hour, RedactedTTL: time.Hour, ReportTTL: time.Hour, Keyset: c.Artifacts.Keyset}
	if err := c.Check(RoleFetch); err != nil {
		t.Errorf("shorter lives are refused: %v", err)
	}
}

func TestCheckAccepts(t *testing.T) {
	t.Parallel()
	tests := map[string]func(*Config){
		"a Temporal key over TLS":       func(c *Config) { c.Temporal.APIKey, c.Temporal.TLS = secret.New("k"), true },
		"a local model without a key":   func(c *Config) { c.LLM.BaseURL, c.LLM.APIKey = "http://localhost:11434/v1", secret.Value{} },
		"a local model with a key":      func(c *Config) { c.LLM.BaseURL = "http://[::1]:8000/v1" },
		"a private model without a key": func(c *Config) { c.LLM.BaseURL, c.LLM.APIKey = "http://gpu:8000/v1", secret.Value{} },
		"clear text to this host":       func(c *Config) { c.Mail.TLS, c.Mail.Host, c.Mail.Port = "none", "127.0.0.1", 25 },
		"the inbox": func(c *Config) {
			c.Mail.Provider, c.Mail.InboxURL, c.Mail.TLS, c.Mail.Host = "inbox", "http://127.0.0.1:8025", "none", "localhost"
		},
		"a sign-in":            func(c *Config) { c.Mail.Username, c.Mail.Password = "u", secret.New("p") },
		"no ticket":            func(c *Config) { c.P4.Ticket = secret.Value{} },
		"a budget of one call": func(c *Config) { c.LLM.MaxTokensPerReview = 28_000 },
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := complete(t)
			change(c)
			if err := c.Check(allRoles...); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestUnknownRoleIsRefused(t *testing.T) {
	t.Parallel()
	err := complete(t).Check("notfiy")
	if err == nil || !strings.Contains(err.Error(), "role notfiy: is unknown: write some of [backend eval fetch llm notify operator preview redact retention rewrite starter workflows]") {
		t.Errorf("error is %v", err)
	}
	if err := complete(t).Check(); err != nil {
		t.Errorf("no role lacks something: %v", err)
	}
}

// Security 9.3.3: a configuration that is printed shows no secret.
func TestConfigPrintsNoSecret(t *testing.T) {
	t.Parallel()
	c := complete(t)
	for _, f := range fieldsOf(c) {
		if s, ok := f.secret(); ok {
			*s = secret.New("hunter2")
		}
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		for _, out := range []string{fmt.Sprintf(verb, c), fmt.Sprintf(verb, *c)} {
			if strings.Contains(out, "hunter2") || strings.Contains(out, fmt.Sprintf("%x", "hunter2")) {
				t.Errorf("%s shows a secret: %s", verb, out)
			}
		}
	}
}
