// Package swarm tells reviews to P4 Code Review (Swarm) through its REST API:
// one comment with the whole digest, and a test run that only a clean review
// passes. Notifications are silenced, for whoever is to know has the mail.
//
// The API has no idempotency key. So each comment ends in a key of ours, and
// before one is posted the comments that exist are read: what is there already
// is not posted again (review-notification 8.2).
package swarm

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/review"
)

const (
	// patience bounds one request, and attempts bounds all of an attempt.
	patience = 30 * time.Second
	attempt  = 5 * time.Minute
	// settle is how long after the begin of an attempt the absence of its comment
	// proves nothing: the server may still be at work on it.
	settle = 10 * time.Minute
)

// Config says which server, and as whom.
type Config struct {
	// URL of the server. Required.
	URL string
	// User and Ticket sign in. Required.
	User   string
	Ticket secret.Value
	// Test names the test run. Default: none is made.
	Test string
}

// A Server is one installation of P4 Code Review. It is safe for concurrent use.
type Server struct {
	lg   *slog.Logger
	cfg  Config
	http *http.Client
}

// New returns the server of cfg. It makes no call. Its errors have class
// [failure.ConfigInvalid].
func New(lg *slog.Logger, cfg Config) (*Server, error) {
	cfg.URL = strings.TrimSuffix(cfg.URL, "/")
	u, err := url.Parse(cfg.URL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return nil, failure.Errorf(failure.ConfigInvalid, "swarm configuration: URL is not an http address")
	case cfg.User == "" || !cfg.Ticket.IsSet():
		return nil, failure.Errorf(failure.ConfigInvalid, "swarm configuration: User or Ticket is not set")
	}
	// A redirect would take the ticket elsewhere.
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Server{lg, cfg, &http.Client{Timeout: patience, CheckRedirect: stay}}, nil
}

// A place is what a report is told about.
type place struct {
	topic string // reviews/ID, or changes/N where there is no review
	// review and version are 0 where there is none.
	review, version int64
}

// Send posts what of report is not there yet, in an attempt that began at begun.
// The notification id names the comment.
func (s *Server) Send(ctx context.Context, report review.Report, k review.DeliveryKey, begun time.Time) (notificationID string, err error) {
	ctx, cancel := context.WithDeadline(ctx, begun.Add(attempt))
	defer cancel()
	at, err := s.placeOf(ctx, k.Changelist)
	if err != nil {
		return "", err
	}
	id, err := s.comment(ctx, at, k)
	if err != nil {
		return "", err
	}
	if id == 0 {
		if id, err = s.postComment(ctx, at, newBody(report, k)); err != nil {
			return "", err
		}
	}
	if err := s.test(ctx, at, report, k); err != nil {
		return "", err
	}
	s.lg.InfoContext(ctx, "review told to P4 Code Review", "changelist", int64(k.Changelist), "review_version", int(k.Version), "topic", at.topic)
	return fmt.Sprintf("swarm-comment-%d", id), nil
}

// test makes the test run, where there is a review and no such run of this
// report yet.
func (s *Server) test(ctx context.Context, at place, report review.Report, k review.DeliveryKey) error {
	if s.cfg.Test == "" || at.review == 0 {
		return nil
	}
	done, err := s.tested(ctx, at, k)
	if err != nil || done {
		return err
	}
	return s.postTestRun(ctx, at, newTestRun(s.cfg.Test, at, report, k))
}

// Lookup reads what is there. since is when the last attempt began.
func (s *Server) Lookup(ctx context.Context, k review.DeliveryKey, since time.Time) (review.Evidence, error) {
	at, err := s.placeOf(ctx, k.Changelist)
	if err != nil {
		return review.Evidence{}, err
	}
	id, err := s.comment(ctx, at, k)
	if err != nil {
		return review.Evidence{}, err
	}
	whole := id != 0
	if whole && s.cfg.Test != "" && at.review != 0 {
		if whole, err = s.tested(ctx, at, k); err != nil {
			return review.Evidence{}, err
		}
	}
	switch {
	case whole:
		return review.Evidence{State: review.EvidenceAccepted, NotificationID: fmt.Sprintf("swarm-comment-%d", id), Source: "api"}, nil
	case time.Since(since) < settle:
		return review.Evidence{State: review.EvidenceUnknown, Source: "api", AskAgain: since.Add(settle)}, nil
	}
	return review.Evidence{State: review.EvidenceAbsent, Source: "api"}, nil
}

// Ping lists one review, which takes the ticket and leaves no trace.
func (s *Server) Ping(ctx context.Context) error {
	var answer struct {
		Reviews []any `json:"reviews"`
	}
	return s.get(ctx, "/api/v9/reviews", url.Values{"max": {"1"}}, &answer)
}

// placeOf finds the review of a changelist, the newest if there are several.
func (s *Server) placeOf(ctx context.Context, cl review.Changelist) (place, error) {
	var answer struct {
		Reviews []struct {
			ID       int64 `json:"id"`
			Versions []any `json:"versions"`
		} `json:"reviews"`
	}
	query := url.Values{"change[]": {cl.String()}}
	if err := s.get(ctx, "/api/v9/reviews", query, &answer); err != nil {
		return place{}, err
	}
	at := place{topic: "changes/" + cl.String()}
	for _, r := range answer.Reviews {
		if r.ID > at.review {
			at = place{fmt.Sprintf("reviews/%d", r.ID), r.ID, max(1, int64(len(r.Versions)))}
		}
	}
	return at, nil
}

// comment finds the comment of k, 0 if there is none.
func (s *Server) comment(ctx context.Context, at place, k review.DeliveryKey) (id int64, err error) {
	query := url.Values{"topic": {at.topic}, "max": {"100"}}
	for last := int64(0); ; {
		var page struct {
			Comments []struct {
				ID   int64  `json:"id"`
				Body string `json:"body"`
			} `json:"comments"`
			LastSeen int64 `json:"lastSeen"`
		}
		if err := s.get(ctx, "/api/v9/comments", query, &page); err != nil {
			return 0, err
		}
		for _, c := range page.Comments {
			if strings.Contains(c.Body, keyLine(k)) {
				return c.ID, nil
			}
		}
		if len(page.Comments) == 0 || page.LastSeen <= last {
			return 0, nil
		}
		last = page.LastSeen
		query.Set("after", fmt.Sprint(last))
	}
}

// tested reports whether the test run of k is there.
func (s *Server) tested(ctx context.Context, at place, k review.DeliveryKey) (bool, error) {
	var answer struct {
		Data struct {
			TestRuns []testRun `json:"testruns"`
		} `json:"data"`
	}
	query := url.Values{"version": {fmt.Sprint(at.version)}}
	if err := s.get(ctx, fmt.Sprintf("/api/v11/reviews/%d/testruns", at.review), query, &answer); err != nil {
		return false, err
	}
	for _, run := range answer.Data.TestRuns {
		if run.Test == s.cfg.Test && len(run.Messages) > 0 && run.Messages[len(run.Messages)-1] == keyLine(k) {
			return true, nil
		}
	}
	return false, nil
}
