// Package failure classifies errors. The class of an error decides whether and when
// a stage is retried, and what the dead letter advises (processing 8).
//
// An adapter that knows the meaning of a p4 message, an HTTP status or an SMTP reply
// wraps it in an [Error]. No other code guesses the class later.
package failure

import (
	"errors"
	"slices"
)

// A Class identifies a kind of failure. Classes are wire format: they are stored,
// searched for and used in scripts. Add classes; do not rename or reuse one.
type Class string

// The classes, by category.
const (
	NetworkTimeout      Class = "NETWORK_TIMEOUT"
	NetworkUnreachable  Class = "NETWORK_UNREACHABLE"
	UpstreamUnavailable Class = "UPSTREAM_UNAVAILABLE"
	DatabaseUnavailable Class = "DATABASE_UNAVAILABLE"
	ReplicaBehind       Class = "REPLICA_BEHIND"
	AttemptTimeout      Class = "ATTEMPT_TIMEOUT"
	WorkerStopped       Class = "WORKER_STOPPED"
	RateLimited         Class = "RATE_LIMITED"
	ServerBusy          Class = "SERVER_BUSY"
	UpstreamInternal    Class = "UPSTREAM_INTERNAL"
	WriteConflict       Class = "WRITE_CONFLICT"
	DeliveryAmbiguous   Class = "DELIVERY_AMBIGUOUS"
	SchemaInvalid       Class = "SCHEMA_INVALID"
	InputInvalid        Class = "INPUT_INVALID"
	TooLarge            Class = "TOO_LARGE"
	PromptTruncated     Class = "PROMPT_TRUNCATED"
	EndpointRefused     Class = "ENDPOINT_REFUSED"
	AuthDenied          Class = "AUTH_DENIED"
	PermissionDenied    Class = "PERMISSION_DENIED"
	ArtifactForeign     Class = "ARTIFACT_FOREIGN"
	QuotaExhausted      Class = "QUOTA_EXHAUSTED"
	NotFound            Class = "NOT_FOUND"
	ArtifactExpired     Class = "ARTIFACT_EXPIRED"
	ContentPolicy       Class = "CONTENT_POLICY"
	PathNotAllowed      Class = "PATH_NOT_ALLOWED"
	RedactionBlocked    Class = "REDACTION_BLOCKED"
	RedactionOutdated   Class = "REDACTION_OUTDATED"
	RecipientRejected   Class = "RECIPIENT_REJECTED"
	AdapterUnsupported  Class = "ADAPTER_UNSUPPORTED"
	ConfigInvalid       Class = "CONFIG_INVALID"
	ArtifactUnreadable  Class = "ARTIFACT_UNREADABLE"
	InvariantViolated   Class = "INVARIANT_VIOLATED"
	Unknown             Class = "UNKNOWN"
)

// A Category groups classes with the same handling.
type Category string

// The categories.
const (
	CategoryNetwork     Category = "network transient"
	CategoryRateLimit   Category = "rate limiting"
	CategoryUpstream    Category = "upstream internal"
	CategoryConflict    Category = "idempotency or lock conflict"
	CategoryValidation  Category = "validation and schema"
	CategoryAuth        Category = "authentication and authorization"
	CategoryNotFound    Category = "not found"
	CategoryPolicy      Category = "content policy"
	CategoryConfigOrBug Category = "configuration or bug"
)

// A Scope states what a failure shows about the other reviews. The circuit breaker counts by
// scope (internal/breaker).
type Scope string

// The scopes. A class has ScopeItem only if its failures certainly come from the change, the
// recipient or the attempt: a class in doubt has ScopeEndpoint.
const (
	ScopeEndpoint Scope = "endpoint" // the next review would fail as well: the endpoint is down, or refuses this installation
	ScopeItem     Scope = "item"     // the next review need not fail
)

// A Description holds the handling of a class.
type Description struct {
	Class     Class
	Category  Category
	Scope     Scope
	Retryable bool
	Actor     string // who acts on the dead letter
	Meaning   string // what happened
	Hint      string // what to do before a replay
}

// Unknown is not retryable: repeating a side effect whose result is unknown cannot be
// undone. The dead letter keeps the work until the error has a class.
var descriptions = []Description{
	{NetworkTimeout, CategoryNetwork, ScopeEndpoint, true, "operator", "a server did not answer in time", "check that the endpoint answers from the worker's host, then replay"},
	{NetworkUnreachable, CategoryNetwork, ScopeEndpoint, true, "operator", "no connection to a server", "check DNS, routing and that the endpoint is up, then replay"},
	{UpstreamUnavailable, CategoryNetwork, ScopeEndpoint, true, "operator", "a server answered that it is not available", "wait until the server is back, then replay"},
	{DatabaseUnavailable, CategoryNetwork, ScopeEndpoint, true, "operator", "Postgres does not answer or ends the connection", "restore Postgres, then replay"},
	{ReplicaBehind, CategoryNetwork, ScopeEndpoint, true, "operator", "the Perforce replica does not have the changelist or shelf", "check that the changelist exists and that the replica catches up, then replay"},
	{AttemptTimeout, CategoryNetwork, ScopeEndpoint, true, "operator", "a worker died, hung or was too slow; there is no error chain", "read the log of the stage's workers, and check them for crashes and hangs, then replay"},
	{WorkerStopped, CategoryNetwork, ScopeItem, true, "operator", "the worker was stopped during the attempt", "find out why workers of this stage are stopped so often, then replay"},
	{RateLimited, CategoryRateLimit, ScopeEndpoint, true, "operator", "a server limits the number of requests", "lower worker.STAGE_per_second or raise the provider's limit, then replay"},
	{ServerBusy, CategoryRateLimit, ScopeEndpoint, true, "operator", "a server is overloaded or in maintenance", "wait for the end of the server's overload or maintenance, then replay"},
	{UpstreamInternal, CategoryUpstream, ScopeEndpoint, true, "operator", "a server reports an internal error", "wait until the provider reports recovery, then replay; report a review that fails again with its request ID"},
	{WriteConflict, CategoryConflict, ScopeItem, true, "operator", "two transactions wrote the same row", "find the second writer, such as a second installation on the same database, then replay"},
	{DeliveryAmbiguous, CategoryConflict, ScopeEndpoint, true, "operator", "a mail or post may have been accepted, and no evidence source can tell", "find out at the mail server or the channel whether the message arrived, waive or resend its delivery, then replay; to list the deliveries in doubt: criticizer delivery list --status held"},
	{SchemaInvalid, CategoryValidation, ScopeEndpoint, false, "operator", "the model's answer does not have the required form", "read the answer with the command in the error; use a model that keeps to the schema, then replay; to measure a model: criticizer eval"},
	{InputInvalid, CategoryValidation, ScopeItem, false, "caller", "the request is wrong", "correct the input, start again under a new key, and resolve the dead letter"},
	{TooLarge, CategoryValidation, ScopeItem, false, "operator", "a prompt, an answer or a Perforce command is over a limit", "raise the limit that the message names or exclude the file, then replay"},
	{PromptTruncated, CategoryValidation, ScopeEndpoint, false, "administrator", "the model's server did not read the whole prompt", "raise the context length of the model's server (Ollama OLLAMA_CONTEXT_LENGTH, llama.cpp --ctx-size, vLLM --max-model-len, LM Studio Context Length) or set llm.context_tokens to it, then replay; to see what the server reads: criticizer doctor --model"},
	{EndpointRefused, CategoryValidation, ScopeEndpoint, false, "operator", "the model's server refused the request for a reason without a class", "find the refusal in the log of the model's endpoint by the status, code and request ID, correct the request's settings or the account, then replay"},
	{AuthDenied, CategoryAuth, ScopeEndpoint, false, "operator", "a credential was refused", "renew the credential (p4 ticket, API key, SMTP password), then replay"},
	{PermissionDenied, CategoryAuth, ScopeEndpoint, false, "administrator", "the account may not do this", "grant the account the permission named in the message, then replay"},
	{ArtifactForeign, CategoryAuth, ScopeItem, false, "administrator", "a task named the stored data of another review", "do not replay: find out who writes to the Temporal namespace"},
	{QuotaExhausted, CategoryAuth, ScopeEndpoint, false, "administrator", "the account has no credit or quota left", "restore the provider account's credit, then replay"},
	{NotFound, CategoryNotFound, ScopeItem, false, "caller", "an object that the message names does not exist", "check that the object exists; replay only if it does, else resolve the dead letter"},
	{ArtifactExpired, CategoryNotFound, ScopeItem, false, "operator", "the stored input is older than its time to live", "replay with --full, which reads the change again"},
	{ContentPolicy, CategoryPolicy, ScopeItem, false, "operator", "the model's provider refused the content", "review by hand and resolve the dead letter, or change the model and replay"},
	{PathNotAllowed, CategoryPolicy, ScopeItem, false, "administrator", "a path is outside of the allow list", "add the path to the allow list if it may be reviewed, then replay"},
	{RedactionBlocked, CategoryPolicy, ScopeItem, false, "engineer", "redaction cannot verify the text", "correct the rule or policy, then replay"},
	{RedactionOutdated, CategoryPolicy, ScopeItem, false, "operator", "the change was redacted by another build or under other settings than those of stage llm", "run the same build and the same redaction settings in the stages redact and llm, then replay"},
	{RecipientRejected, CategoryPolicy, ScopeItem, false, "operator", "a recipient was refused, or nobody is left to notify", "correct or waive the recipient, or change mail.opt_out, mail.bots or mail.allowed_domains, then replay; after a change in Perforce or of mail.owners, replay with --full"},
	{AdapterUnsupported, CategoryConfigOrBug, ScopeItem, false, "caller", "no adapter has the protocol of a rewrite job", "route the job to an adapter of this build, and enqueue it under a new request"},
	{ConfigInvalid, CategoryConfigOrBug, ScopeEndpoint, false, "administrator", "a setting is wrong", "correct the configuration named in the message, restart the worker, then replay"},
	{ArtifactUnreadable, CategoryConfigOrBug, ScopeItem, false, "administrator", "the text of a rewrite job cannot be decrypted", "restore the key that was removed from the keyset and requeue the job; if a text was altered, find out who writes to the database, and enqueue it again"},
	{InvariantViolated, CategoryConfigOrBug, ScopeEndpoint, false, "engineer", "a bug or a panic; the error chain ends with the stack", "deploy a fix that was tested in staging, then replay"},
	{Unknown, CategoryConfigOrBug, ScopeEndpoint, false, "engineer", "an error without a class: a bug", "deploy a build in which the error has a class, then replay"},
}

// Descriptions returns the descriptions of all classes.
func Descriptions() []Description { return slices.Clone(descriptions) }

// Describe returns the description of c; an unknown class has the description of Unknown.
func (c Class) Describe() Description {
	for _, d := range descriptions {
		if d.Class == c {
			return d
		}
	}
	return Unknown.Describe()
}

// Retryable reports whether errors of the class are retried automatically.
func (c Class) Retryable() bool { return c.Describe().Retryable }

// ScopeOf returns the scope of err, which may be nil: success says nothing about an endpoint's
// failures.
func ScopeOf(err error) Scope {
	if err == nil {
		return ScopeItem
	}
	if e, ok := errors.AsType[*Error](err); ok && e.Final { // it waits for a person
		return ScopeItem
	}
	return ClassOf(err).Describe().Scope
}
