package failure

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"testing"
)

// Each category with its examples and the class of each example (processing 8.1).
func TestClassification(t *testing.T) {
	t.Parallel()
	const retryable, nonRetryable = true, false
	rows := []struct {
		category  Category
		retryable bool
		examples  map[string]Class
	}{
		{CategoryNetwork, retryable, map[string]Class{
			"DNS timeout":                   NetworkUnreachable,
			"socket timeout":                NetworkTimeout,
			"TCP reset":                     NetworkUnreachable,
			"502, 503, 504 from upstream":   UpstreamUnavailable,
			"Postgres is down":              DatabaseUnavailable,
			"p4 replica lags":               ReplicaBehind,
			"worker crashed in the attempt": AttemptTimeout,
			"worker stopped":                WorkerStopped,
		}},
		{CategoryRateLimit, retryable, map[string]Class{
			"HTTP 429":          RateLimited,
			"p4 server is busy": ServerBusy,
		}},
		{CategoryUpstream, retryable, map[string]Class{
			"internal_error of the model": UpstreamInternal,
		}},
		{CategoryConflict, retryable, map[string]Class{
			"duplicate write race":          WriteConflict,
			"accepted by the server or not": DeliveryAmbiguous,
		}},
		{CategoryValidation, nonRetryable, map[string]Class{
			"schema mismatch":        SchemaInvalid,
			"missing required field": InputInvalid,
			"over a size limit":      TooLarge,
			"prompt not read whole":  PromptTruncated,
		}},
		{CategoryAuth, nonRetryable, map[string]Class{
			"invalid API key":         AuthDenied,
			"permission denied (403)": PermissionDenied,
			"another review's data":   ArtifactForeign,
			"credit is used up":       QuotaExhausted,
		}},
		{CategoryNotFound, nonRetryable, map[string]Class{
			"404 for an immutable input": NotFound,
			"input past its retention":   ArtifactExpired,
		}},
		{CategoryPolicy, nonRetryable, map[string]Class{
			"moderation block":              ContentPolicy,
			"explicit deny policy":          PathNotAllowed,
			"redaction cannot verify":       RedactionBlocked,
			"recipient permanently refused": RecipientRejected,
		}},
		{CategoryConfigOrBug, nonRetryable, map[string]Class{
			"rewrite job for a missing adapter": AdapterUnsupported,
			"bad deploy config":                 ConfigInvalid,
			"invariant violation":               InvariantViolated,
			"unclassified":                      Unknown,
		}},
	}
	seen := map[Class]bool{}
	for _, row := range rows {
		for example, class := range row.examples {
			seen[class] = true
			got := class.Describe()
			if got.Class != class || got.Category != row.category || got.Retryable != row.retryable {
				t.Errorf("%s is %s in %q, retryable %t; want %s in %q, retryable %t",
					example, got.Class, got.Category, got.Retryable, class, row.category, row.retryable)
			}
			if class.Retryable() != row.retryable {
				t.Errorf("%s.Retryable() is %t, want %t", class, class.Retryable(), row.retryable)
			}
		}
	}
	for _, d := range Descriptions() {
		if !seen[d.Class] {
			t.Errorf("class %s is in no row of the table", d.Class)
		}
	}
}

func TestEveryClassIsDescribedOnce(t *testing.T) {
	t.Parallel()
	var described []Class
	for _, d := range Descriptions() {
		described = append(described, d.Class)
		if d.Actor == "" || d.Hint == "" {
			t.Errorf("%s lacks an actor or a hint: actor %q, hint %q", d.Class, d.Actor, d.Hint)
		}
	}
	if declared := declaredClasses(t); !slices.Equal(described, declared) {
		t.Errorf("described are\n%v\ndeclared are\n%v", described, declared)
	}
}

// declaredClasses reads the constants of type Class from the source.
func declaredClasses(t *testing.T) []Class {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "class.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var classes []Class
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || fmt.Sprint(spec.Type) != "Class" {
			return true
		}
		value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		classes = append(classes, Class(value))
		return true
	})
	if len(classes) == 0 {
		t.Fatal("class.go declares no class: this test does not find them")
	}
	return classes
}

func TestUnlistedClassIsDescribedAsUnknown(t *testing.T) {
	t.Parallel()
	for _, c := range []Class{"", "NO_SUCH_CLASS"} {
		if got := c.Describe(); got.Class != Unknown || c.Retryable() {
			t.Errorf("%q is described as %s, retryable %t; want %s, not retryable", c, got.Class, c.Retryable(), Unknown)
		}
	}
}

func TestDescriptionsCannotBeChangedByCallers(t *testing.T) {
	t.Parallel()
	Descriptions()[0].Retryable = false
	if !Descriptions()[0].Retryable {
		t.Error("a caller changed the table of classes")
	}
}

func TestClassOf(t *testing.T) {
	t.Parallel()
	inner := New(RateLimited, errors.New("slow down"))
	tests := map[string]struct {
		err  error
		want Class
	}{
		"classified":                  {inner, RateLimited},
		"through a wrapped error":     {fmt.Errorf("review change 7: %w", inner), RateLimited},
		"the outermost of two counts": {New(AuthDenied, fmt.Errorf("log in: %w", inner)), AuthDenied},
		"one of several joined":       {errors.Join(errors.New("first"), inner), RateLimited},
		"unclassified":                {errors.New("odd"), Unknown},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := ClassOf(tt.err); got != tt.want {
				t.Errorf("class is %s, want %s", got, tt.want)
			}
		})
	}
	if !errors.Is(Errorf(NotFound, "read change 7: %w", inner), inner) {
		t.Error("the classified error cannot be unwrapped")
	}
}
