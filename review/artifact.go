package review

// An ArtifactRef identifies stored bytes by namespace and hash. Temporal's history
// contains the reference, not the bytes.
type ArtifactRef string

// An Owner is the review that an artifact is stored for. Encryption binds the artifact
// to it: a reference from Temporal's history, which others can write, opens only the
// artifacts of the review that uses it. The zero Owner owns what belongs to no review.
type Owner struct {
	Changelist Changelist
	Version    Version
}

// Owner returns the owner of the artifacts of the requested review.
func (r Request) Owner() Owner { return Owner{r.Changelist, r.Version} }

// Owner returns the review that the report is of.
func (r Report) Owner() Owner { return Owner{r.Changelist, r.Version} }

// A Namespace separates artifacts by the stages that may read them. Each is a schema
// of the database.
type Namespace string

// The namespaces. The llm stage cannot read raw artifacts; the notify stage can read
// reports only.
const (
	NamespaceRaw      Namespace = "raw"
	NamespaceRedacted Namespace = "redacted"
	NamespaceReport   Namespace = "report"
	NamespaceAnswer   Namespace = "answer" // answers of the model; only the llm stage can read them
)
