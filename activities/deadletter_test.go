package activities_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/activities/activitiestest"
	"github.com/criticizer/criticizer/internal/failure"
)

// Who reads the log finds the reviews that want a person, and why.
func TestDeadLetterIsLogged(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelError}))))
	env := suite.NewTestActivityEnvironment()
	books := &activities.Bookkeeping{Jobs: activitiestest.New()}
	env.RegisterActivity(books)
	_, err := env.ExecuteActivity(books.RecordDeadLetter, activities.DeadLetterParams{
		Request: request, Letter: failure.DeadLetter{Stage: "llm", ErrorClass: failure.AuthDenied},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`msg="review dead-lettered"`, "changelist=", "review_version=1", "stage=llm", "error_class=AUTH_DENIED"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("logged %s, want %s", &out, want)
		}
	}
}
