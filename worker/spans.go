package main

import (
	"context"
	"time"

	"github.com/criticizer/criticizer/internal/telemetry/traces"
	"github.com/criticizer/criticizer/llm"
	"github.com/criticizer/criticizer/p4"
	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/review"
)

// The traced types wrap adapters so that every request to an external system has
// its own span. They do not embed the adapter: a method that activities use must
// get a span before it compiles.

type tracedChanges struct{ p4 *p4.ChangeFetcher }

func (c tracedChanges) Read(ctx context.Context, cl review.Changelist, how review.ReadOptions) (review.Change, error) {
	name := "p4 fetch"
	if how.Shelved {
		name = "p4 fetch shelf"
	}
	ctx, end := traces.Span(ctx, name)
	change, err := c.p4.Read(ctx, cl, how)
	end(len(change.Files), err)
	return change, err
}

type tracedReviewer struct{ model *llm.Reviewer }

func (r tracedReviewer) Review(ctx context.Context, c redaction.Change, o review.Options) (review.Draft, error) {
	ctx, end := traces.Span(ctx, "model review")
	draft, err := r.model.Review(ctx, c, o)
	end(draft.Usage.Calls, err)
	return draft, err
}

// A tracedPost names its spans for the channel.
type tracedPost struct {
	channel review.Channel
	post    interface {
		Send(ctx context.Context, r review.Report, key review.DeliveryKey, begun time.Time) (string, error)
		Lookup(ctx context.Context, key review.DeliveryKey, notificationID string, since time.Time) (review.Evidence, error)
	}
}

func (p tracedPost) Send(ctx context.Context, r review.Report, key review.DeliveryKey, begun time.Time) (string, error) {
	ctx, end := traces.Span(ctx, string(p.channel)+" send")
	id, err := p.post.Send(ctx, r, key, begun)
	end(1, err)
	return id, err
}

func (p tracedPost) Lookup(ctx context.Context, key review.DeliveryKey, notificationID string, since time.Time) (review.Evidence, error) {
	ctx, end := traces.Span(ctx, string(p.channel)+" lookup")
	evidence, err := p.post.Lookup(ctx, key, notificationID, since)
	end(1, err)
	return evidence, err
}
