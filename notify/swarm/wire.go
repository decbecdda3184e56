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

	"github.com/criticizer/criticizer/internal/failure"
)

// maxAnswer is more than a page of comments has.
const maxAnswer = 8 << 20

// get reads into answer, which may be nil. Nothing is in doubt after it.
func (s *Server) get(ctx context.Context, path string, query url.Values, answer any) error {
	r, err := s.do(ctx, http.MethodGet, path+"?"+query.Encode(), "", "")
	if err != nil {
		return failure.Errorf(failure.NetworkUnreachable, "ask P4 Code Review: %w", err)
	}
	return r.decode(answer, failure.UpstreamInternal)
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
	r, err := s.do(ctx, http.MethodPost, path, kind, body)
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return failure.Errorf(failure.NetworkUnreachable, "post to P4 Code Review: %w", err)
	}
	if err != nil {
		return failure.Errorf(failure.DeliveryAmbiguous, "post to P4 Code Review: no answer, and it may have taken the message: %w", err)
	}
	return r.decode(answer, failure.DeliveryAmbiguous)
}

// A reply is an answer that was read to its end.
type reply struct {
	status int
	header http.Header
	body   []byte
}

func (s *Server) do(ctx context.Context, method, path, kind, body string) (reply, error) {
	req, err := http.NewRequestWithContext(ctx, method, s.cfg.URL+path, strings.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	req.SetBasicAuth(s.cfg.User, s.cfg.Ticket.Reveal())
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	resp, err := s.http.Do(req)
	if e, ok := errors.AsType[*url.Error](err); ok {
		return reply{}, e.Err // the rest is where to
	}
	if err != nil {
		return reply{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	return reply{resp.StatusCode, resp.Header, text}, err
}

// decode takes an answer in. failed is the class of a server that failed.
func (r reply) decode(answer any, failed failure.Class) error {
	if r.status/100 != 2 {
		return r.refused(failed)
	}
	if answer == nil {
		return nil
	}
	if err := json.Unmarshal(r.body, answer); err != nil {
		return failure.Errorf(failed, "read the answer of P4 Code Review: it is not what its API says")
	}
	return nil
}

// refused is the error of an answer that is not a yes. Its text may quote
// anything and stays out.
func (r reply) refused(failed failure.Class) error {
	class, advice := failure.ConfigInvalid, "check swarm.url and that the server has this API"
	switch {
	case r.status == http.StatusTooManyRequests:
		class, advice = failure.RateLimited, "it asks to be slower"
	case r.status == http.StatusServiceUnavailable:
		class, advice = failure.ServerBusy, "it takes nothing now"
	case r.status >= 500:
		class, advice = failed, "it failed"
	case r.status == http.StatusUnauthorized, r.status == http.StatusForbidden:
		class, advice = failure.AuthDenied, "renew CRITICIZER_SWARM_TICKET, and let swarm.user see the review"
	}
	e := failure.Errorf(class, "P4 Code Review answered %d: %s", r.status, advice)
	e.Upstream = fmt.Sprint(r.status)
	e.RetryAfter = failure.RetryAfter(r.header, time.Now())
	return e
}
