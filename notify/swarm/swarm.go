// Package swarm posts reviews to P4 Code Review (Swarm) through its REST API: a comment
// on the line of each finding, one summary, and a test run that fails from a severity on.
// Comments are posted without Swarm's notifications: the recipients get the mail. A later
// version of a review edits these comments, and marks those on resolved findings.
//
// The API has no idempotency key. Each part therefore ends with keys of ours, and Send
// reads the existing comments of its account first: a part that exists is not posted again
// (notification 8.2). The summary is posted after all other comments, so that it proves
// them for Lookup.
//
// The client uses v9 of the API for comments and reviews (Helix Swarm Guide 2019.3) and
// v11 for test runs (guide of P4 Code Review). testdata holds answers as documented.
package swarm

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/criticizer/criticizer/internal/config"
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
	// Address of the server. Empty: nothing is posted.
	URL string `yaml:"url" check:"http-url"`
	// Account that comments.
	User string `yaml:"user"`
	// Ticket of the account, valid on all hosts (p4 login -a -p).
	Ticket secret.Value `yaml:"ticket"`
	// Name of the test run. Empty: none.
	Test string `yaml:"test" default:"criticizer"`
	// Least severity of a finding with which the test run fails. It also fails if a part
	// of the change was not reviewed.
	FailSeverity review.Severity `yaml:"fail_severity" default:"high" oneof:"critical high medium low"`
	// Which reviews are posted.
	Filter post.Filter `yaml:",inline"`
	// Only reviews with a finding of this severity or a worse one. low: also partial and
	// not_reviewed ones without findings. clean: all.
	Severity review.Severity `yaml:"severity" default:"clean" oneof:"critical high medium low clean"`
	// Keys sign and identify what is posted. Required.
	Keys *evidence.Keys
}

// Check implements the checks of package config.
func (c Config) Check(p *config.Problems) {
	if c.URL != "" {
		p.Require("user", c.User, "the account that comments")
		p.RequireSecret("ticket", c.Ticket, "a ticket of swarm.user")
	}
}

// Connections returns the connection to the server.
func (c Config) Connections() []config.Connection {
	return []config.Connection{config.OverHTTP("url", c.URL, "ticket", c.Ticket)}
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
// started at begun. The notification id names the summary.
func (s *Server) Send(ctx context.Context, report review.Report, k review.DeliveryKey, begun time.Time) (notificationID string, err error) {
	ctx, cancel := context.WithDeadline(ctx, begun.Add(attemptTimeout))
	defer cancel()
	found, err := s.find(ctx, k, begun)
	if err != nil {
		return "", err
	}
	if found.summary == 0 && found.blind {
		return "", failure.Errorf(failure.DeliveryAmbiguous, "post comment to P4 Code Review: %s has too many comments to tell whether it is there", found.topic.name)
	}
	if found.summary == 0 {
		if found.summary, err = s.postComments(ctx, found, report, k, begun); err != nil {
			return "", err
		}
	}
	if !found.tested {
		run := newTestRun(s.cfg.Test, s.cfg.FailSeverity, found.topic, report, s.cfg.Keys.Token(runKey(k)))
		if err := s.postTestRun(ctx, found.topic, run); err != nil {
			return "", err
		}
	}
	s.lg.InfoContext(ctx, "review posted to P4 Code Review", "changelist", int64(k.Changelist), "review_version", int(k.Version), "topic", found.topic.name)
	return notificationIDOf(found.summary), nil
}

// postComments posts or edits the comments of r, the summary last, and returns its id.
func (s *Server) postComments(ctx context.Context, found posted, r review.Report, k review.DeliveryKey, begun time.Time) (summary int64, err error) {
	own := found.own
	findings, _ := post.Worst(r, maxFindings)
	for _, f := range findings {
		body := newInline(r, f, s.cfg.Keys.Token(threadKeys(f.Fingerprint(), r)[0]))
		if _, err := s.put(ctx, found.topic, body, s.take(&own, f.Fingerprints(), r, begun), &f); err != nil {
			return 0, err
		}
	}
	if r.Progress != nil {
		for _, f := range r.Progress.Resolved {
			c := s.take(&own, f.Fingerprints(), r, begun)
			if c.ID == 0 || strings.HasPrefix(c.Body, resolvedMark) {
				continue
			}
			if err := s.editComment(ctx, c.ID, fmt.Sprintf("%s%d.\n\n%s", resolvedMark, r.Version, c.Body)); err != nil {
				return 0, err
			}
		}
	}
	body := newSummary(r, s.cfg.Keys.Token(k), s.cfg.Keys.Token(threadKeys(summaryPart, r)[0]))
	return s.put(ctx, found.topic, body, s.take(&own, []string{summaryPart}, r, begun), nil)
}

// summaryPart names the summary in its key. The other parts are fingerprints.
const summaryPart = "summary"

// take removes the comment on one of the parts from own and returns it, zero if there is
// none.
func (s *Server) take(own *[]comment, parts []string, r review.Report, begun time.Time) (c comment) {
	var tokens []string
	for _, part := range parts {
		for _, key := range threadKeys(part, r) {
			of, _ := s.cfg.Keys.Tokens(key, begun)
			tokens = append(tokens, of...)
		}
	}
	i := slices.IndexFunc(*own, func(c comment) bool { return hasKey(c.Body, tokens) })
	if i >= 0 {
		c = (*own)[i]
		*own = slices.Delete(*own, i, i+1)
	}
	return c
}

// put posts a comment with the text, or edits an existing one with another.
func (s *Server) put(ctx context.Context, at topic, body string, existing comment, f *review.Finding) (int64, error) {
	switch {
	case existing.ID == 0:
		return s.postComment(ctx, at, body, f)
	case strings.TrimSpace(strings.ReplaceAll(existing.Body, "\r\n", "\n")) == body:
		return existing.ID, nil
	}
	return existing.ID, s.editComment(ctx, existing.ID, body)
}

// Lookup reports whether all parts of k's message exist. since is when the last
// attempt started.
func (s *Server) Lookup(ctx context.Context, k review.DeliveryKey, _ string, since time.Time) (review.Evidence, error) {
	found, err := s.find(ctx, k, since)
	switch {
	case err != nil:
		return review.Evidence{}, err
	case found.summary != 0 && found.tested:
		return review.Evidence{State: review.EvidenceAccepted, NotificationID: notificationIDOf(found.summary), Source: "api"}, nil
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
	own     []comment // all comments of ours on the topic
	summary int64     // 0 if there is none of this version or a later one
	tested  bool      // the test run exists, or none is to be created
	blind   bool      // parts that were not found may exist
}

// find searches for the parts of k's message, which was sent at that time if it was
// sent before.
func (s *Server) find(ctx context.Context, k review.DeliveryKey, sent time.Time) (found posted, err error) {
	if found.topic, err = s.topicOf(ctx, k.Changelist); err != nil {
		return found, err
	}
	tokens, complete := s.cfg.Keys.Tokens(k, sent)
	var all bool
	if found.own, all, err = s.comments(ctx, found.topic); err != nil {
		return found, err
	}
	found.blind = !all || !complete
	thread, _ := s.cfg.Keys.Tokens(threadKeys(summaryPart, review.Report{Changelist: k.Changelist})[0], sent)
	replaced := false
	for _, c := range found.own {
		later := hasKey(c.Body, thread) && versionOf(c.Body) > k.Version
		if later || hasKey(c.Body, tokens) {
			found.summary, replaced = c.ID, later
		}
	}
	if found.tested = s.cfg.Test == "" || found.topic.review == 0 || replaced; !found.tested {
		tokens, _ = s.cfg.Keys.Tokens(runKey(k), sent)
		found.tested, err = s.findTestRun(ctx, found.topic, tokens)
	}
	return found, err
}

// versionOf returns the version of a summary, 0 for another comment.
func versionOf(body string) review.Version {
	keys := keysOf(body)
	v, _ := strconv.Atoi(keys[len(keys)-1])
	return review.Version(v)
}
