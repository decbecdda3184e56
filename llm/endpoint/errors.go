package endpoint

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
)

// An Error is the error with which an endpoint answered. Its text is ours: nothing of the
// endpoint's is quoted but a code that has the form of one.
type Error struct {
	text string
	said said
}

func (e Error) Error() string { return e.text }

// A said is what an endpoint's error says, in any of the shapes that servers give it. It is
// untrusted and never quoted.
type said struct {
	status int
	codes  []string // codes, types, reasons and words for the status, in lower case
	params []string // the fields of the request that it names
	text   string   // all messages, in lower case and with single blanks
	header http.Header
}

// maxReason is how much of a message is searched for the reason of a refusal: some servers
// quote the request after it.
const maxReason = 600

// maxPage is how much of an HTML page is searched for its text.
const maxPage = 64 << 10

// The members of an error that are read.
var (
	messageKeys = []string{"message", "msg", "detail", "error", "error_message", "error_msg", "errmsg", "raw", "title", "description", "param_message", "status_msg"}
	codeKeys    = []string{"code", "type", "status", "reason", "error_type", "error_code", "error", "object", "finish_reason"}
	paramKeys   = []string{"param", "loc", "field", "path", "parameter"}
	nestedKeys  = []string{"error", "errors", "detail", "details", "innererror", "inner_error", "metadata", "response", "body", "message", "raw", "data", "previous_errors", "base_resp"}
)

// read returns what the JSON or text in body says. If it has a status of its own, the first
// one is in said.
func read(body []byte) said {
	s := said{header: http.Header{}}
	var v any
	if json.Unmarshal(body, &v) != nil {
		s.say(string(body))
		return s
	}
	s.walk(v, 0)
	return s
}

// walk collects what v says, and the JSON in its texts.
func (s *said) walk(v any, depth int) {
	if depth > 8 {
		return
	}
	switch v := v.(type) {
	case []any:
		for _, e := range v[:min(len(v), 20)] {
			s.walk(e, depth+1)
		}
	case string:
		var inner any
		if text := strings.TrimSpace(v); len(text) > 0 && (text[0] == '{' || text[0] == '[') && json.Unmarshal([]byte(text), &inner) == nil {
			s.walk(inner, depth+1)
			return
		}
		s.say(v)
	case map[string]any:
		for _, key := range codeKeys {
			switch code := v[key].(type) {
			case string:
				s.code(code)
			case float64:
				s.code(strconv.FormatFloat(code, 'f', -1, 64))
			}
		}
		for _, key := range paramKeys {
			for _, p := range listOf(v[key]) {
				if name, ok := p.(string); ok {
					s.params = append(s.params, strings.ToLower(name))
					s.say(name) // some servers have the message there
				}
			}
		}
		if delay, ok := v["retryDelay"].(string); ok { // of Google
			s.say("retry in " + delay)
		}
		headers, _ := v["headers"].(map[string]any) // of OpenRouter
		for name, value := range headers {
			if text, ok := value.(string); ok {
				s.header.Set(name, text)
			}
		}
		if delay, ok := v["resets_in_seconds"].(float64); ok { // of OpenAI
			s.say(fmt.Sprintf("retry in %.0f s", delay))
		}
		for _, key := range messageKeys {
			if text, ok := v[key].(string); ok {
				s.walk(text, depth+1)
			}
		}
		for _, key := range nestedKeys {
			if _, isText := v[key].(string); !isText {
				s.walk(v[key], depth+1)
			}
		}
	}
}

func listOf(v any) []any {
	if list, ok := v.([]any); ok {
		return list
	}
	return []any{v}
}

var codeForm = regexp.MustCompile(`^[a-z0-9][a-z0-9_. -]{0,60}$`)

// code takes a code. A number between 400 and 599 is the status of the error.
func (s *said) code(code string) {
	code = strings.ToLower(strings.TrimSpace(code))
	if n, err := strconv.Atoi(code); err == nil && n >= 400 && n < 600 {
		if s.status == 0 {
			s.status = n
		}
		return
	}
	if codeForm.MatchString(code) && !slices.Contains(s.codes, code) {
		s.codes = append(s.codes, code)
	}
}

// page matches the beginning of an HTML page, and markup what of a page is not its text.
var (
	page   = regexp.MustCompile(`(?i)^\s*<(?:!doctype|html|head)\b`)
	markup = regexp.MustCompile(`(?is)<style.*?</style>|<script.*?</script>|<[^>]*>`)
)

func (s *said) say(text string) {
	if page.MatchString(text) {
		text = markup.ReplaceAllString(text[:min(len(text), maxPage)], " ")
	}
	text = strings.ToLower(strings.Join(strings.Fields(text[:min(len(text), 4*maxReason)]), " "))
	if text != "" && len(s.text) < maxReason {
		s.text = strings.TrimSpace(s.text + " " + text)
		s.text = s.text[:min(len(s.text), maxReason)]
	}
}

// classify returns the error that an endpoint's answer of that status is. The status of an
// error within an answer of status 200 is its own, or 500.
func classify(status int, body []byte, h http.Header) error {
	s := read(body)
	if status != http.StatusOK {
		s.status = status
	}
	return s.failure(h)
}

// Refused returns the error of one request of a batch, which the endpoint reported as a
// status and a body.
func Refused(status int, body []byte) error { return classify(status, body, nil) }

// shownCode matches a code that may be shown: lower-case words.
var shownCode = regexp.MustCompile(`^[a-z]{2,20}(?:_[a-z]{1,20}){1,5}$`)

// failure returns the error of s with its class.
func (s said) failure(h http.Header) error {
	m := s.meaning()
	if s.status == 0 {
		s.status = http.StatusInternalServerError
	}
	upstream := strconv.Itoa(s.status)
	code := m.code
	if i := slices.IndexFunc(s.codes, shownCode.MatchString); code == "" && m.class == failure.EndpointRefused && i >= 0 {
		code = s.codes[i]
	}
	if code != "" {
		upstream += " " + code
	}
	return &failure.Error{
		Class:      m.class,
		Err:        Error{fmt.Sprintf("model endpoint answered %s: %s", upstream, m.text), s},
		RetryAfter: cmp.Or(retryAfter(s.status, h, s.text), retryAfter(s.status, s.header, "")),
		Upstream:   upstream,
		RequestID:  requestID(h),
	}
}

// waits matches how long an error says to wait, in its words.
var waits = regexp.MustCompile(`(?:try again|retry|wait)\D{0,20}?((?:\d+m)?\d[\d.]*) ?(?:(ms|s|m)|(s)econds?|(m)inutes?)\b`)

// resets matches the name of a header that says when a limit is reset. In the name of the one that
// says what remains of the limit, another word is in its place.
var resets = regexp.MustCompile(`^(.*Ratelimit.*-)Reset(.*?)(?:-After)?$`)

// used matches the header RateLimit with a limit that is used up, and the seconds until it is reset.
var used = regexp.MustCompile(`;\s*r=0;\s*t=(\d+)`)

// retryAfter returns the delay that the endpoint asks for: in the header for it, in the words of its
// error, or, if a limit is reached, in the header that says when the limit is reset.
func retryAfter(status int, h http.Header, text string) time.Duration {
	wait := failure.RetryAfter(h, time.Now())
	if m := waits.FindStringSubmatch(text); wait == 0 && m != nil {
		wait, _ = time.ParseDuration(m[1] + m[2] + m[3] + m[4])
	}
	if wait == 0 && status == http.StatusTooManyRequests {
		if m := used.FindStringSubmatch(h.Get("Ratelimit")); m != nil {
			wait = resetAfter(m[1], time.Now())
		}
		for name := range h {
			if m := resets.FindStringSubmatch(name); m != nil && slices.Contains([]string{"", "0"}, h.Get(m[1]+"Remaining"+m[2])) {
				wait = max(wait, resetAfter(h.Get(name), time.Now()))
			}
		}
	}
	return min(max(wait, 0), failure.DelayCeiling)
}

// resetAfter returns the time until a limit is reset: a duration, seconds, a time, or a time in
// seconds or milliseconds since 1970.
func resetAfter(value string, now time.Time) time.Duration {
	if at, err := time.Parse(time.RFC3339, value); err == nil {
		return at.Sub(now)
	}
	if d, err := time.ParseDuration(value); err == nil {
		return d
	}
	n, err := strconv.ParseFloat(value, 64)
	switch {
	case err != nil:
		return 0
	case n > 1e11:
		return time.UnixMilli(int64(n)).Sub(now)
	case n > 1e8:
		return time.Unix(int64(n), 0).Sub(now)
	}
	return time.Duration(n * float64(time.Second))
}
