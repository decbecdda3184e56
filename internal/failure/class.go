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
	AttemptTimeout      Class = "ATTEMPT_TIMEOUT" // reported by Temporal: the worker was lost or too slow
	WorkerStopped       Class = "WORKER_STOPPED"  // the worker was stopped during the attempt
	RateLimited         Class = "RATE_LIMITED"
	ServerBusy          Class = "SERVER_BUSY"
	UpstreamInternal    Class = "UPSTREAM_INTERNAL"
	WriteConflict       Class = "WRITE_CONFLICT"
	DeliveryAmbiguous   Class = "DELIVERY_AMBIGUOUS"
	SchemaInvalid       Class = "SCHEMA_INVALID"
	InputInvalid        Class = "INPUT_INVALID"
	TooLarge            Class = "TOO_LARGE"
	PromptTruncated     Class = "PROMPT_TRUNCATED" // the model's endpoint did not read all that it was sent
	EndpointRefused     Class = "ENDPOINT_REFUSED" // the model's endpoint refused a request for a reason without a class
	AuthDenied          Class = "AUTH_DENIED"
	PermissionDenied    Class = "PERMISSION_DENIED"
	ArtifactForeign     Class = "ARTIFACT_FOREIGN" // a reference to an artifact of another review or namespace
	QuotaExhausted      Class = "QUOTA_EXHAUSTED"
	NotFound            Class = "NOT_FOUND"
	ArtifactExpired     Class = "ARTIFACT_EXPIRED"
	ContentPolicy       Class = "CONTENT_POLICY"
	PathNotAllowed      Class = "PATH_NOT_ALLOWED"
	RedactionBlocked    Class = "REDACTION_BLOCKED"
	RedactionOutdated   Class = "REDACTION_OUTDATED" // the change was redacted under other rules than those of the model stage
	RecipientRejected   Class = "RECIPIENT_REJECTED"
	AdapterUnsupported  Class = "ADAPTER_UNSUPPORTED" // no adapter has the protocol of a rewrite job
	ConfigInvalid       Class = "CONFIG_INVALID"
	ArtifactUnreadable  Class = "ARTIFACT_UNREADABLE" // a text of a rewrite job cannot be decrypted, and others can
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
	Hint      string // what to do before a replay
}

// Unknown is not retryable: repeating a side effect whose result is unknown cannot be
// undone. The dead letter keeps the work until the error has a class.
var descriptions = []Description{
	{NetworkTimeout, CategoryNetwork, ScopeEndpoint, true, "operator", "check that the endpoint answers from the worker's host, then replay"},
	{NetworkUnreachable, CategoryNetwork, ScopeEndpoint, true, "operator", "check DNS, routing and that the endpoint is up, then replay"},
	{UpstreamUnavailable, CategoryNetwork, ScopeEndpoint, true, "operator", "wait until the provider reports recovery, then replay"},
	{DatabaseUnavailable, CategoryNetwork, ScopeEndpoint, true, "operator", "restore Postgres, then replay"},
	{ReplicaBehind, CategoryNetwork, ScopeEndpoint, true, "operator", "check that the changelist number exists and that the replica catches up, then replay"},
	{AttemptTimeout, CategoryNetwork, ScopeEndpoint, true, "operator", "check the workers of this stage for crashes and hangs, then replay"},
	{WorkerStopped, CategoryNetwork, ScopeItem, true, "operator", "find out why workers of this stage are stopped so often, then replay"},
	{RateLimited, CategoryRateLimit, ScopeEndpoint, true, "operator", "lower the rate of the task queue or raise the provider's limit, then replay"},
	{ServerBusy, CategoryRateLimit, ScopeEndpoint, true, "operator", "wait for the end of the server's overload or maintenance, then replay"},
	{UpstreamInternal, CategoryUpstream, ScopeEndpoint, true, "operator", "wait until the provider reports recovery, then replay"},
	{WriteConflict, CategoryConflict, ScopeItem, true, "operator", "find the second writer of the same row, then replay"},
	{DeliveryAmbiguous, CategoryConflict, ScopeEndpoint, true, "operator", "check on the mail server whether the message was accepted, resolve the delivery, then replay"},
	{SchemaInvalid, CategoryValidation, ScopeEndpoint, false, "operator", "check the recorded answer, correct the model or schema setting, then replay"},
	{InputInvalid, CategoryValidation, ScopeItem, false, "caller", "correct the input and start again under a new key"},
	{TooLarge, CategoryValidation, ScopeItem, false, "operator", "raise the limit named in the message or exclude the file, then replay"},
	{PromptTruncated, CategoryValidation, ScopeEndpoint, false, "administrator", "raise the context length of the model's server (Ollama OLLAMA_CONTEXT_LENGTH, llama.cpp --ctx-size, vLLM --max-model-len, LM Studio Context Length) or set llm.context_tokens to it; criticizer doctor --model shows what the server reads; then replay"},
	{EndpointRefused, CategoryValidation, ScopeEndpoint, false, "operator", "find the refusal in the log of the model's endpoint by the status, code and request ID, correct the request's settings or the account, then replay"},
	{AuthDenied, CategoryAuth, ScopeEndpoint, false, "operator", "renew the credential (p4 ticket, API key, SMTP password), then replay"},
	{PermissionDenied, CategoryAuth, ScopeEndpoint, false, "administrator", "grant the account the permission named in the message, then replay"},
	{ArtifactForeign, CategoryAuth, ScopeItem, false, "administrator", "find out who writes to the Temporal namespace: a task named an artifact of another review"},
	{QuotaExhausted, CategoryAuth, ScopeEndpoint, false, "administrator", "restore the provider account's credit, then replay"},
	{NotFound, CategoryNotFound, ScopeItem, false, "caller", "check that the object named in the message exists; replay only if it does now"},
	{ArtifactExpired, CategoryNotFound, ScopeItem, false, "operator", "the stored input has expired; restart from the first stage"},
	{ContentPolicy, CategoryPolicy, ScopeItem, false, "operator", "the provider refused the content; review by hand or change the model"},
	{PathNotAllowed, CategoryPolicy, ScopeItem, false, "administrator", "add the path to the allow list if it may be reviewed, then replay"},
	{RedactionBlocked, CategoryPolicy, ScopeItem, false, "engineer", "redaction could not verify the text; correct the rule or policy, then replay"},
	{RedactionOutdated, CategoryPolicy, ScopeItem, false, "operator", "run the same build and the same redaction settings in the stages redact and llm, then replay"},
	{RecipientRejected, CategoryPolicy, ScopeItem, false, "operator", "correct or waive the recipient, or change mail.opt_out, mail.bots or mail.allowed_domains, then replay; after a change in Perforce or of mail.owners, replay with --full"},
	{AdapterUnsupported, CategoryConfigOrBug, ScopeItem, false, "caller", "route the job to an adapter of this build, and enqueue it under a new request"},
	{ConfigInvalid, CategoryConfigOrBug, ScopeEndpoint, false, "administrator", "correct the configuration named in the message, restart the worker, then replay"},
	{ArtifactUnreadable, CategoryConfigOrBug, ScopeItem, false, "administrator", "restore the key that was removed from the keyset and requeue the job; if a text was altered, find out who writes to the database, and enqueue it again"},
	{InvariantViolated, CategoryConfigOrBug, ScopeEndpoint, false, "engineer", "this is a bug; deploy a fix, then replay"},
	{Unknown, CategoryConfigOrBug, ScopeEndpoint, false, "engineer", "this error has no class; add one, then replay"},
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
