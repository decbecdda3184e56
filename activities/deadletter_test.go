package activities_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"testing"

	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/activities/activitiestest"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/testkit"
)

func TestDeadLetterIsLogged(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelError}))))
	env := suite.NewTestActivityEnvironment()
	books := &activities.Bookkeeper{Jobs: openRequest(t, activitiestest.New())}
	env.RegisterActivity(books)
	_, err := env.ExecuteActivity(books.RecordDeadLetter, activities.DeadLetterParams{
		StageParams: activities.StageParams{Request: request}, DeadLetter: failure.DeadLetter{Stage: "llm", ErrorClass: failure.AuthDenied, SanitizedContext: map[string]string{}},
	})
	testkit.NoError(t, err)
	var line map[string]any
	testkit.NoError(t, json.Unmarshal(out.Bytes(), &line))
	for key, want := range map[string]any{"changelist": 4711.0, "review_version": 1.0, "stage": "llm", "error_class": "AUTH_DENIED"} {
		if line[key] != want {
			t.Errorf("%s is %v, want %v", key, line[key], want)
		}
	}
}
