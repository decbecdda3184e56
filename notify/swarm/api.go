package swarm

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/notify/post"
	"github.com/criticizer/criticizer/review"
)

// A topic is what a comment is attached to.
type topic struct {
	name string // reviews/ID, or changes/N if the changelist has no review
	// review and version are 0 if the changelist has no review.
	review, version int64
}

// Ping lists one review, which needs a valid ticket and changes nothing.
func (s *Server) Ping(ctx context.Context) error {
	var answer struct {
		Reviews []any `json:"reviews"`
	}
	return s.get(ctx, "/api/v9/reviews", url.Values{"max": {"1"}}, &answer)
}

// topicOf returns the newest review of a changelist, or the changelist itself.
func (s *Server) topicOf(ctx context.Context, cl review.Changelist) (topic, error) {
	var answer struct {
		Reviews []struct {
			ID       int64 `json:"id"`
			Versions []any `json:"versions"`
		} `json:"reviews"`
	}
	if err := s.get(ctx, "/api/v9/reviews", url.Values{"change[]": {cl.String()}}, &answer); err != nil {
		return topic{}, err
	}
	at := topic{name: "changes/" + cl.String()}
	for _, r := range answer.Reviews {
		if r.ID > at.review {
			at = topic{fmt.Sprintf("reviews/%d", r.ID), r.ID, max(1, int64(len(r.Versions)))}
		}
	}
	return at, nil
}

// maxPages bounds the pages of 100 comments that are read.
const maxPages = 50

// findComment returns the id of our comment with one of the tokens, 0 if there is
// none. Comments of other accounts do not count. all is false if there are more
// comments than it reads.
func (s *Server) findComment(ctx context.Context, at topic, tokens []string) (id int64, all bool, err error) {
	query := url.Values{"topic": {at.name}, "max": {"100"}}
	last := int64(0)
	for range maxPages {
		var page struct {
			Comments []struct {
				ID   int64  `json:"id"`
				User string `json:"user"`
				Body string `json:"body"`
			} `json:"comments"`
			LastSeen int64 `json:"lastSeen"`
		}
		if err := s.get(ctx, "/api/v9/comments", query, &page); err != nil {
			return 0, false, err
		}
		for _, c := range page.Comments {
			if c.User == s.cfg.User && hasKey(c.Body, tokens) {
				return c.ID, true, nil
			}
		}
		if len(page.Comments) == 0 || page.LastSeen <= last {
			return 0, true, nil
		}
		last = page.LastSeen
		query.Set("after", fmt.Sprint(last))
	}
	return 0, false, nil
}

// hasKey reports whether the last line of text is the key line of a token.
func hasKey(text string, tokens []string) bool {
	text = strings.TrimSpace(text)
	return slices.Contains(tokens, strings.TrimPrefix(text[strings.LastIndex(text, "\n")+1:], keyPrefix))
}

// postComment returns the id of the new comment.
func (s *Server) postComment(ctx context.Context, at topic, body string) (int64, error) {
	form := url.Values{"topic": {at.name}, "body": {body}, "silenceNotification": {"true"}, "taskState": {"comment"}}
	a, err := s.service.Send(ctx, post.Request{
		Method: http.MethodPost, URL: s.cfg.URL + "/api/v9/comments", Delivers: true,
		ContentType: "application/x-www-form-urlencoded", Body: []byte(form.Encode()),
	})
	if err != nil {
		return 0, err
	}
	var answer struct {
		Comment struct {
			ID int64 `json:"id"`
		} `json:"comment"`
	}
	if err := s.service.Decode(a, &answer); err != nil {
		return 0, err
	}
	if answer.Comment.ID == 0 {
		return 0, failure.Errorf(failure.DeliveryAmbiguous, "post comment to P4 Code Review: its answer names no comment")
	}
	return answer.Comment.ID, nil
}

func (s *Server) testRunsURL(at topic) string {
	return fmt.Sprintf("/api/v11/reviews/%d/testruns", at.review)
}

// findTestRun reports whether a test run with one of the tokens exists.
func (s *Server) findTestRun(ctx context.Context, at topic, tokens []string) (bool, error) {
	var answer struct {
		Data struct {
			TestRuns []testRun `json:"testruns"`
		} `json:"data"`
	}
	if err := s.get(ctx, s.testRunsURL(at), url.Values{"version": {fmt.Sprint(at.version)}}, &answer); err != nil {
		return false, err
	}
	for _, run := range answer.Data.TestRuns {
		if run.Test == s.cfg.Test && len(run.Messages) > 0 && hasKey(run.Messages[len(run.Messages)-1], tokens) {
			return true, nil
		}
	}
	return false, nil
}

func (s *Server) postTestRun(ctx context.Context, at topic, run testRun) error {
	body, err := json.Marshal(run)
	if err != nil {
		return failure.Errorf(failure.InvariantViolated, "encode test run: %w", err)
	}
	_, err = s.service.Send(ctx, post.Request{
		Method: http.MethodPost, URL: s.cfg.URL + s.testRunsURL(at), Delivers: true,
		ContentType: "application/json", Body: body,
	})
	return err
}

// get reads the answer to a query into v.
func (s *Server) get(ctx context.Context, path string, query url.Values, v any) error {
	a, err := s.service.Send(ctx, post.Request{Method: http.MethodGet, URL: s.cfg.URL + path + "?" + query.Encode()})
	if err != nil {
		return err
	}
	return s.service.Decode(a, v)
}
