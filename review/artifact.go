package review

// An ArtifactRef points at stored bytes: the name of their namespace and the
// hash of their content. It is all that Temporal's history holds of them.
type ArtifactRef string

// A Namespace separates artifacts by who may read them (security 9.4). Each is
// a schema of its own in the database.
type Namespace string

// The namespaces. Only the redacted one can be read by the stage that talks to
// a model, only the report one by the stage that mails.
const (
	NamespaceRaw      Namespace = "raw"
	NamespaceRedacted Namespace = "redacted"
	NamespaceReport   Namespace = "report"
	NamespaceAnswer   Namespace = "answer"  // what the model said; only the stage that asks may read it
	NamespaceRewrite  Namespace = "rewrite" // of the complaint_rewrite queue, and not of reviews
)
