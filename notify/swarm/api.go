package swarm

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
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

// A comment is one of ours. Its last line is keyPrefix with its keys.
type comment struct {
	ID   int64  `json:"id"`
	User string `json:"user"`
	Body string `json:"body"`
}

// keysOf returns the words after keyPrefix, nil for a text without a last line with keys.
func keysOf(text string) []string {
	text = strings.TrimSpace(text)
	line, ok := strings.CutPrefix(text[strings.LastIndex(text, "\n")+1:], keyPrefix)
	if !ok {
		return nil
	}
	return strings.Fields(line)
}

// hasKey reports whether text has one of the tokens as a key.
func hasKey(text string, tokens []string) bool {
	return slices.ContainsFunc(keysOf(text), func(k string) bool { return slices.Contains(tokens, k) })
}

// A commentList is a list of comments, or an object with the comments by their IDs: the
// documentation of the API shows objects, and some versions answer with lists.
type commentList []comment

func (l *commentList) UnmarshalJSON(text []byte) error {
	if json.Unmarshal(text, (*[]comment)(l)) == nil {
		return nil
	}
	byID := map[string]comment{}
	err := json.Unmarshal(text, &byID)
	*l = slices.SortedFunc(maps.Values(byID), func(a, b comment) int { return cmp.Compare(a.ID, b.ID) })
	return err
}

// comments returns the comments of our account that have keys. all is false if there are
// more comments than it reads.
func (s *Server) comments(ctx context.Context, at topic) (own []comment, all bool, err error) {
	query := url.Values{"topic": {at.name}, "max": {"100"}}
	last := int64(0)
	for range maxPages {
		var page struct {
			Comments commentList `json:"comments"`
			LastSeen int64       `json:"lastSeen"`
		}
		if err := s.get(ctx, "/api/v9/comments", query, &page); err != nil {
			return nil, false, err
		}
		for _, c := range page.Comments {
			if c.User == s.cfg.User && len(keysOf(c.Body)) > 0 {
				own = append(own, c)
			}
		}
		if len(page.Comments) == 0 || page.LastSeen <= last {
			return own, true, nil
		}
		last = page.LastSeen
		query.Set("after", fmt.Sprint(last))
	}
	return own, false, nil
}

// postComment returns the id of the new comment. It is on the line of f, unless f is nil
// or the server does not find the file in the topic.
func (s *Server) postComment(ctx context.Context, at topic, body string, f *review.Finding) (int64, error) {
	form := url.Values{"topic": {at.name}, "body": {body}, "silenceNotification": {"true"}, "taskState": {"comment"}}
	if f != nil && !strings.Contains(f.Path, "[REDACTED") {
		form.Set("context[file]", f.Path)
		if f.StartLine > 0 {
			line, _, _ := strings.Cut(f.Quote, "\n")
			form.Set("context[rightLine]", fmt.Sprint(f.StartLine))
			form.Set("context[content][]", line)
		}
		if at.review > 0 {
			form.Set("context[version]", fmt.Sprint(at.version))
		}
	}
	id, err := s.sendComment(ctx, http.MethodPost, "/api/v9/comments", form, true)
	if e, ok := errors.AsType[*failure.Error](err); ok && e.Upstream == "400" && form.Has("context[file]") {
		return s.postComment(ctx, at, body, nil)
	}
	return id, err
}

// editComment replaces the text of a comment. It may be repeated.
func (s *Server) editComment(ctx context.Context, id int64, body string) error {
	form := url.Values{"body": {body}, "silenceNotification": {"true"}}
	_, err := s.sendComment(ctx, http.MethodPatch, fmt.Sprintf("/api/v9/comments/%d", id), form, false)
	return err
}

func (s *Server) sendComment(ctx context.Context, method, path string, form url.Values, delivers bool) (int64, error) {
	a, err := s.service.Send(ctx, post.Request{
		Method: method, URL: s.cfg.URL + path, Delivers: delivers,
		ContentType: "application/x-www-form-urlencoded", Body: []byte(form.Encode()),
	})
	if err != nil {
		return 0, err
	}
	var answer struct {
		Comment comment `json:"comment"`
	}
	if err := s.service.Decode(a, &answer); err != nil {
		return 0, err
	}
	if answer.Comment.ID == 0 && delivers {
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
	r, err := post.JSON(s.cfg.URL+s.testRunsURL(at), "", run)
	if err == nil {
		_, err = s.service.Send(ctx, r)
	}
	return err
}

func (s *Server) get(ctx context.Context, path string, query url.Values, v any) error {
	a, err := s.service.Send(ctx, post.Request{Method: http.MethodGet, URL: s.cfg.URL + path + "?" + query.Encode()})
	if err != nil {
		return err
	}
	return s.service.Decode(a, v)
}
