package activities_test

import (
	"encoding/json"
	"errors"
	"testing"

	"go.temporal.io/sdk/temporal"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/review"
)

// A Temporal writer can pass any reference to any activity. No stage uses the artifact of
// another review.
func TestArtifactsOfOtherReviewsAreRefused(t *testing.T) {
	t.Parallel()
	others := review.Owner{Changelist: 9999, Version: 1}
	pipeline, err := redaction.New(redaction.Config{Key: secret.New("a key for tests, not a secret")})
	testkit.NoError(t, err)
	change := review.Change{Number: others.Changelist, Description: "embargoed"}
	redacted, err := pipeline.Change(change)
	testkit.NoError(t, err)
	sealed, err := pipeline.Seal(redacted)
	testkit.NoError(t, err)
	bodies := map[review.Namespace][]byte{
		review.NamespaceRaw: encoded(t, change), review.NamespaceRedacted: sealed,
		review.NamespaceReport: encoded(t, review.Report{Changelist: others.Changelist, Version: others.Version, Outcome: review.OutcomeFindings, Description: "embargoed"}),
	}
	stages := map[string]struct {
		reads review.Namespace
		run   func(m mailing, p activities.StageParams) error
	}{
		"redact": {review.NamespaceRaw, func(m mailing, p activities.StageParams) error {
			stage := &activities.Redactor{Raw: m.db.Artifacts(t, review.NamespaceRaw), Redacted: m.db.Artifacts(t, review.NamespaceRedacted), Pipeline: pipeline}
			_, err := stage.Redact(t.Context(), p)
			return err
		}},
		"llm": {review.NamespaceRedacted, func(m mailing, p activities.StageParams) error {
			stage := &activities.Model{
				Redacted: m.db.Artifacts(t, review.NamespaceRedacted), Reports: m.db.Artifacts(t, review.NamespaceReport), Reviewer: m.fakes, Pipeline: pipeline,
			}
			_, err := stage.LLM(t.Context(), p)
			return err
		}},
		"adopt": {review.NamespaceReport, func(m mailing, p activities.StageParams) error {
			_, err := m.env.ExecuteActivity(m.stage.AdoptReport, p)
			return err
		}},
		"notify": {review.NamespaceReport, func(m mailing, p activities.StageParams) error {
			_, err := m.env.ExecuteActivity(m.stage.Notify, p)
			return err
		}},
	}
	for name, stage := range stages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMailing(t)
			ref, err := m.db.Artifacts(t, stage.reads).Put(t.Context(), others, bodies[stage.reads])
			testkit.NoError(t, err)
			err = stage.run(m, activities.StageParams{Request: request, Input: ref})
			class := failure.ClassOf(err)
			if e, ok := errors.AsType[*temporal.ApplicationError](err); ok {
				if class = failure.Class(e.Type()); !e.NonRetryable() {
					t.Error("the error is retried")
				}
			}
			if class != failure.ArtifactForeign || len(m.fakes.Mails()) != 0 || m.fakes.Calls("Review") != 0 {
				t.Errorf("error %v (%s), %d mails, %d model calls; want ARTIFACT_FOREIGN", err, class, len(m.fakes.Mails()), m.fakes.Calls("Review"))
			}
		})
	}
}

// A review adopts the report of its shelf only, never its own.
func TestAdoptsOnlyTheReportOfTheShelf(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	_, err := m.stage.AdoptReport(t.Context(), activities.StageParams{Request: request, Input: m.input})
	if failure.ClassOf(err) != failure.ArtifactForeign {
		t.Errorf("its own report: %v", err)
	}
}

func encoded(t *testing.T, v any) []byte {
	t.Helper()
	body, err := json.Marshal(v)
	testkit.NoError(t, err)
	return body
}
