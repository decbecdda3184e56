package mail

import (
	"bytes"
	"embed"
	"fmt"
	htmltemplate "html/template"
	"io"
	"net/mail"
	"regexp"
	"sort"
	"strings"
	texttemplate "text/template"
	"time"
	"unicode"

	gomail "github.com/wneessen/go-mail"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

//go:embed templates
var templates embed.FS

var (
	textDigest = texttemplate.Must(texttemplate.New("digest.txt").
			Funcs(texttemplate.FuncMap{"wrap": wrap, "lay": lay}).ParseFS(templates, "templates/digest.txt"))
	htmlDigest = htmltemplate.Must(htmltemplate.ParseFS(templates, "templates/digest.html"))
)

const (
	// maxMessageIDDomain keeps a Message-ID at 58 characters: go-mail folds a
	// longer one, and not everything that searches for it unfolds.
	maxMessageIDDomain = 20
	// maxHTML is a little less than what Gmail shows before it clips.
	maxHTML = 96 << 10
	// maxFindings is more than anybody reads.
	maxFindings = 50
)

var domainPattern = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$`)

// Render makes the digest of report for the recipient of k, sent as from, with
// messageIDDomain at the end of its Message-ID. The same arguments give the
// same bytes, so that a repeated attempt is the same message. It fails with
// RecipientRejected for an address that cannot be used, and with
// InvariantViolated for a report that contradicts itself or the key.
func Render(report review.Report, k review.DeliveryKey, from, messageIDDomain string) (Message, error) {
	if err := check(report, k); err != nil {
		return Message{}, err
	}
	if !usableAddress(k.Recipient) {
		return Message{}, failure.Errorf(failure.RecipientRejected,
			"render mail of change %d: a recipient's address is not one that mail can be sent to: correct or waive the recipient", k.Changelist)
	}
	sender, err := mail.ParseAddress(from)
	if err != nil {
		return Message{}, failure.Errorf(failure.ConfigInvalid, "render mail of change %d: From is not a mail address", k.Changelist)
	}
	date, err := reportDate(report)
	if err != nil {
		return Message{}, err
	}
	m := Message{ID: messageID(k, messageIDDomain), From: sender.Address, To: k.Recipient}
	msg := gomail.NewMsg(gomail.WithNoDefaultUserAgent(), gomail.WithBoundary("crz1."+k.Token()))
	setHeaders(msg, report, k, messageIDDomain)
	msg.SetMessageIDWithValue(m.ID)
	msg.SetDateWithValue(date)
	msg.FromMailAddress(sender)
	msg.ToMailAddress(&mail.Address{Address: k.Recipient})
	m.Raw, err = write(msg, report)
	return m, err
}

// write adds the two forms of the digest to msg and returns its bytes.
func write(msg *gomail.Msg, r review.Report) ([]byte, error) {
	text, html, err := Bodies(r)
	if err != nil {
		return nil, err
	}
	msg.SetBodyString(gomail.TypeTextPlain, text)
	msg.AddAlternativeString(gomail.TypeTextHTML, html)
	var raw bytes.Buffer
	if _, err := msg.WriteTo(&raw); err != nil {
		return nil, fmt.Errorf("render mail of change %d: %w", r.Changelist, err)
	}
	return raw.Bytes(), nil
}

// check refuses what must not be mailed: a report that is not the key's, or
// whose outcome its findings belie.
func check(r review.Report, k review.DeliveryKey) error {
	var problem string
	switch {
	case r.Changelist != k.Changelist || r.Version != k.Version:
		problem = fmt.Sprintf("the report is of change %d version %d", r.Changelist, r.Version)
	case r.Outcome == review.OutcomeClean && len(r.Findings) > 0:
		problem = "a clean report has findings"
	case r.Outcome == review.OutcomeFindings && len(r.Findings) == 0:
		problem = "a report of findings has none"
	case verdicts[r.Outcome] == nil:
		problem = fmt.Sprintf("a report with outcome %q is not for mailing", r.Outcome)
	default:
		return nil
	}
	return failure.Errorf(failure.InvariantViolated, "render mail of change %d version %d: %s", k.Changelist, k.Version, problem)
}

// messageID is the Message-ID of k's message, without angle brackets. It holds
// a hash, for an address in it would show in every log on the way.
func messageID(k review.DeliveryKey, domain string) string {
	return idPrefix + k.Token() + "@" + domain
}

// idPrefix begins every Message-ID of ours.
const idPrefix = "crz1."

// The headers that a message of ours is known by.
const (
	headerID  = "Message-Id"
	headerKey = "X-Criticizer-Key"
)

// setHeaders sets what is not an address. Only text that passed line goes in,
// and never through go-mail's preformatted headers, which it writes raw.
func setHeaders(msg *gomail.Msg, r review.Report, k review.DeliveryKey, domain string) {
	msg.Subject(subject(r))
	msg.SetGenHeader("Auto-Submitted", "auto-generated")
	msg.SetGenHeader("X-Auto-Response-Suppress", "All")
	msg.SetGenHeader("List-Id", "<criticizer."+domain+">")
	references, inReplyTo := thread(r, k, domain)
	msg.SetGenHeader("References", references)
	if inReplyTo != "" {
		msg.SetGenHeader("In-Reply-To", inReplyTo)
	}
	// Some relays replace the Message-ID; this survives.
	msg.SetGenHeader(headerKey, k.Token())
	msg.SetGenHeader("X-Criticizer-Outcome", string(r.Outcome))
}

// subject is "[criticizer] CL 4711: first line", or "shelved CL 4711". Mail programs would decode
// what looks like an encoded word (RFC 2047), control characters included.
func subject(r review.Report) string {
	shelved := ""
	if r.Shelved {
		shelved = "shelved "
	}
	return fmt.Sprintf("[criticizer] %sCL %d: %s", shelved, r.Changelist, strings.ReplaceAll(firstLine(r.Description), "=?", "= ?"))
}

// reportDate is when the review ended, or when the change was submitted.
func reportDate(r review.Report) (time.Time, error) {
	for _, s := range []string{r.ReviewedAt, r.SubmittedAt} {
		if t, err := time.Parse(time.RFC3339, s); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, failure.Errorf(failure.InvariantViolated, "render mail of change %d: the report has no date", r.Changelist)
}

// Bodies renders both forms of a report with as many findings as fit in a mail,
// worst first.
func Bodies(r review.Report) (text, html string, err error) {
	findings := min(len(r.Findings), maxFindings)
	tooMany := sort.Search(findings, func(n int) bool {
		html, err = execute(htmlDigest, newDigest(r, n+1))
		return err != nil || len(html) > maxHTML
	})
	d := newDigest(r, tooMany)
	if html, err = execute(htmlDigest, d); err != nil {
		return "", "", err
	}
	text, err = execute(textDigest, d)
	return text, html, err
}

// A template of either kind.
type executor interface {
	Execute(w io.Writer, data any) error
}

func execute(t executor, d digest) (string, error) {
	var out strings.Builder
	if err := t.Execute(&out, d); err != nil {
		return "", fmt.Errorf("render mail of change %s: %w", d.Changelist, err)
	}
	return out.String(), nil
}

// usableAddress reports whether s is a bare address that mail can be sent to.
func usableAddress(s string) bool {
	_, err := review.ParseAddress(s)
	return err == nil && s == strings.TrimSpace(s)
}

func ascii(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r > unicode.MaxASCII })
}
