package mail

import (
	"context"
	_ "embed"
	"errors"
	"io"
	"net"
	"net/textproto"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/criticizer/criticizer/internal/failure"
)

// A step is a part of an SMTP conversation, as refusals.txt names it.
type step string

const (
	stepConnect step = "connect" // the greeting
	stepHello   step = "EHLO"    // and STARTTLS
	stepAuth    step = "AUTH"
	stepMail    step = "MAIL"
	stepRcpt    step = "RCPT"
	stepData    step = "DATA"
	stepDot     step = "dot" // from the server's go-ahead on
)

// String returns the step as errors name it.
func (s step) String() string {
	switch s {
	case stepConnect:
		return "the connection"
	case stepDot:
		return "the message"
	}
	return string(s)
}

var steps = []step{stepConnect, stepHello, stepAuth, stepMail, stepRcpt, stepData, stepDot}

// A fault is whose fault a refusal is, by the names of refusals.txt, with the class of its error
// and what to do about it.
type fault struct {
	class failure.Class
	hint  string
}

var faults = map[string]fault{
	"address": {failure.RecipientRejected, "correct or waive the recipient"},
	"message": {failure.ContentPolicy, "it rejects the content: have it accept mail of this account, or review the change by hand"},
	"size":    {failure.TooLarge, "raise its limit for the size of a message"},
	"account": {failure.AuthDenied, "check the account in mail.server and its password, and that the account may send"},
	"sender":  {failure.ConfigInvalid, "it rejects the sender: check From, that the account may send as From, and the SPF, DKIM and DMARC records of its domain"},
	"host":    {failure.ConfigInvalid, "it rejects this host: check mail.server and mail.ehlo_name, and that the server relays for this host and account"},
	"quota":   {failure.QuotaExhausted, "the account has used up its limit: wait, or raise it"},
	"later":   {failure.UpstreamUnavailable, "it asks to try again later"},
	"unknown": {failure.PermissionDenied, "it does not name the recipient's address: find the reason in its log, and have it accept this host, the account and From"},
}

// A rule is a row of refusals.txt. A nil field matches all.
type rule struct {
	number   int // from 1
	fault    string
	at       []step
	codes    []string // beginnings
	enhanced []string // without the class; one that ends in a dot stands for all below it, - for none
	phrases  *regexp.Regexp
	sources  int
	examples []string // each a step, and a reply that the row decides
}

//go:embed refusals.txt
var refusals string

var rules = parseRules(refusals)

// parseRules returns the rows of refusals.txt, and panics if one is malformed.
func parseRules(text string) (rules []rule) {
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if strings.HasPrefix(line, "  =") {
			rules[len(rules)-1].sources++
			continue
		}
		if example, ok := strings.CutPrefix(line, "  > "); ok {
			rules[len(rules)-1].examples = append(rules[len(rules)-1].examples, example)
			continue
		}
		columns := strings.SplitN(line, " |", 5)
		list := func(i int) []string {
			if words := strings.Fields(columns[i]); words[0] != "*" {
				return words
			}
			return nil
		}
		r := rule{number: len(rules) + 1, fault: columns[0], codes: list(2), enhanced: list(3)}
		for _, name := range list(1) {
			if !slices.Contains(steps, step(name)) {
				panic("refusals.txt: unknown step: " + line)
			}
			r.at = append(r.at, step(name))
		}
		if _, ok := faults[r.fault]; !ok {
			panic("refusals.txt: unknown fault: " + line)
		}
		if phrases := strings.TrimSpace(columns[4]); phrases != "" {
			pattern := strings.NewReplacer(" … ", ".{0,40}", ` \| `, "|").Replace(regexp.QuoteMeta(phrases))
			r.phrases = regexp.MustCompile(`\b(?:` + pattern + `)`)
		}
		rules = append(rules, r)
	}
	return rules
}

// A reply is a negative SMTP reply.
type reply struct {
	at       step
	code     int
	enhanced string // such as 5.1.1, empty if the server sent none
	text     string // on one line
}

// enhancedPattern matches the enhanced code that begins a text. IronPort writes #5.1.0.
var enhancedPattern = regexp.MustCompile(`^\W?([245]\.\d{1,3}\.\d{1,3})\b`)

// repeatedPattern matches the codes at the beginning of a later line, which bounces quote.
var repeatedPattern = regexp.MustCompile(` [45]\d\d[- ][45]\.\d{1,3}\.\d{1,3}\b`)

func newReply(at step, code int, text string) reply {
	r := reply{at: at, code: code, text: repeatedPattern.ReplaceAllString(strings.Join(strings.Fields(text), " "), "")}
	if found := enhancedPattern.FindStringSubmatch(r.text); found != nil {
		r.enhanced = found[1]
	}
	return r
}

// String returns the codes: 550 5.1.1.
func (r reply) String() string {
	return strings.TrimSpace(strconv.Itoa(r.code) + " " + r.enhanced)
}

// rule returns the first row that matches. If the digits and the class of the enhanced code
// disagree, the digits count.
func (r reply) rule() rule {
	code, enhanced, text := strconv.Itoa(r.code), "-", strings.ToLower(r.text)
	if r.enhanced != "" {
		enhanced = r.enhanced[len("5."):]
	}
	i := slices.IndexFunc(rules, func(row rule) bool {
		return (row.at == nil || slices.Contains(row.at, r.at)) &&
			(row.codes == nil || slices.ContainsFunc(row.codes, func(c string) bool { return strings.HasPrefix(code, c) })) &&
			(row.enhanced == nil || slices.ContainsFunc(row.enhanced, func(c string) bool {
				return enhanced == c || strings.HasSuffix(c, ".") && strings.HasPrefix(enhanced, c)
			})) &&
			(row.phrases == nil || row.phrases.MatchString(text))
	})
	return rules[i] // the last row matches all
}

// unexplained reports whether the refusal does not say whose fault it is.
func (r reply) unexplained() bool {
	row := r.rule()
	return row.fault == "unknown" || row.fault == "host" && row.at == nil && row.phrases == nil
}

// maxQuoted bounds the text of a server in an error, in characters.
const maxQuoted = 300

var addressPattern = regexp.MustCompile(`[^\s<>"'(),;:]*@[^\s<>"'(),;]*|[A-Za-z0-9+/=_-]{40,}`)

// quote returns the text of a reply without addresses, tokens, and the secrets given, such as
// the name of the account.
func (r reply) quote(secrets ...string) string {
	text := r.text
	for _, s := range secrets {
		local, _, _ := strings.Cut(s, "@")
		for _, s := range []string{s, local} {
			if s != "" {
				text = regexp.MustCompile(`(?i)(^|\W)`+regexp.QuoteMeta(s)+`($|\W)`).ReplaceAllString(text, "$1(removed)$2")
			}
		}
	}
	text = addressPattern.ReplaceAllString(text, "(removed)")
	if runes := []rune(text); len(runes) > maxQuoted {
		text = string(runes[:maxQuoted]) + "…"
	}
	return text
}

// classify converts an error at the given step of the conversation into one whose class
// decides whether the message may be sent again (notification 8.1). secrets are not quoted.
func classify(ctx context.Context, at step, err error, secrets ...string) error {
	if e, ok := errors.AsType[*failure.Error](err); ok {
		return e // it has its class
	}
	if e, ok := errors.AsType[*textproto.Error](err); ok && e.Code >= 400 {
		r := newReply(at, e.Code, e.Msg)
		f := faults[r.rule().fault]
		rejected := failure.Errorf(f.class, "send mail: the mail server answered %q to %s: %s",
			strings.TrimSpace(strconv.Itoa(r.code)+" "+r.quote(secrets...)), r.at, f.hint)
		rejected.Upstream = r.String()
		return rejected
	}
	if ctx.Err() != nil {
		err = ctx.Err() // the connection broke because we closed it
	}
	if at == stepDot {
		return failure.Errorf(failure.DeliveryAmbiguous,
			"send mail: the mail server did not confirm the message, and may have accepted it: look it up before sending it again: %w", withoutReply(err))
	}
	if _, ok := errors.AsType[*textproto.Error](err); ok && at != stepConnect && at != stepHello {
		return failure.Errorf(failure.UpstreamInternal, "send mail: the mail server answered %s with a reply to another command; nothing was sent", at)
	}
	return failure.Errorf(unansweredClass(err), "send mail: %s failed and nothing was sent; check that mail.server is right and the mail server is up: %w", at, withoutReply(err))
}

// unansweredClass returns the class of an error other than a negative reply,
// before the message was sent: a failure of the network, or a server that does
// not match the configuration (no TLS, no sign-in, another certificate, not SMTP).
func unansweredClass(err error) failure.Class {
	if op, ok := errors.AsType[*net.OpError](err); ok && (op.Op == "remote error" || op.Op == "local error") {
		return failure.ConfigInvalid // a TLS alert
	}
	if c, ok := failure.NetworkClass(err); ok {
		return c
	}
	switch {
	case errors.Is(err, context.Canceled):
		return failure.NetworkTimeout
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		return failure.NetworkUnreachable
	}
	return failure.ConfigInvalid
}

// withoutReply replaces an error that contains the server's text, which may quote
// addresses.
func withoutReply(err error) error {
	_, unexpected := errors.AsType[*textproto.Error](err)
	_, malformed := errors.AsType[textproto.ProtocolError](err)
	if unexpected || malformed {
		return errors.New("its reply is not valid SMTP here")
	}
	return err
}
