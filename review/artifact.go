package review

// An ArtifactRef identifies stored bytes by namespace and hash. Temporal's history
// contains the reference, not the bytes.
type ArtifactRef string

// A Namespace separates artifacts by the stages that may read them. Each is a schema
// of the database.
type Namespace string

// The namespaces. The llm stage cannot read raw artifacts; the notify stage can read
// reports only.
const (
	NamespaceRaw      Namespace = "raw"
	NamespaceRedacted Namespace = "redacted"
	NamespaceReport   Namespace = "report"
	NamespaceAnswer   Namespace = "answer"  // answers of the model; only the llm stage can read them
	NamespaceRewrite  Namespace = "rewrite" // texts of the rewrite queue
)
