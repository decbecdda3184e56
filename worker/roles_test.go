package main

import (
	"context"
	"maps"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/settings"
	"github.com/criticizer/criticizer/review"
)

// A post knows which message was looked up last.
type post struct{ lookedUp string }

func (p *post) Send(context.Context, review.Report, review.DeliveryKey, time.Time) (string, error) {
	return "id-1", nil
}

func (p *post) Lookup(_ context.Context, _ review.DeliveryKey, notificationID string, _ time.Time) (review.Evidence, error) {
	p.lookedUp = notificationID
	return review.Evidence{}, nil
}

// A provider is asked by its own ID of a message, if one is stored (notification 6.4).
func TestTracedLookupHasTheID(t *testing.T) {
	t.Parallel()
	traced := &post{}
	if _, err := (tracedPost{review.ChannelMail, traced}).Lookup(t.Context(), review.DeliveryKey{}, "id-1", time.Now()); err != nil || traced.lookedUp != "id-1" {
		t.Errorf("looked up %q, %v", traced.lookedUp, err)
	}
}

// Each stage that calls something outside has its own limit of attempts at once.
func TestAttemptsAtOnce(t *testing.T) {
	t.Parallel()
	got := map[settings.Role]int{}
	for _, s := range reviewRoles() {
		if s.atOnce != nil {
			got[s.name] = s.atOnce(settings.Worker{FetchAtOnce: 1, LLMAtOnce: 3, NotifyAtOnce: 4})
		}
	}
	want := map[settings.Role]int{settings.RoleFetch: 1, settings.RoleRedact: 4, settings.RoleLLM: 3, settings.RoleNotify: 4}
	if !maps.Equal(got, want) {
		t.Errorf("limits are %v, want %v", got, want)
	}
}
