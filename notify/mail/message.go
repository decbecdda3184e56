package mail

import (
	"bytes"
	"cmp"
	"fmt"
	"net/mail"
	"net/url"
	"slices"
	"strings"
	"time"

	gomail "github.com/wneessen/go-mail"

	"github.com/criticizer/criticizer/notify/post"
	"github.com/criticizer/criticizer/review"
)

// A Message is one mail to one recipient.
type Message struct {
	// ID is the Message-ID without angle brackets. The ID of a digest holds its Key,
	// which can be derived again after a crash.
	ID string
	// Key is the token of a digest (package evidence), empty if the message has none.
	Key  string
	From mail.Address
	To   string // a bare address
	Date time.Time

	Subject string
	Text    string
	HTML    string            // empty: the message has only text
	Header  map[string]string // the other header fields, in ASCII

	// Begun is when the attempt started, by this machine's clock. An attempt that
	// takes too long is abandoned. Zero: now.
	Begun time.Time
}

// MIME returns the message as SMTP transfers it. The same message gives the
// same bytes.
func (m Message) MIME() ([]byte, error) {
	msg := gomail.NewMsg(gomail.WithNoDefaultUserAgent(), gomail.WithBoundary("crz1."+m.Key))
	msg.SetMessageIDWithValue(m.ID)
	msg.SetDateWithValue(m.Date)
	msg.FromMailAddress(&m.From)
	msg.ToMailAddress(&mail.Address{Address: m.To})
	msg.Subject(m.Subject)
	for name, value := range m.Header {
		// Not go-mail's preformatted headers: it writes those without encoding.
		msg.SetGenHeader(gomail.Header(name), value)
	}
	msg.SetBodyString(gomail.TypeTextPlain, m.Text)
	if m.HTML != "" {
		msg.AddAlternativeString(gomail.TypeTextHTML, m.HTML)
	}
	var raw bytes.Buffer
	if _, err := msg.WriteTo(&raw); err != nil {
		return nil, fmt.Errorf("render mail %s: %w", m.ID, err)
	}
	return raw.Bytes(), nil
}

// messageID returns a Message-ID without angle brackets. It contains the token and
// not the address, which would appear in the logs of every relay.
func messageID(token, domain string) string { return idPrefix + token + "@" + domain }

// subject returns "[criticizer] CL 4711: 2 high, 1 low - first line", or "shelved CL 4711".
// It differs between versions; the mails are one thread by their References. Mail programs decode text that looks like an encoded word (RFC 2047), control
// characters included; the inserted blank prevents that.
func subject(r review.Report) string {
	shelved := ""
	if r.Shelved {
		shelved = "shelved "
	}
	return fmt.Sprintf("[criticizer] %sCL %d: %s - %s", shelved, r.Changelist, result(r), strings.ReplaceAll(post.FirstLine(r.Description, maxSubject), "=?", "= ?"))
}

// result returns the outcome as a list of mails shows it.
func result(r review.Report) string {
	counts := severityCounts(r.Findings)
	switch {
	case r.Outcome == review.OutcomeNotReviewed:
		return "not reviewed"
	case r.Outcome == review.OutcomePartial && counts != "":
		return counts + ", partly reviewed"
	case r.Outcome == review.OutcomePartial:
		return "partly reviewed"
	case r.StandIn && counts == "":
		return "no model"
	case counts == "":
		return "clean"
	}
	return counts
}

// headers returns the header fields that are not addresses. Their values are
// ours, except the subject, which is set apart.
func headers(r review.Report, recipient, token string, cfg Config) map[string]string {
	// The root of a thread is an id that no message has: mail programs then show all
	// versions as one thread even for a recipient who did not get the first. A submitted
	// shelf continues the thread of the shelf.
	root := fmt.Sprintf("<%schange-%d@%s>", idPrefix, cmp.Or(r.EarlierOf, r.Changelist), cfg.messageIDDomain())
	h := map[string]string{
		"Auto-Submitted":           "auto-generated",
		"X-Auto-Response-Suppress": "DR, RN, NRN, OOF, AutoReply", // All has NDR too: no bounces (MS-OXCMAIL 2.1.3.2.20)
		"List-Id":                  "<criticizer." + cfg.messageIDDomain() + ">",
		headerKey:                  token, // some relays replace the Message-ID; this field survives
		"X-Criticizer-Outcome":     string(r.Outcome),
		"References":               root,
	}
	for _, s := range review.Severities() {
		if slices.ContainsFunc(r.Findings, func(f review.Finding) bool { return f.Severity == s }) {
			h["X-Criticizer-Severity"] = string(s)
			break
		}
	}
	if oneClickPage.MatchString(cfg.Unsubscribe) {
		h["List-Unsubscribe"] = "<" + strings.ReplaceAll(cfg.Unsubscribe, "{recipient}", url.QueryEscape(recipient)) + ">"
		h["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
	} else if cfg.Unsubscribe != "" {
		h["List-Unsubscribe"] = "<mailto:" + url.PathEscape(cfg.Unsubscribe) + "?subject=unsubscribe>"
	}
	if r.To != "" {
		h["X-Criticizer-Reason"] = string(r.To)
	}
	if r.Earlier != 0 {
		h["In-Reply-To"] = root
	}
	if usableAddress(r.ReplyTo) && ascii(r.ReplyTo) {
		h["Reply-To"] = r.ReplyTo
	}
	return h
}
