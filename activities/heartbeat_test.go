package activities

import (
	"context"
	"testing"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/testsuite"
)

// Whoever looks at the workflow sees how far a review is.
func TestHeartbeatsTellProgress(t *testing.T) {
	t.Parallel()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	var told []progress
	env.SetOnActivityHeartbeatListener(func(_ *activity.Info, details converter.EncodedValues) {
		var p progress
		if err := details.Get(&p); err != nil {
			t.Error(err)
		}
		told = append(told, p)
	})
	review := func(ctx context.Context) error {
		showProgress(context.WithValue(ctx, pulseKey{}, &pulse{}), 2, 5)
		showProgress(ctx, 3, 5) // in an activity without heartbeats nobody is told
		return nil
	}
	env.RegisterActivity(review)
	if _, err := env.ExecuteActivity(review); err != nil {
		t.Fatal(err)
	}
	if len(told) != 1 || told[0].Done != 2 || told[0].Total != 5 {
		t.Errorf("told %+v, want 2 of 5", told)
	}
}
