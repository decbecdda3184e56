// Package post makes the HTTP requests of the notifiers: webhook, P4 Code
// Review, on-call and the embedded inbox. It decides in one place how
// long a request may take, which failure class an answer has, and when a
// message is in doubt. headline.go and text.go word what several notifiers say.
//
// A request that delivers a message is in doubt ([failure.DeliveryAmbiguous]) if any of it was
// sent and the service did not answer, or its answer is incomplete. A 5xx is retried with the
// attempts of the stage, under the same idempotency key (processing 8.1).
package post

import (
	"bytes"
	"cmp"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
)

const (
	// Timeout bounds one request, from dialing to the end of the answer.
	Timeout = 30 * time.Second
	// maxAnswer bounds how much of an answer is read: 8 MiB is more than a page
	// of comments has.
	maxAnswer = 8 << 20
)

// A Service is an HTTP API. It is safe for concurrent use. The texts of its
// errors contain neither its address nor anything it answered: both may hold
// secrets or mail addresses.
type Service struct {
	// Name is the name of the service in errors.
	Name string
	// Denied is the hint for an answer that rejects the credential, Invalid the
	// hint for an answer that no other row of the status table covers.
	Denied, Invalid string
	// Authorize adds the credential to a request. Default: none is added.
	Authorize func(*http.Request)
}

// client never follows a redirect, which could carry a message or a credential
// to another host. It opens a connection per request: on a reused one,
// net/http repeats a request that has an Idempotency-Key by itself.
var client = &http.Client{
	Timeout:       Timeout,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, ForceAttemptHTTP2: true},
}

// A Request is one request to a service.
type Request struct {
	Method string
	URL    string
	// ContentType is the media type of Body.
	ContentType string
	Body        []byte
	// Key is sent as Idempotency-Key, if set.
	Key string
	// Delivers is set if the service may act on the request: then a missing or unclear
	// answer leaves a message in doubt.
	Delivers bool
}

// JSON returns a request that delivers v as JSON under an idempotency key.
func JSON(address, key string, v any) (Request, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return Request{}, failure.Errorf(failure.InvariantViolated, "encode request: %w", err)
	}
	return Request{Method: http.MethodPost, URL: address, ContentType: "application/json; charset=utf-8", Body: body, Key: key, Delivers: true}, nil
}

// An Answer is what a service answered.
type Answer struct {
	Status   int
	Header   http.Header
	Body     []byte
	delivers bool
	readErr  error // the body is incomplete
}

// Send makes the request once and returns an accepted answer. An answer with
// another status than 2xx, or one that refuses the message in its text, is an error,
// classified by the status table.
func (s *Service) Send(ctx context.Context, r Request) (Answer, error) {
	a, err := s.Do(ctx, r)
	if status := a.refused(); err == nil && r.Delivers && status != 0 {
		a.Status = status
	}
	if err == nil && a.Status/100 != 2 {
		err = s.rejected(a)
	}
	return a, err
}

// Do makes the request once and returns the answer with any status.
func (s *Service) Do(ctx context.Context, r Request) (Answer, error) {
	if err := ctx.Err(); err != nil {
		return Answer{}, failure.Errorf(failure.NetworkTimeout, "%s: nothing was sent: %w", s.Name, err)
	}
	var sent atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { sent.Store(true) }})
	req, err := http.NewRequestWithContext(ctx, r.Method, r.URL, bytes.NewReader(r.Body))
	if err != nil {
		return Answer{}, failure.Errorf(failure.ConfigInvalid, "%s: its URL is malformed", s.Name)
	}
	if r.ContentType != "" {
		req.Header.Set("Content-Type", r.ContentType)
	}
	if r.Key != "" {
		req.Header.Set("Idempotency-Key", r.Key)
	}
	if s.Authorize != nil {
		s.Authorize(req)
	}
	resp, err := client.Do(req)
	if err != nil {
		return Answer{}, s.unanswered(err, r.Delivers && sent.Load())
	}
	defer func() { _ = resp.Body.Close() }()
	a := Answer{Status: resp.StatusCode, Header: resp.Header, delivers: r.Delivers}
	a.Body, a.readErr = io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	return a, nil
}

// refusal is what Microsoft's connectors for Teams answer with status 200
// (MicrosoftDocs/msteams-docs#400, #1736 and #1810).
var refusal = regexp.MustCompile(`delivery failed with error(?:.* HTTP error ([345]\d\d))?`)

// refused returns the status that an answer means by its text if that refuses the message, and
// 0 for any other text. Slack's API and Rocket.Chat answer with a JSON object in which ok or
// success is false.
func (a Answer) refused() int {
	var told struct{ OK, Success *bool }
	if json.Unmarshal(a.Body, &told) == nil && slices.ContainsFunc([]*bool{told.OK, told.Success}, func(v *bool) bool { return v != nil && !*v }) {
		return http.StatusBadRequest
	}
	found := refusal.FindSubmatch(a.Body)
	if found == nil {
		return 0
	}
	status, err := strconv.Atoi(string(found[1]))
	if err != nil {
		return http.StatusBadGateway // it names none
	}
	return status
}

// unanswered returns the error of a request without an answer.
func (s *Service) unanswered(err error, inDoubt bool) error {
	class, ok := failure.NetworkClass(err)
	if !ok {
		class = failure.NetworkUnreachable
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err // its text holds the URL
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err // its text holds the address
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		err = errors.New(dns.Err) // its text holds the host
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		err = errors.New("its certificate is for another host") // its text holds both hosts
	}
	if inDoubt {
		return failure.Errorf(failure.DeliveryAmbiguous, "%s: no answer; it may have accepted the message: %w", s.Name, err)
	}
	return failure.Errorf(class, "%s: cannot be reached: %w", s.Name, err)
}

// statuses maps a status to its class, first match first. The classes of a
// failed server and of rejected credentials are set by class.
var statuses = []struct {
	from, to int
	class    failure.Class
	hint     string
}{
	{401, 401, failure.AuthDenied, ""},
	{403, 403, failure.AuthDenied, ""},
	{413, 413, failure.TooLarge, "it accepts no message of this size"},
	{429, 429, failure.RateLimited, "it asks for a lower rate"},
	{503, 503, failure.ServerBusy, "it accepts no requests now"},
	{500, 599, failure.UpstreamInternal, "it failed"},
}

// rejected returns the error of an answer that is not 2xx.
func (s *Service) rejected(a Answer) error {
	class, hint := failure.ConfigInvalid, s.Invalid
	for _, row := range slices.Backward(statuses) {
		if row.from <= a.Status && a.Status <= row.to {
			class, hint = row.class, cmp.Or(row.hint, s.Denied)
		}
	}
	e := failure.Errorf(class, "%s answered %d: %s", s.Name, a.Status, hint)
	e.Upstream = fmt.Sprint(a.Status)
	e.RequestID = cmp.Or(a.Header.Get("X-Request-Id"), a.Header.Get("X-Slack-Req-Id"), a.Header.Get("X-Correlation-Id"))
	e.RetryAfter = failure.RetryAfter(a.Header, time.Now())
	return e
}

// Decode reads the JSON of an accepted answer into v.
func (s *Service) Decode(a Answer, v any) error {
	if a.readErr == nil && json.Unmarshal(a.Body, v) == nil {
		return nil
	}
	class := failure.UpstreamInternal
	if a.delivers {
		class = failure.DeliveryAmbiguous // it has accepted the message
	}
	return failure.Errorf(class, "%s: its answer is incomplete or not the JSON of its API", s.Name)
}
