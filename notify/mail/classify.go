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

// A step is a part of an SMTP conversation, as errors name it.
type step string

const (
	stepConnect step = "the connection" // greeting, TLS and sign-in included
	stepMail    step = "MAIL"
	stepRcpt    step = "RCPT"
	stepData    step = "DATA"
	stepDot     step = "the message" // from the server's go-ahead on
)

// A reply is an SMTP reply without its text, which may quote addresses. A client
// decides by the code alone (RFC 5321 4.2).
type reply struct {
	at       step
	code     int
	enhanced string // such as 5.1.1, empty if the server sent none
}

var enhancedPattern = regexp.MustCompile(`^[245]\.\d{1,3}\.\d{1,3}\b`)

// String returns the codes: 550 5.1.1.
func (r reply) String() string {
	return strings.TrimSpace(strconv.Itoa(r.code) + " " + r.enhanced)
}

// in reports whether the enhanced code is one of codes. A code that ends in a dot
// stands for all codes below it.
func (r reply) in(codes ...string) bool {
	return slices.ContainsFunc(codes, func(c string) bool {
		return r.enhanced == c || strings.HasSuffix(c, ".") && strings.HasPrefix(r.enhanced, c)
	})
}

// A rule assigns a class to the replies it matches. The first match decides. If
// the digits and the enhanced code disagree, the digits count; therefore no rule
// on an enhanced code of class 5 comes before the rule for 4yz.
type rule struct {
	matches func(reply) bool
	class   failure.Class
	hint    string
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
		failure.ConfigInvalid, "check that Host and Port are those of a server that accepts mail"},
	{func(r reply) bool { return r.in("5.1.7", "5.1.8") || r.at == stepMail },
		failure.ConfigInvalid, "it rejects the sender: check From"},
	{func(r reply) bool { return r.in(senderDomainCodes...) },
		failure.ConfigInvalid, "it rejects the domain of From: check its SPF, DKIM, DMARC and TLS records"},
	{func(r reply) bool { return r.at == stepConnect },
		failure.ConfigInvalid, "it rejects this host: check Host and Port and which clients the server allows"},
	{func(reply) bool { return true },
		failure.RecipientRejected, "correct or waive the recipient"},
}

// senderDomainCodes are the enhanced codes for a problem with the sender's
// domain, which affects every recipient (RFC 7372, RFC 8689).
var senderDomainCodes = []string{
	"5.7.20", "5.7.21", "5.7.22", "5.7.23", "5.7.24", "5.7.25", "5.7.26", "5.7.27", "5.7.29", "5.7.30",
}

// classify converts an error at the given step of the conversation into one whose class
// decides whether the message may be sent again (notification 8.1).
func classify(ctx context.Context, at step, err error) error {
	if e, ok := errors.AsType[*failure.Error](err); ok {
		return e // it has its class
	}
	if e, ok := errors.AsType[*textproto.Error](err); ok && e.Code >= 400 {
		return rejected(reply{at, e.Code, enhancedPattern.FindString(e.Msg)})
	}
	if ctx.Err() != nil {
		err = ctx.Err() // the connection broke because we closed it
	}
	if at == stepDot {
		return failure.Errorf(failure.DeliveryAmbiguous,
			"send mail: the mail server did not confirm the message, and may have accepted it: look it up before sending it again: %w", withoutReply(err))
	}
	if _, ok := errors.AsType[*textproto.Error](err); ok && at != stepConnect {
		return failure.Errorf(failure.UpstreamInternal, "send mail: the mail server answered %s with a reply to another command; nothing was sent", at)
	}
	return failure.Errorf(unansweredClass(err), "send mail: %s failed and nothing was sent; check that Host and Port are right and the mail server is up: %w", at, withoutReply(err))
}

// rejected returns the error of a negative reply.
func rejected(r reply) error {
	i := slices.IndexFunc(rules, func(rule rule) bool { return rule.matches(r) })
	e := failure.Errorf(rules[i].class, "send mail: the mail server answered %s to %s: %s", r, r.at, rules[i].hint)
	e.Upstream = r.String()
	return e
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
