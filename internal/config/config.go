// Package config is the one configuration: a YAML file, the environment over
// it, and secrets from the environment only (security 9.3). The struct tree
// below is its single description: the tags give the names and defaults, the
// comments the meaning, and docs/configuration.md is generated from both.
//
// Load reads; Check says what a process of a given role still lacks.
package config

import (
	"log/slog"
	"time"

	"github.com/criticizer/criticizer/internal/secret"
)

// DefaultPath is read when neither -config nor CRITICIZER_CONFIG names a file.
// It is the only path that need not exist.
const DefaultPath = "/etc/criticizer/criticizer.yaml"

// A Config is the whole configuration. Its sections are plain values: mains
// translate them into the small Config of each adapter.
type Config struct {
	// Name of the Perforce server in idempotency keys. Keep it: what was reviewed
	// under another name in the same database is refused.
	ServerID  string    `yaml:"server_id" default:"p4"`
	Temporal  Temporal  `yaml:"temporal"`
	Starter   Starter   `yaml:"starter"`
	Database  Database  `yaml:"database"`
	P4        P4        `yaml:"p4"`
	Skip      Skip      `yaml:"skip"`
	Shelf     Shelf     `yaml:"shelf"`
	Selection Selection `yaml:"selection"`
	LLM       LLM       `yaml:"llm"`
	Redaction Redaction `yaml:"redaction"`
	Artifacts Artifacts `yaml:"artifacts"`
	Mail      Mail      `yaml:"mail"`
	Webhook   Webhook   `yaml:"webhook"`
	Swarm     Swarm     `yaml:"swarm"`
	Feedback  Feedback  `yaml:"feedback"`
	OnCall    OnCall    `yaml:"oncall"`
	Rewrite   Rewrite   `yaml:"rewrite"`
	Worker    Worker    `yaml:"worker"`
	Breaker   Breaker   `yaml:"breaker"`
	Log       Log       `yaml:"log"`
}

// Temporal says where workflows run.
type Temporal struct {
	// Host and port of the Temporal frontend.
	Address string `yaml:"address" default:"127.0.0.1:7233"`
	// Temporal namespace.
	Namespace string `yaml:"namespace" default:"criticizer"`
	// Whether the connection is encrypted. Required with an API key.
	TLS bool `yaml:"tls" default:"false"`
	// API key of the namespace. Unset for a server that wants none.
	APIKey secret.Value `yaml:"api_key" env:"CRITICIZER_TEMPORAL_API_KEY"`
}

// Starter says what a trigger does while Temporal cannot be reached
// (docs/trigger.md).
type Starter struct {
	// Directory of the reviews that are to be started later. Only the account
	// that runs the trigger needs to enter it.
	SpoolDir string `yaml:"spool_dir" default:"/var/lib/criticizer/spool"`
	// Most reviews that are kept there.
	SpoolLimit int `yaml:"spool_limit" default:"10000"`
}

// Database says where jobs, deliveries and artifacts are kept.
type Database struct {
	// Postgres URL, with the role of this process: each stage has its own. The
	// whole URL is a secret, for it holds the password.
	URL secret.Value `yaml:"url" env:"CRITICIZER_DATABASE_URL"`
}

// P4 says which Perforce server is read, and how much of a change.
type P4 struct {
	// The p4 command: an absolute path, or a name looked up in PATH.
	Command string `yaml:"command" default:"p4"`
	// Server address as in P4PORT, such as ssl:perforce:1666.
	Port string `yaml:"port"`
	// Account that reads changes. Read permission on the allowed paths is enough.
	User string `yaml:"user"`
	// P4CHARSET, for a server in unicode mode.
	Charset string `yaml:"charset"`
	// What may be reviewed, such as //depot/project/... (security 9.1). Nothing
	// is allowed that is not listed.
	AllowedPaths []string `yaml:"allowed_paths"`
	// What may not be reviewed although it is allowed.
	EmbargoedPaths []string `yaml:"embargoed_paths"`
	// What becomes of a change of which only some files may be reviewed:
	// deny_whole reads nothing of it, review_allowed_only the rest; the report
	// then names what was left out.
	MixedChanges string `yaml:"mixed_changes" default:"deny_whole"`
	// Limit of one p4 command.
	Timeout time.Duration `yaml:"timeout" default:"60s"`
	// Files of a change that are read; the rest is reported as not reviewed.
	MaxFiles int `yaml:"max_files" default:"2000"`
	// Largest file that is read.
	MaxFileBytes Size `yaml:"max_file_bytes" default:"1MB"`
	// Sum of the files of a change that are read.
	MaxChangeBytes Size `yaml:"max_change_bytes" default:"20MB"`
	// Unchanged lines the model is shown around a change.
	ContextLines int `yaml:"context_lines" default:"10"`
	// How often the server is asked for changelists that no trigger told of
	// (docs/trigger.md). 0: never.
	CatchUpEvery time.Duration `yaml:"catch_up_every" default:"10m"`
	// Private directory for what p4 keeps: tickets and server fingerprints.
	StateDir string `yaml:"state_dir" default:"/var/lib/criticizer/p4"`
	// Ticket of the account. Unset if the account needs none or the file
	// p4tickets in the state directory holds one.
	Ticket secret.Value `yaml:"ticket" env:"CRITICIZER_P4_TICKET"`
}

// Skip says which changes are not reviewed at all (docs/selection.md). Their content
// is not read, and nobody is told.
type Skip struct {
	// p4 users whose changes are skipped; * stands for anything, as in build-*.
	Users []string `yaml:"users"`
	// Clients (workspaces) whose changes are skipped, written like users.
	Clients []string `yaml:"clients"`
	// Trees such as //depot/generated/... and files: a change is skipped if all
	// its files are in them.
	Paths []string `yaml:"paths"`
	// Words of a description by which a change is skipped.
	DescriptionTags []string `yaml:"description_tags" default:"#noreview"`
}

// Shelf says when a shelf is reviewed (docs/trigger.md). The starter reads it.
type Shelf struct {
	// How long a changelist must not have been shelved again before its shelf is
	// reviewed. One that never settles is reviewed after ten times that.
	Quiet time.Duration `yaml:"quiet" default:"1m"`
}

// Selection says which of the files that may be read are worth a review
// (docs/selection.md). Patterns are globs, such as //depot/project/legacy/** or
// *.pb.go, of which those without // are about the ends of paths.
type Selection struct {
	// What is not reviewed, besides what is vendored, locked or generated.
	Exclude []string `yaml:"exclude"`
	// What is reviewed although it looks vendored, locked or generated. It
	// brings back no file that may hold secrets: those are never read.
	Include []string `yaml:"include"`
}

// LLM says which model reviews, and how much it may cost.
type LLM struct {
	// OpenAI-compatible endpoint. A plain http endpoint on another host is used
	// without a key.
	BaseURL string `yaml:"base_url" default:"https://api.openai.com/v1"`
	// Model name, as the endpoint knows it.
	Model string `yaml:"model"`
	// Models of the same endpoint that are asked, in this order, where the one
	// before cannot answer. The report names them.
	FallbackModels []string `yaml:"fallback_models"`
	// How the endpoint is told to shape its answer: json_schema, json_object or
	// text. The answer is checked against the same schema whichever it is, and a
	// model that refuses one is asked in the next.
	AnswerFormat string `yaml:"answer_format" default:"json_schema"`
	// Limit of one model call.
	Timeout time.Duration `yaml:"timeout" default:"120s"`
	// Size of one prompt; a larger change takes several calls.
	MaxPromptTokens int `yaml:"max_prompt_tokens" default:"24000"`
	// Size of one answer, the thinking of a reasoning model included.
	MaxAnswerTokens int `yaml:"max_answer_tokens" default:"4000"`
	// Budget of one review; what does not fit is reported as not reviewed.
	// Failed attempts and repeated calls count.
	MaxTokensPerReview int `yaml:"max_tokens_per_review" default:"200000"`
	// Budget of a day (UTC), of all workers together; what does not fit is
	// reported as not reviewed. 0: no limit.
	MaxTokensPerDay int `yaml:"max_tokens_per_day" default:"0"`
	// Price of a million tokens of prompts. The report tells what a review cost if
	// all that it used has a price. 0: not known.
	PricePerMillionPrompt float64 `yaml:"price_per_million_prompt" default:"0"`
	// Price of those that come from the provider's cache.
	PricePerMillionCached float64 `yaml:"price_per_million_cached" default:"0"`
	// Price of a million tokens of answers.
	PricePerMillionCompletion float64 `yaml:"price_per_million_completion" default:"0"`
	// Currency of the prices.
	PriceCurrency string `yaml:"price_currency" default:"USD"`
	// Least severity that is reported: low, medium, high or critical
	// (docs/findings.md).
	MinSeverity string `yaml:"min_severity" default:"low"`
	// Whether findings of maintainability that are of severity low are reported.
	Nitpicks bool `yaml:"nitpicks" default:"false"`
	// Most findings of one review; the worst are kept.
	MaxFindings int `yaml:"max_findings" default:"20"`
	// Whether a second call tries to refute the findings: off, on, or the least
	// severity of those it is made for. It costs tokens and removes some noise.
	Falsify string `yaml:"falsify" default:"off"`
	// Files, and directories of files that end in .rules, that say what to look
	// for in files of a kind. They come before the shipped ones (docs/rules.md).
	Rules []string `yaml:"rules"`
	// Language in which findings are written.
	Language string `yaml:"language" default:"English"`
	// Model calls of one review at a time.
	Concurrency int `yaml:"concurrency" default:"2"`
	// API key of the endpoint. Unset for a server on this host that wants none.
	APIKey secret.Value `yaml:"api_key" env:"OPENAI_API_KEY"`
	// The key before it, tried where the endpoint does not accept the new one:
	// for the time of a rotation.
	APIKeyOld secret.Value `yaml:"api_key_old" env:"OPENAI_API_KEY_OLD"`
}

// Redaction says what is masked besides secrets, which always are.
type Redaction struct {
	// Whether mail addresses are masked before the model sees them.
	Emails bool `yaml:"emails" default:"false"`
	// Internal domains, such as corp.example.com, whose host names are masked.
	HostSuffixes []string `yaml:"host_suffixes"`
	// Whether private network addresses are masked.
	InternalIPs bool `yaml:"internal_ips" default:"false"`
	// Key of the placeholders' tags and of the seal on redacted changes: 16 or
	// more random bytes, the same for the stages redact and llm.
	Key secret.Value `yaml:"key" env:"CRITICIZER_REDACTION_KEY"`
}

// Artifacts says how long stored bytes are kept (security 9.4).
type Artifacts struct {
	// Life of raw diffs; at most 168h.
	RawTTL time.Duration `yaml:"raw_ttl" default:"168h"`
	// Life of redacted diffs and model answers; at most 720h.
	RedactedTTL time.Duration `yaml:"redacted_ttl" default:"720h"`
	// Life of reports; at most 720h.
	ReportTTL time.Duration `yaml:"report_ttl" default:"720h"`
	// Tink keyset that encrypts artifacts; holding two keys, it rotates.
	Keyset secret.Value `yaml:"keyset" env:"CRITICIZER_ARTIFACT_KEYSET"`
}

// Mail says whether, how and to whom reports are sent.
type Mail struct {
	// smtp sends through a mail server, resend through the API of resend.com,
	// inbox to the embedded server of devstack. There is no default: a new
	// installation sends nothing until told to.
	Provider string `yaml:"provider"`
	// Mail server.
	Host string `yaml:"host"`
	// Its port: 587 for mandatory, usually 465 for implicit TLS.
	Port int `yaml:"port" default:"587"`
	// mandatory (STARTTLS or nothing is sent), implicit (TLS from the first
	// byte), or none, which only a server on this host may have.
	TLS string `yaml:"tls" default:"mandatory"`
	// Sender: an address, or a name with the address in angle brackets behind it.
	From string `yaml:"from"`
	// End of every Message-ID, at most 20 characters. Empty: the domain of from.
	// Change it only while no delivery is open: it hides earlier attempts.
	MessageIDDomain string `yaml:"message_id_domain"`
	// Account at the mail server. Empty: no sign-in.
	Username string `yaml:"username"`
	// File that holds an OAuth2 access token of the account, in place of a
	// password. It is read for every connection: renew the token there.
	TokenFile string `yaml:"token_file"`
	// Where the embedded inbox answers, such as http://127.0.0.1:8025.
	InboxURL string `yaml:"inbox_url"`
	// Who gets a mail without findings: author, everyone or nobody.
	CleanTo string `yaml:"clean_to" default:"author"`
	// Most recipients of one review.
	MaxRecipients int `yaml:"max_recipients" default:"50"`
	// Who is told of changes to which paths, besides author and subscribers, each
	// entry a path with p4's wildcards and addresses behind it, such as
	// //depot/db/....sql dba@example.com. A path with blanks is put in double
	// quotes. The fetch stage reads it.
	Owners []string `yaml:"owners"`
	// Who is never told: mail addresses or p4 users.
	OptOut []string `yaml:"opt_out"`
	// Accounts that are no people: p4 users or mail addresses, in which * stands
	// for anything, such as build-*. Their changes are reviewed when no person's
	// waits; the fetch stage reads it.
	Bots []string `yaml:"bots"`
	// How often deliveries are compared with the mail server's records.
	ReconcileEvery time.Duration `yaml:"reconcile_every" default:"15m"`
	// Password of the account. Required with a username, unless there is a token.
	Password secret.Value `yaml:"password" env:"CRITICIZER_SMTP_PASSWORD"`
	// The password before it, tried where the mail server does not accept the new
	// one: for the time of a rotation.
	PasswordOld secret.Value `yaml:"password_old" env:"CRITICIZER_SMTP_PASSWORD_OLD"`
	// API that provider resend talks to.
	ResendURL string `yaml:"resend_url" default:"https://api.resend.com"`
	// Key of that API.
	ResendAPIKey secret.Value `yaml:"resend_api_key" env:"CRITICIZER_RESEND_API_KEY"`
	// Log of the mail server, a Postfix on this host, that tells what it
	// accepted; the file rotated last, FILE.1, is read too. Empty: not read.
	MTALog string `yaml:"mta_log"`
	// How long after the begin of an attempt absence from journal and log proves
	// nothing, because the server may still be at work on it.
	Settle time.Duration `yaml:"settle" default:"10m"`
	// What becomes of a message that may have been sent when neither journal nor
	// log can ever tell: hold it for an operator, or resend it.
	OnAmbiguous string      `yaml:"on_ambiguous" default:"hold"`
	Journal     MailJournal `yaml:"journal"`
	Bounces     MailBounces `yaml:"bounces"`
}

// MailJournal says where, by IMAP, the mail server leaves a copy of every
// message it accepts.
type MailJournal struct {
	// IMAP server. Empty: there is no journal.
	Host string `yaml:"host"`
	// Its port: 143 for mandatory, usually 993 for implicit TLS.
	Port int `yaml:"port" default:"143"`
	// As mail.tls.
	TLS string `yaml:"tls" default:"mandatory"`
	// Account that may read it.
	Username string `yaml:"username"`
	// File that holds an OAuth2 access token of the account, in place of a password,
	// as mail.token_file.
	TokenFile string `yaml:"token_file"`
	// Its mailbox. Messages must stay there for 30 days.
	Mailbox string `yaml:"mailbox" default:"INBOX"`
	// Password of the account.
	Password secret.Value `yaml:"password" env:"CRITICIZER_JOURNAL_PASSWORD"`
}

// MailBounces says where, by IMAP, mail to the sender arrives: what comes back
// could not be delivered.
type MailBounces struct {
	// IMAP server. Empty: bounces are not read.
	Host string `yaml:"host"`
	// Its port: 143 for mandatory, usually 993 for implicit TLS.
	Port int `yaml:"port" default:"143"`
	// As mail.tls.
	TLS string `yaml:"tls" default:"mandatory"`
	// Account that may read it.
	Username string `yaml:"username"`
	// File that holds an OAuth2 access token of the account, in place of a password,
	// as mail.token_file.
	TokenFile string `yaml:"token_file"`
	// Its mailbox. Messages must stay there for 30 days.
	Mailbox string `yaml:"mailbox" default:"INBOX"`
	// Password of the account.
	Password secret.Value `yaml:"password" env:"CRITICIZER_BOUNCES_PASSWORD"`
}

// Webhook says whether each review is also posted to one place, such as a channel
// of Slack, in the form that Slack takes (docs/outputs.md).
type Webhook struct {
	// Whether reviews without findings are posted too.
	Clean bool `yaml:"clean" default:"false"`
	// What becomes of a message that may have been taken, for nobody can be asked:
	// hold it for an operator, or resend it.
	OnAmbiguous string `yaml:"on_ambiguous" default:"hold"`
	// URL that is posted to. The whole URL is a secret, for it is all that it takes
	// to post. Unset: nothing is posted.
	URL secret.Value `yaml:"url" env:"CRITICIZER_WEBHOOK_URL"`
}

// Swarm says whether each review is also told to P4 Code Review (Swarm), as one
// comment and one test run (docs/outputs.md).
type Swarm struct {
	// Address of the server. Empty: nothing is told.
	URL string `yaml:"url"`
	// Account that comments.
	User string `yaml:"user"`
	// Name of the test run, which only a review without findings passes. Empty: none.
	Test string `yaml:"test" default:"criticizer"`
	// Ticket of the account, valid on all hosts (p4 login -a -p).
	Ticket secret.Value `yaml:"ticket" env:"CRITICIZER_SWARM_TICKET"`
}

// Feedback says where readers can answer a finding by a link in the mail. Without
// one there is the command criticizer feedback (docs/feedback.md).
type Feedback struct {
	// Mail address that the links write to, with the answer in the subject.
	Address string `yaml:"address"`
	// Page that the links open, in place of the address: the parameters token and
	// opinion are added.
	URL string `yaml:"url"`
}

// OnCall says who is called at once when a replay fails again for the same
// reason, when a bug or a bad configuration dead-letters a review, or, once, when a
// refused credential or used-up credit does. Pages wait until one of the two is
// set; if both are, both are told.
type OnCall struct {
	// Mail address that is told, through the server of section mail.
	Address string `yaml:"address"`
	// URL that is sent each page as JSON. The whole URL is a secret, for most
	// hold a token.
	WebhookURL secret.Value `yaml:"webhook_url" env:"CRITICIZER_ONCALL_WEBHOOK_URL"`
}

// Rewrite says who may be asked to rewrite messages (docs/rewrite.md). A job
// names its provider, and is refused if it names another URL than is written here.
type Rewrite struct {
	// Limit of one call of a provider.
	Timeout time.Duration `yaml:"timeout" default:"120s"`
	// Size of one answer, the thinking of a reasoning model included.
	MaxAnswerTokens int           `yaml:"max_answer_tokens" default:"4000"`
	Run             RewriteRun    `yaml:"run"`
	Batch           RewriteBatch  `yaml:"batch"`
	Route           RewriteRoute  `yaml:"route"`
	OpenAI          RewriteOpenAI `yaml:"openai"`
	Google          RewriteGoogle `yaml:"google"`
	Other           RewriteOther  `yaml:"other"`
}

// RewriteRun says how much one run of a worker of the rewrite queue may do, and
// how often each worker runs. What is 0 or empty is as the profile has it.
type RewriteRun struct {
	// Defaults of the fields below: dev, stage or prod (docs/rewrite.md).
	Profile string `yaml:"profile" default:"prod"`
	// Jobs that one run claims; the rest waits for the next.
	MaxJobsPerRun int `yaml:"max_jobs_per_run" default:"0"`
	// Seconds after which a run begins no more work.
	MaxRuntimeSeconds int `yaml:"max_runtime_seconds" default:"0"`
	// Seconds after which a claim is stale and its job is queued again. More than
	// max_runtime_seconds.
	ClaimTimeoutSeconds int `yaml:"claim_timeout_seconds" default:"0"`
	// Seconds that a job waits after its first failed attempt, its second, and so
	// on; the last goes for all that follow.
	RetryBackoffSeconds []int `yaml:"retry_backoff_seconds"`
	// How often the async lane runs.
	AsyncEvery time.Duration `yaml:"async_every" default:"0s"`
	// How often batches are submitted.
	SubmitEvery time.Duration `yaml:"submit_every" default:"15m"`
	// How often the results of batches are collected.
	CollectEvery time.Duration `yaml:"collect_every" default:"30m"`
	// Jobs of the async lane that a worker executes at a time.
	Concurrency int `yaml:"concurrency" default:"4"`
}

// RewriteBatch bounds the batches of the rewrite queue. The defaults are what
// OpenAI accepts in one file.
type RewriteBatch struct {
	// Requests in one batch.
	MaxRequests int `yaml:"max_requests" default:"50000"`
	// Size of one input file.
	MaxBytes Size `yaml:"max_bytes" default:"200MB"`
	// Tokens of a model's batches that may be at the provider at a time; the limit
	// of the account.
	MaxEnqueuedTokens int `yaml:"max_enqueued_tokens" default:"2000000"`
	// For how long a batch is one worker's to submit or to collect. A batch of
	// which it is not known whether the provider has it is looked for after it.
	Lease time.Duration `yaml:"lease" default:"10m"`
	// How long a batch may be at the provider before it is canceled there.
	Timeout time.Duration `yaml:"timeout" default:"30h"`
}

// RewriteRoute is the routing decision of jobs that were enqueued without one.
type RewriteRoute struct {
	// Provider: openai, google or other.
	Provider string `yaml:"provider" default:"openai"`
	// Protocol: openai_responses, openai_chat or gemini_generate.
	AdapterKind string `yaml:"adapter_kind" default:"openai_responses"`
	// Model that rewrites.
	Model string `yaml:"model"`
	// Model that rewrites with strength full_reframe. Empty: the same.
	FullReframeModel string `yaml:"full_reframe_model"`
	// Version of the prompts.
	PromptVersion string `yaml:"prompt_version" default:"v1"`
	// Version of the policy under which messages are rewritten, for the record.
	PolicyVersion string `yaml:"policy_version" default:"v1"`
	// batch: many jobs at a time, at half the price, within a day. async: one call
	// for each job.
	ExecutionMode string `yaml:"execution_mode" default:"batch"`
}

// RewriteOpenAI says how provider openai is reached, which has the adapters
// openai_responses and openai_chat.
type RewriteOpenAI struct {
	// Where its API begins. Empty: the provider is not used.
	BaseURL string `yaml:"base_url" default:"https://api.openai.com/v1"`
	// API key of the provider. That of reviews is not used.
	APIKey secret.Value `yaml:"api_key" env:"CRITICIZER_REWRITE_OPENAI_API_KEY"`
	// The key before it, for the time of a rotation.
	APIKeyOld secret.Value `yaml:"api_key_old" env:"CRITICIZER_REWRITE_OPENAI_API_KEY_OLD"`
}

// RewriteGoogle says how provider google is reached, which has the adapter
// gemini_generate.
type RewriteGoogle struct {
	// Where its API begins. Empty: the provider is not used.
	BaseURL string `yaml:"base_url" default:"https://generativelanguage.googleapis.com/v1beta"`
	// API key of the provider.
	APIKey secret.Value `yaml:"api_key" env:"CRITICIZER_REWRITE_GOOGLE_API_KEY"`
}

// RewriteOther says how provider other is reached, a server that speaks as
// OpenAI does, with the adapters openai_responses and openai_chat.
type RewriteOther struct {
	// Where its API begins. Empty: the provider is not used.
	BaseURL string `yaml:"base_url"`
	// Whether it has the batch API, which servers of one's own seldom have.
	Batches bool `yaml:"batches" default:"false"`
	// API key of the provider. Unset for a server that wants none.
	APIKey secret.Value `yaml:"api_key" env:"CRITICIZER_REWRITE_OTHER_API_KEY"`
}

// Worker says how fast workers work, all of them together, so that a provider's
// limit is kept instead of met, and how they stop.
type Worker struct {
	// Fetches begun per second. 0: no limit.
	FetchPerSecond float64 `yaml:"fetch_per_second" default:"0"`
	// Reviews handed to the model per second. 0: no limit.
	LLMPerSecond float64 `yaml:"llm_per_second" default:"0"`
	// Reviews mailed per second. 0: no limit.
	NotifyPerSecond float64 `yaml:"notify_per_second" default:"0"`
	// How many reviews of changes to which paths may be in flight at a time, from
	// before redaction until they end; each entry a path with p4's wildcards and a
	// number behind it, such as //depot/main/... 4. A path with blanks is put in
	// double quotes. A change to several of the paths needs a slot of each. The
	// stages fetch and workflows read it (docs/scaling.md). Empty: no limit.
	MaxInFlightPerPath []string `yaml:"max_in_flight_per_path"`
	// How long a worker that is told to stop lets its attempts go on; then it
	// ends them, and other workers repeat them. What stops the worker must wait 5
	// seconds longer.
	StopGrace time.Duration `yaml:"stop_grace" default:"20s"`
	// Worker deployment that the workers of stages with workflows belong to: they
	// then get reviews when their build is made the current version of it
	// (docs/upgrade.md). Empty: workers are not versioned.
	Deployment string `yaml:"deployment"`
	// Version within the deployment. Empty: the commit that the worker was built
	// from.
	BuildID string `yaml:"build_id"`
	// Address that answers /metrics, /healthz and /readyz, such as 127.0.0.1:9464
	// (docs/observability.md). Each worker on a host needs one of its own. Empty:
	// none is answered.
	Listen string `yaml:"listen"`
}

// Breaker says when the task queue of a stage is stopped because what the stage
// talks to fails for everyone (docs/breaker.md). Each worker goes by what it sees.
type Breaker struct {
	// Whether workers leave it to people to breaker.
	ByHandOnly bool `yaml:"by_hand_only" default:"false"`
	// Failures in a row, over all reviews, that make an outage.
	Failures int `yaml:"failures" default:"4"`
	// Reviews that must be among them: one that fails alone is dead-lettered, unless nobody answers (docs/breaker.md).
	Reviews int `yaml:"reviews" default:"2"`
	// Whether refused credentials and used-up quota are no outage. Otherwise they
	// are one as soon as so many reviews met them.
	IgnoreDenied bool `yaml:"ignore_denied" default:"false"`
}

// Log says what is logged, and how.
type Log struct {
	// Least level that is logged: debug, info, warn or error.
	Level slog.Level `yaml:"level" default:"info"`
	// text for people, json for machines, auto: text on a terminal, else json.
	Format string `yaml:"format" default:"auto"`
}
