package failure

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/testkit"
)

// Each category with its classes, and whether they are retried (processing 8.1).
func TestClassification(t *testing.T) {
	t.Parallel()
	const retryable, nonRetryable = true, false
	want := map[Class]Description{}
	row := func(category Category, retryable bool, classes ...Class) {
		for _, c := range classes {
			want[c] = Description{Category: category, Retryable: retryable}
		}
	}
	row(CategoryNetwork, retryable,
		NetworkUnreachable, NetworkTimeout, UpstreamUnavailable, DatabaseUnavailable, ReplicaBehind, AttemptTimeout, WorkerStopped)
	row(CategoryRateLimit, retryable, RateLimited, ServerBusy)
	row(CategoryUpstream, retryable, UpstreamInternal)
	row(CategoryConflict, retryable, WriteConflict, DeliveryAmbiguous)
	row(CategoryValidation, nonRetryable, SchemaInvalid, InputInvalid, TooLarge, PromptTruncated, EndpointRefused)
	row(CategoryAuth, nonRetryable, AuthDenied, PermissionDenied, ArtifactForeign, QuotaExhausted)
	row(CategoryNotFound, nonRetryable, NotFound, ArtifactExpired)
	row(CategoryPolicy, nonRetryable, ContentPolicy, PathNotAllowed, RedactionBlocked, RedactionOutdated, RecipientRejected)
	row(CategoryConfigOrBug, nonRetryable, AdapterUnsupported, ConfigInvalid, ArtifactUnreadable, InvariantViolated, Unknown)
	for _, d := range Descriptions() {
		if w, listed := want[d.Class]; !listed || d.Category != w.Category || d.Retryable != w.Retryable || d.Class.Retryable() != w.Retryable {
			t.Errorf("%s is in %q, retryable %t; want %+v, listed %t", d.Class, d.Category, d.Retryable, w, listed)
		}
	}
	if len(want) != len(Descriptions()) {
		t.Errorf("%d classes, want %d", len(Descriptions()), len(want))
	}
}

// Every class that is declared is described once, and used by code of the product.
func TestEveryClassIsDescribedAndUsed(t *testing.T) {
	t.Parallel()
	used := usedClasses(t)
	file, err := parser.ParseFile(token.NewFileSet(), "class.go", nil, 0)
	testkit.NoError(t, err)
	var declared, described []Class
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || fmt.Sprint(spec.Type) != "Class" {
			return true
		}
		value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		testkit.NoError(t, err)
		declared = append(declared, Class(value))
		if !used[spec.Names[0].Name] {
			t.Errorf("no code gives an error the class %s", value)
		}
		return true
	})
	for _, d := range Descriptions() {
		described = append(described, d.Class)
		if d.Actor == "" || d.Meaning == "" || d.Hint == "" {
			t.Errorf("%s lacks an actor, a meaning or a hint: %+v", d.Class, d)
		}
	}
	if len(declared) == 0 || !slices.Equal(described, declared) {
		t.Errorf("described are\n%v\ndeclared are\n%v", described, declared)
	}
}

// usedClasses returns the names of the classes in the code of the product.
func usedClasses(t *testing.T) map[string]bool {
	t.Helper()
	used, name := map[string]bool{}, regexp.MustCompile(`\bfailure\.([A-Z]\w+)`)
	testkit.NoError(t, fs.WalkDir(os.DirFS("../.."), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "build" || d.Name() == "tools" || d.Name() == "failure" || len(path) > 1 && path[0] == '.'):
			return fs.SkipDir
		case filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(filepath.Join("../..", path))
		for _, m := range name.FindAllStringSubmatch(string(text), -1) {
			used[m[1]] = true
		}
		return err
	}))
	return used
}

func TestUnlistedClassIsDescribedAsUnknown(t *testing.T) {
	t.Parallel()
	for _, c := range []Class{"", "NO_SUCH_CLASS"} {
		if got := c.Describe(); got.Class != Unknown || c.Retryable() {
			t.Errorf("%q is described as %s, retryable %t; want %s, not retryable", c, got.Class, c.Retryable(), Unknown)
		}
	}
}

func TestClassOf(t *testing.T) {
	t.Parallel()
	inner := New(RateLimited, errors.New("slow down"))
	for name, tt := range map[string]struct {
		err  error
		want Class
	}{
		"classified":                  {inner, RateLimited},
		"through a wrapped error":     {fmt.Errorf("review change 7: %w", inner), RateLimited},
		"the outermost of two counts": {New(AuthDenied, fmt.Errorf("log in: %w", inner)), AuthDenied},
		"one of several joined":       {errors.Join(errors.New("first"), inner), RateLimited},
		"unclassified":                {errors.New("odd"), Unknown},
	} {
		if got := ClassOf(tt.err); got != tt.want {
			t.Errorf("%s: class is %s, want %s", name, got, tt.want)
		}
	}
	if !errors.Is(Errorf(NotFound, "read change 7: %w", inner), inner) {
		t.Error("the classified error cannot be unwrapped")
	}
}
