// Package failure names what can go wrong, says which of it may be retried and
// when, and shapes the dead letter (criticizer-processing 8).
//
// An error gets its class where it is born: an adapter that knows what a p4
// message, an HTTP status or an SMTP reply means wraps it in an [Error]. Nobody
// guesses later.
package failure

// A Class is a stable identifier of a kind of failure. Classes are wire
// format: they are stored, searched for and scripted against. Add, never
// rename or reuse.
type Class string

// The classes, in the order of the rows of criticizer-processing 8.1.
const (
	NetworkTimeout      Class = "NETWORK_TIMEOUT"
	NetworkUnreachable  Class = "NETWORK_UNREACHABLE"
	UpstreamUnavailable Class = "UPSTREAM_UNAVAILABLE"
	DatabaseUnavailable Class = "DATABASE_UNAVAILABLE"
	ReplicaBehind       Class = "REPLICA_BEHIND"
	AttemptTimeout      Class = "ATTEMPT_TIMEOUT" // declared by Temporal: worker lost, or too slow
	WorkerStopped       Class = "WORKER_STOPPED"  // told to stop in the middle of the attempt
	RateLimited         Class = "RATE_LIMITED"
	ServerBusy          Class = "SERVER_BUSY"
	UpstreamInternal    Class = "UPSTREAM_INTERNAL"
	WriteConflict       Class = "WRITE_CONFLICT"
	DeliveryAmbiguous   Class = "DELIVERY_AMBIGUOUS"
	SchemaInvalid       Class = "SCHEMA_INVALID"
	InputInvalid        Class = "INPUT_INVALID"
	TooLarge            Class = "TOO_LARGE"
	AuthDenied          Class = "AUTH_DENIED"
	PermissionDenied    Class = "PERMISSION_DENIED"
	QuotaExhausted      Class = "QUOTA_EXHAUSTED"
	NotFound            Class = "NOT_FOUND"
	ArtifactExpired     Class = "ARTIFACT_EXPIRED"
	ContentPolicy       Class = "CONTENT_POLICY"
	PathNotAllowed      Class = "PATH_NOT_ALLOWED"
	RedactionBlocked    Class = "REDACTION_BLOCKED"
	RecipientRejected   Class = "RECIPIENT_REJECTED"
	AdapterUnsupported  Class = "ADAPTER_UNSUPPORTED" // of a rewrite job: nobody speaks the protocol it asks for
	ConfigInvalid       Class = "CONFIG_INVALID"
	InvariantViolated   Class = "INVARIANT_VIOLATED"
	Unknown             Class = "UNKNOWN"
)

// A Category is a row of the table in criticizer-processing 8.1.
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

// A Description is what is known about every error of a class.
type Description struct {
	Class     Class
	Category  Category
	Retryable bool
	Actor     string // who has to act when attempts are exhausted
	Hint      string // what that person should do before a replay
}

// Unknown is not retryable: an error nobody classified is a bug of ours until
// shown otherwise, and repeating a side effect of unknown state is the one
// thing that cannot be undone. The dead letter keeps the work; a class for the
// error is the fix.
var descriptions = []Description{
	{NetworkTimeout, CategoryNetwork, true, "operator", "check that the endpoint answers from the worker's host, then replay"},
	{NetworkUnreachable, CategoryNetwork, true, "operator", "check DNS, routing and that the endpoint is up, then replay"},
	{UpstreamUnavailable, CategoryNetwork, true, "operator", "wait until the provider reports recovery, then replay"},
	{DatabaseUnavailable, CategoryNetwork, true, "operator", "bring Postgres back, then replay"},
	{ReplicaBehind, CategoryNetwork, true, "operator", "check that the changelist number exists and that the replica catches up, then replay"},
	{AttemptTimeout, CategoryNetwork, true, "operator", "look for workers that died or hang in this stage, then replay"},
	{WorkerStopped, CategoryNetwork, true, "operator", "find out why workers of this stage are stopped again and again, then replay"},
	{RateLimited, CategoryRateLimit, true, "operator", "lower the rate of the task queue or raise the provider's limit, then replay"},
	{ServerBusy, CategoryRateLimit, true, "operator", "wait until the server's load or maintenance is over, then replay"},
	{UpstreamInternal, CategoryUpstream, true, "operator", "wait until the provider reports recovery, then replay"},
	{WriteConflict, CategoryConflict, true, "operator", "look for a second writer of the same row, then replay"},
	{DeliveryAmbiguous, CategoryConflict, true, "operator", "find out from the mail server whether the message was accepted, then resolve the delivery and replay"},
	{SchemaInvalid, CategoryValidation, false, "operator", "look at the recorded answer; correct the model or schema setting, then replay"},
	{InputInvalid, CategoryValidation, false, "caller", "correct the input and start again under a new key"},
	{TooLarge, CategoryValidation, false, "operator", "raise the limit named in the message or exclude the file, then replay"},
	{AuthDenied, CategoryAuth, false, "operator", "renew the credential (p4 ticket, API key, SMTP password), then replay"},
	{PermissionDenied, CategoryAuth, false, "administrator", "grant the account the permission named in the message, then replay"},
	{QuotaExhausted, CategoryAuth, false, "administrator", "restore the provider account's credit, then replay"},
	{NotFound, CategoryNotFound, false, "caller", "check that the object named in the message exists; replay only if it does now"},
	{ArtifactExpired, CategoryNotFound, false, "operator", "the stored input is past its retention; restart from the first stage"},
	{ContentPolicy, CategoryPolicy, false, "operator", "the provider refused the content; review by hand or change the model"},
	{PathNotAllowed, CategoryPolicy, false, "administrator", "add the path to the allow-list if it may be reviewed, then replay"},
	{RedactionBlocked, CategoryPolicy, false, "engineer", "redaction could not vouch for the text; correct the detector or policy, then replay"},
	{RecipientRejected, CategoryPolicy, false, "operator", "correct or waive the recipient, then replay"},
	{AdapterUnsupported, CategoryConfigOrBug, false, "caller", "route the job to an adapter this build has, and enqueue it under a new request"},
	{ConfigInvalid, CategoryConfigOrBug, false, "administrator", "correct the configuration named in the message, restart the worker, then replay"},
	{InvariantViolated, CategoryConfigOrBug, false, "engineer", "this is a bug; deploy a fix, then replay"},
	{Unknown, CategoryConfigOrBug, false, "engineer", "nobody classified this error; give it a class, then replay"},
}

// Descriptions returns the table of all classes.
func Descriptions() []Description { return append([]Description(nil), descriptions...) }

// Describe returns what is known about c; an unlisted class is described as Unknown.
func (c Class) Describe() Description {
	for _, d := range descriptions {
		if d.Class == c {
			return d
		}
	}
	return Unknown.Describe()
}

// Retryable reports whether an automatic retry is allowed (criticizer-processing 8.1).
func (c Class) Retryable() bool { return c.Describe().Retryable }
