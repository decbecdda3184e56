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

// A rule assigns a class to the replies it matches. The first match decides. An empty
// field matches all.
type rule struct {
	at       []step
	codes    []string // beginnings
	enhanced []string // without the class; one that ends in a dot stands for all below it, - for none
	class    failure.Class
	hint     string
}

// afterMail are the steps after the server has accepted the sender.
var afterMail = []step{stepRcpt, stepData, stepDot}

// rules close a recipient's row only for a code that names the recipient's address:
// another refusal meets every recipient, or can be repaired without them. If the digits and
// the class of the enhanced code disagree, the digits count.
var rules = []rule{
	{nil, []string{"4"}, nil,
		failure.UpstreamUnavailable, "it asks to try again later"},
	{nil, []string{"530", "534", "535", "538"}, nil,
		failure.AuthDenied, "check Username and Password"},
	{[]step{stepConnect, stepMail}, nil, []string{"7.0", "7.8", "7.9"},
		failure.AuthDenied, "check Username and Password"},
	{afterMail, nil, []string{
		"1.1", "1.2", "1.3", "1.4", "1.5", "1.6", "1.10", // no such address (RFC 3463, RFC 7505)
		"2.1", "2.2", "2.3", "2.4", // mailbox or list closed, full, limited, not expanded
		"7.124", "7.129", "7.133", "7.134", "7.135", "7.136", // it takes mail of its own senders only (Exchange)
	},
		failure.RecipientRejected, "correct or waive the recipient"},
	{[]step{stepRcpt}, []string{"556"}, nil, // RFC 7504
		failure.RecipientRejected, "correct or waive the recipient"},
	{nil, nil, []string{"3.4"},
		failure.TooLarge, "raise its limit for the size of a message"},
	{[]step{stepRcpt}, []string{"552"}, nil, // RFC 5321 4.5.3.1.10
		failure.UpstreamUnavailable, "it asks to try again later"},
	{nil, []string{"552"}, []string{"-"},
		failure.TooLarge, "raise its limit for the size of a message"},
	{nil, nil, []string{"1.7", "1.8", "2.252", "7.60"}, // the last two: the account may not send as From (Exchange)
		failure.ConfigInvalid, "it rejects the sender: check From"},
	{nil, nil, []string{"1.90", "4.5", "7.28", "7.705"}, // Exchange Online, Gmail
		failure.QuotaExhausted, "the account has used up its limit: wait, or raise it"},
	{nil, []string{"50", "521"}, nil,
		failure.ConfigInvalid, "check that Host and Port name a server that accepts mail"},
	{nil, nil, []string{"5."},
		failure.ConfigInvalid, "check that Host and Port name a server that accepts mail"},
	{[]step{stepMail}, nil, nil,
		failure.ConfigInvalid, "it rejects the sender: check From"},
	{nil, nil, []string{"7.20", "7.21", "7.22", "7.23", "7.24", "7.25", "7.26", "7.27", "7.29", "7.30"}, // RFC 7372, RFC 8689
		failure.ConfigInvalid, "it rejects the domain of From: check its SPF, DKIM, DMARC and TLS records"},
	{[]step{stepConnect}, nil, nil,
		failure.ConfigInvalid, "it rejects this host: check Host and Port and which clients the server allows"},
	{nil, nil, nil,
		failure.PermissionDenied, "it does not name the recipient's address: find the reason in its log, and have it accept this host, the account and From"},
}

func (r rule) matches(got reply) bool {
	code, enhanced := strconv.Itoa(got.code), "-"
	if got.enhanced != "" {
		enhanced = got.enhanced[len("5."):]
	}
	return (r.at == nil || slices.Contains(r.at, got.at)) &&
		(r.codes == nil || slices.ContainsFunc(r.codes, func(c string) bool { return strings.HasPrefix(code, c) })) &&
		(r.enhanced == nil || slices.ContainsFunc(r.enhanced, func(c string) bool {
			return enhanced == c || strings.HasSuffix(c, ".") && strings.HasPrefix(enhanced, c)
		}))
}

// classify converts an error at the given step of the conversation into one whose class
// decides whether the message may be sent again (notification 8.1).
func classify(ctx context.Context, at step, err error) error {
	if e, ok := errors.AsType[*failure.Error](err); ok {
		return e // it has its class
	}
	if e, ok := errors.AsType[*textproto.Error](err); ok && e.Code >= 400 {
		r := reply{at, e.Code, enhancedPattern.FindString(e.Msg)}
		first := rules[slices.IndexFunc(rules, func(rule rule) bool { return rule.matches(r) })]
		rejected := failure.Errorf(first.class, "send mail: the mail server answered %s to %s: %s", r, at, first.hint)
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
	if _, ok := errors.AsType[*textproto.Error](err); ok && at != stepConnect {
		return failure.Errorf(failure.UpstreamInternal, "send mail: the mail server answered %s with a reply to another command; nothing was sent", at)
	}
	return failure.Errorf(unansweredClass(err), "send mail: %s failed and nothing was sent; check that Host and Port are right and the mail server is up: %w", at, withoutReply(err))
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
