package swarm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/criticizer/criticizer/failure"
)

// maxAnswer is more than a page of comments has.
const maxAnswer = 8 << 20

// get reads into answer, which may be nil. Nothing is in doubt after it.
func (s *Server) get(ctx context.Context, path string, query url.Values, answer any) error {
	resp, err := s.do(ctx, http.MethodGet, path+"?"+query.Encode(), "", "")
	if err != nil {
		return failure.Errorf(failure.NetworkUnreachable, "ask P4 Code Review: %w", err)
	}
	return s.read(resp, answer, failure.UpstreamInternal)
}

// postComment returns the id of the new comment.
func (s *Server) postComment(ctx context.Context, at place, body string) (int64, error) {
	form := url.Values{"topic": {at.topic}, "body": {body}, "silenceNotification": {"true"}, "taskState": {"comment"}}
	var answer struct {
		Comment struct {
			ID int64 `json:"id"`
		} `json:"comment"`
	}
	err := s.post(ctx, "/api/v9/comments", "application/x-www-form-urlencoded", form.Encode(), &answer)
	if err == nil && answer.Comment.ID == 0 {
		err = failure.Errorf(failure.DeliveryAmbiguous, "post to P4 Code Review: its answer names no comment")
	}
	return answer.Comment.ID, err
}

func (s *Server) postTestRun(ctx context.Context, at place, run testRun) error {
	body, err := json.Marshal(run)
	if err != nil {
		return failure.Errorf(failure.InvariantViolated, "encode test run: %w", err)
	}
	return s.post(ctx, fmt.Sprintf("/api/v11/reviews/%d/testruns", at.review), "application/json", string(body), nil)
}

// post may have been taken whenever no clear answer comes.
func (s *Server) post(ctx context.Context, path, kind, body string, answer any) error {
	resp, err := s.do(ctx, http.MethodPost, path, kind, body)
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return failure.Errorf(failure.NetworkUnreachable, "post to P4 Code Review: %w", err)
	}
	if err != nil {
		return failure.Errorf(failure.DeliveryAmbiguous, "post to P4 Code Review: no answer, and it may have taken the message: %w", err)
	}
	return s.read(resp, answer, failure.DeliveryAmbiguous)
}

func (s *Server) do(ctx context.Context, method, path, kind, body string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, s.cfg.URL+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.SetBasicAuth(s.cfg.User, s.cfg.Ticket.Reveal())
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	resp, err := s.http.Do(req)
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err // the rest is where to
	}
	return resp, err
}

// read takes an answer in. failed is the class of a server that failed.
func (s *Server) read(resp *http.Response, answer any, failed failure.Class) error {
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode/100 != 2 {
		return refused(resp, failed)
	}
	if answer == nil {
		return nil
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(answer); err != nil {
		return failure.Errorf(failed, "read the answer of P4 Code Review: it is not what its API says")
	}
	return nil
}

// refused is the error of an answer that is not a yes. Its text may quote
// anything and stays out.
func refused(resp *http.Response, failed failure.Class) error {
	class, advice := failure.ConfigInvalid, "check swarm.url and that the server has this API"
	switch status := resp.StatusCode; {
	case status == http.StatusTooManyRequests:
		class, advice = failure.RateLimited, "it asks to be slower"
	case status == http.StatusServiceUnavailable:
		class, advice = failure.ServerBusy, "it takes nothing now"
	case status >= 500:
		class, advice = failed, "it failed"
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		class, advice = failure.AuthDenied, "renew CRITICIZER_SWARM_TICKET, and let swarm.user see the review"
	}
	e := failure.Errorf(class, "P4 Code Review answered %d: %s", resp.StatusCode, advice)
	e.Upstream = fmt.Sprint(resp.StatusCode)
	e.RetryAfter = failure.RetryAfter(resp.Header, time.Now())
	return e
}
