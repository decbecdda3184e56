// Package swarm posts reviews to P4 Code Review (Swarm) through its REST API:
// one comment with the whole digest, and a test run that passes only if the
// review is clean. Comments are posted without Swarm's notifications: the
// recipients get the mail.
//
// The API has no idempotency key. Each comment therefore ends with a key of
// ours, and Send reads the existing comments of its account first: a comment or test
// run that exists is not posted again (notification 8.2).
package swarm

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/notify/evidence"
	"github.com/criticizer/criticizer/notify/post"
	"github.com/criticizer/criticizer/review"
)

const (
	// attemptTimeout bounds all requests of one attempt.
	attemptTimeout = 5 * time.Minute
	// settle is how long after the start of an attempt a missing comment proves
	// nothing: the server may still be processing the request.
	settle = 10 * time.Minute
)

// Config selects the server and the account.
type Config struct {
	// URL of the server. Required.
	URL string
	// User and Ticket sign in. Required.
	User   string
	Ticket secret.Value
	// Test names the test run. Default: no test run is created.
	Test string
	// Keys sign and identify what is posted. Required.
	Keys *evidence.Keys
}

// A Server is one installation of P4 Code Review. It is safe for concurrent use.
type Server struct {
	lg      *slog.Logger
	cfg     Config
	service post.Service
}

// New returns the server of cfg. It makes no request.
func New(lg *slog.Logger, cfg Config) *Server {
	cfg.URL = strings.TrimSuffix(cfg.URL, "/")
	return &Server{lg, cfg, post.Service{
		Name:      "P4 Code Review",
		Denied:    "renew CRITICIZER_SWARM_TICKET, and give swarm.user access to the review",
		Invalid:   "check swarm.url and that the server has API versions 9 and 11",
		Authorize: func(r *http.Request) { r.SetBasicAuth(cfg.User, cfg.Ticket.Reveal()) },
	}}
}

// Send posts the parts of report that do not exist yet, in an attempt that
// started at begun. The notification id names the comment.
func (s *Server) Send(ctx context.Context, report review.Report, k review.DeliveryKey, begun time.Time) (notificationID string, err error) {
	ctx, cancel := context.WithDeadline(ctx, begun.Add(attemptTimeout))
	defer cancel()
	found, err := s.find(ctx, k, begun)
	if err != nil {
		return "", err
	}
	if found.comment == 0 && found.blind {
		return "", failure.Errorf(failure.DeliveryAmbiguous, "post comment to P4 Code Review: %s has too many comments to tell whether it is there", found.topic.name)
	}
	if found.comment == 0 {
		if found.comment, err = s.postComment(ctx, found.topic, newBody(report, s.cfg.Keys.Token(k))); err != nil {
			return "", err
		}
	}
	if !found.tested {
		if err := s.postTestRun(ctx, found.topic, newTestRun(s.cfg.Test, found.topic, report, s.cfg.Keys.Token(runKey(k)))); err != nil {
			return "", err
		}
	}
	s.lg.InfoContext(ctx, "review posted to P4 Code Review", "changelist", int64(k.Changelist), "review_version", int(k.Version), "topic", found.topic.name)
	return notificationIDOf(found.comment), nil
}

// Lookup reports whether all parts of k's message exist. since is when the last
// attempt started.
func (s *Server) Lookup(ctx context.Context, k review.DeliveryKey, since time.Time) (review.Evidence, error) {
	found, err := s.find(ctx, k, since)
	switch {
	case err != nil:
		return review.Evidence{}, err
	case found.comment != 0 && found.tested:
		return review.Evidence{State: review.EvidenceAccepted, NotificationID: notificationIDOf(found.comment), Source: "api"}, nil
	case time.Since(since) < settle:
		return review.Evidence{State: review.EvidenceUnknown, Source: "api", AskAgain: since.Add(settle)}, nil
	case found.blind:
		return review.Evidence{State: review.EvidenceUnknown, Source: "none"}, nil
	}
	return review.Evidence{State: review.EvidenceAbsent, Source: "api"}, nil
}

func notificationIDOf(comment int64) string { return fmt.Sprintf("swarm-comment-%d", comment) }

// posted lists which parts of a message exist.
type posted struct {
	topic   topic
	comment int64 // 0 if there is none
	tested  bool  // the test run exists, or none is to be created
	blind   bool  // parts that were not found may exist
}

// find searches for the parts of k's message, which was sent at that time if it was
// sent before.
func (s *Server) find(ctx context.Context, k review.DeliveryKey, sent time.Time) (found posted, err error) {
	if found.topic, err = s.topicOf(ctx, k.Changelist); err != nil {
		return found, err
	}
	tokens, complete := s.cfg.Keys.Tokens(k, sent)
	var all bool
	if found.comment, all, err = s.findComment(ctx, found.topic, tokens); err != nil {
		return found, err
	}
	found.blind = !all || !complete
	if found.tested = s.cfg.Test == "" || found.topic.review == 0; !found.tested {
		tokens, _ = s.cfg.Keys.Tokens(runKey(k), sent)
		found.tested, err = s.findTestRun(ctx, found.topic, tokens)
	}
	return found, err
}
