package mail

import (
	"context"
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

// A step is a part of an SMTP conversation that can fail, as errors name it.
type step string

const (
	stepConnect step = "the connection" // greeting, TLS and sign-in included
	stepMail    step = "MAIL"
	stepRcpt    step = "RCPT"
	stepData    step = "DATA"
	stepDot     step = "the message" // at and after the server's go-ahead
)

// A reply is an SMTP reply without its text, which may quote addresses. A
// client decides by the code alone (RFC 5321 4.2).
type reply struct {
	at       step
	code     int
	enhanced string // such as 5.1.1, empty if the server gives none
}

var enhancedPattern = regexp.MustCompile(`^[245]\.\d{1,3}\.\d{1,3}\b`)

// String is the reply as operators look it up: 550 5.1.1.
func (r reply) String() string {
	return strings.TrimSpace(strconv.Itoa(r.code) + " " + r.enhanced)
}

// in reports whether the enhanced code is one of the given, where a trailing
// dot stands for all below it.
func (r reply) in(codes ...string) bool {
	for _, c := range codes {
		if r.enhanced == c || strings.HasSuffix(c, ".") && strings.HasPrefix(r.enhanced, c) {
			return true
		}
	}
	return false
}

// A rule gives the replies it matches their class. The first that matches
// decides. Where digits and enhanced code disagree the digits win, so no rule
// on a code of class 5 comes before that for 4yz.
type rule struct {
	matches func(reply) bool
	class   failure.Class
	advice  string
}

var rules = []rule{
	{func(r reply) bool { return r.code/100 == 4 },
		failure.UpstreamUnavailable, "it asks to try again later"},
	{func(r reply) bool { return r.code == 530 || r.code == 534 || r.code == 535 || r.code == 538 },
		failure.AuthDenied, "check Username and Password"},
	{func(r reply) bool {
		return (r.at == stepConnect || r.at == stepMail) && r.in("5.7.0", "5.7.8", "5.7.9")
	},
		failure.AuthDenied, "check Username and Password"},
	{func(r reply) bool { return r.at == stepRcpt && r.code == 552 && !r.in("5.2.", "5.3.4") },
		failure.UpstreamUnavailable, "it asks to try again later"}, // RFC 5321 4.5.3.1.10
	{func(r reply) bool { return r.in("5.3.4") || r.code == 552 && !r.in("5.2.") },
		failure.TooLarge, "raise its limit for the size of a message"},
	{func(r reply) bool { return r.code <= 504 || r.code == 521 || r.in("5.5.") },
		failure.ConfigInvalid, "check that Host and Port are those of a server that takes mail in"},
	{func(r reply) bool { return r.in("5.1.7", "5.1.8") || r.at == stepMail },
		failure.ConfigInvalid, "it refuses the sender: check From"},
	{func(r reply) bool { return r.in(ownDomain...) },
		failure.ConfigInvalid, "it refuses the domain of From: check its SPF, DKIM, DMARC and TLS records"},
	{func(r reply) bool { return r.at == stepConnect },
		failure.ConfigInvalid, "it refuses this host: check Host and Port and whom that server serves"},
	{func(reply) bool { return true },
		failure.RecipientRejected, "correct or waive the recipient"},
}

// ownDomain are the enhanced codes that blame the sender's domain: a refusal
// that hits every recipient (RFC 7372, RFC 8689).
var ownDomain = []string{
	"5.7.20", "5.7.21", "5.7.22", "5.7.23", "5.7.24", "5.7.25", "5.7.26", "5.7.27", "5.7.29", "5.7.30",
}

// classify turns what broke the conversation at the given step into an error
// that says whether the message may be sent again (review-notification 8.1).
func classify(ctx context.Context, at step, err error) error {
	if e, ok := errors.AsType[*failure.Error](err); ok {
		return e // it has its class
	}
	if e, ok := errors.AsType[*textproto.Error](err); ok && e.Code >= 400 {
		return refused(reply{at, e.Code, enhancedPattern.FindString(e.Msg)})
	}
	if ctx.Err() != nil {
		err = ctx.Err() // the connection broke because we closed it
	}
	if at == stepDot {
		return failure.Errorf(failure.DeliveryAmbiguous,
			"send mail: the mail server did not confirm the message, which may have been accepted: look it up before sending it again: %w", wordless(err))
	}
	if _, ok := errors.AsType[*textproto.Error](err); ok && at != stepConnect {
		return failure.Errorf(failure.UpstreamInternal, "send mail: the mail server answered %s as if it were another command; nothing was sent", at)
	}
	return failure.Errorf(unanswered(err), "send mail: %s failed and nothing was sent; check that Host and Port are right and the mail server is up: %w", at, wordless(err))
}

// refused is the error of a reply that says no.
func refused(r reply) error {
	i := slices.IndexFunc(rules, func(rule rule) bool { return rule.matches(r) })
	e := failure.Errorf(rules[i].class, "send mail: the mail server answered %s to %s: %s", r, r.at, rules[i].advice)
	e.Upstream = r.String()
	return e
}

// unanswered is the class of an error other than a refusal, before the message
// was handed over: the network's, or a server that is not what the
// configuration says (no TLS, no sign-in, another certificate, not SMTP).
func unanswered(err error) failure.Class {
	if op, ok := errors.AsType[*net.OpError](err); ok && (op.Op == "remote error" || op.Op == "local error") {
		return failure.ConfigInvalid // a TLS alert: the two do not agree
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

// wordless is err without what the server wrote, which may quote addresses.
func wordless(err error) error {
	_, odd := errors.AsType[*textproto.Error](err)
	_, broken := errors.AsType[textproto.ProtocolError](err)
	if odd || broken {
		return errors.New("its reply is not one SMTP knows here")
	}
	return err
}
