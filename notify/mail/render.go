package mail

import (
	"embed"
	"fmt"
	htmltemplate "html/template"
	"io"
	"net/mail"
	"regexp"
	"slices"
	"sort"
	"strings"
	texttemplate "text/template"
	"time"
	"unicode"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

//go:embed templates
var templates embed.FS

var (
	textDigest = texttemplate.Must(texttemplate.New("digest.txt").
			Funcs(texttemplate.FuncMap{"wrap": wrap, "blocks": renderText}).ParseFS(templates, "templates/digest.txt"))
	htmlDigest = htmltemplate.Must(htmltemplate.New("digest.html").
			Funcs(htmltemplate.FuncMap{"link": link, "lines": lines}).ParseFS(templates, "templates/digest.html"))
)

const (
	// maxMessageIDDomain keeps a Message-ID at 58 characters: go-mail folds a
	// longer one, and some programs that search for it do not unfold.
	maxMessageIDDomain = 20
	// maxHTML is below the size at which Gmail clips a mail (102 KB).
	maxHTML = 96 << 10
	// maxFindings bounds the findings of one mail.
	maxFindings = 50
)

var (
	domainPattern  = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$`)
	literalPattern = regexp.MustCompile(`^\[[0-9A-Za-z:.]+\]$`) // an address literal (RFC 5321 4.1.3)
	oneClickPage   = regexp.MustCompile(`^https://[[:graph:]]+\{recipient\}[[:graph:]]*$`)
)

// The header fields that identify our messages, and the prefix of their
// Message-IDs.
const (
	headerID  = "Message-Id"
	headerKey = "X-Criticizer-Key"
	idPrefix  = "crz1."
)

// Render returns the digest of report for the recipient of k, with token and the domain of
// cfg as its Message-ID. The same arguments give the same message, so that a repeated
// attempt sends the same bytes. It fails with RecipientRejected for an unusable address, and
// with InvariantViolated for a report that is inconsistent or does not match the key.
func Render(report review.Report, k review.DeliveryKey, token string, cfg Config) (Message, error) {
	fail := func(class failure.Class, problem string) (Message, error) {
		return Message{}, failure.Errorf(class, "render mail of change %d version %d: %s", k.Changelist, k.Version, problem)
	}
	if problem := inconsistency(report, k); problem != "" {
		return fail(failure.InvariantViolated, problem)
	}
	if !usableAddress(k.Recipient) {
		return fail(failure.RecipientRejected, "the address of a recipient is not valid: correct or waive the recipient")
	}
	sender, err := mail.ParseAddress(cfg.From)
	if err != nil {
		return fail(failure.ConfigInvalid, "From is not a mail address")
	}
	date, ok := reportDate(report)
	if !ok {
		return fail(failure.InvariantViolated, "the report has no date")
	}
	report.Findings = slices.Clone(report.Findings)
	for i, f := range report.Findings {
		if report.Findings[i].FeedbackToken = ""; cfg.FeedbackRelay != "" && f.FeedbackToken != "" {
			report.Findings[i].FeedbackToken = cfg.Keys.SignFeedback(f.FeedbackToken, k.Recipient)
		}
	}
	m := Message{
		ID: messageID(token, cfg.messageIDDomain()), Key: token, From: *sender, To: k.Recipient, Date: date,
		Subject: subject(report), Header: headers(report, k.Recipient, token, cfg),
	}
	m.Text, m.HTML, err = Bodies(report, cfg)
	return m, err
}

// inconsistency returns why r must not be mailed: it belongs to another key, or
// its findings contradict its outcome. Empty if there is no reason.
func inconsistency(r review.Report, k review.DeliveryKey) string {
	switch {
	case r.Changelist != k.Changelist || r.Version != k.Version:
		return fmt.Sprintf("the report is of change %d version %d", r.Changelist, r.Version)
	case r.Outcome == review.OutcomeClean && len(r.Findings) > 0:
		return "a clean report has findings"
	case r.Outcome == review.OutcomeFindings && len(r.Findings) == 0:
		return "a report of findings has none"
	}
	mailed := []review.Outcome{review.OutcomeClean, review.OutcomeFindings, review.OutcomePartial, review.OutcomeNotReviewed}
	if !slices.Contains(mailed, r.Outcome) {
		return fmt.Sprintf("a report with outcome %q is not mailed", r.Outcome)
	}
	return ""
}

// reportDate returns when the review ended, or else when the change was submitted.
func reportDate(r review.Report) (date time.Time, ok bool) {
	for _, s := range []string{r.ReviewedAt, r.SubmittedAt} {
		if t, err := time.Parse(time.RFC3339, s); err == nil {
			return t.UTC(), true
		}
	}
	return time.Time{}, false
}

// Bodies renders r as text and as HTML, with as many findings as fit in a mail, worst
// first.
func Bodies(r review.Report, cfg Config) (text, html string, err error) {
	whole := newDigest(r, cfg)
	tooMany := sort.Search(len(whole.Findings), func(n int) bool {
		html, err = executeHTML(whole.first(n + 1))
		return err != nil || len(html) > maxHTML
	})
	d := whole.first(tooMany)
	if html, err = executeHTML(d); err != nil {
		return "", "", err
	}
	text, err = execute(textDigest, d)
	return text, html, err
}

// link marks a link of [review.Links] as safe: html/template does not know p4://.
func link(s string) htmltemplate.URL { return htmltemplate.URL(s) } //nolint:gosec // its scheme is checked and its path escaped

// lines returns text as HTML whose lines and blanks do not depend on white-space, which
// Outlook for Windows ignores (caniemail: css-white-space).
func lines(text string) htmltemplate.HTML {
	var out []string
	for l := range strings.SplitSeq(text, "\n") {
		words := strings.TrimLeft(l, " ")
		indent := strings.Repeat("&nbsp;", len(l)-len(words))
		out = append(out, indent+strings.ReplaceAll(htmltemplate.HTMLEscapeString(words), "  ", "&nbsp; "))
	}
	return htmltemplate.HTML(strings.Join(out, "<br>\n")) //nolint:gosec // each line is escaped
}

// textNode matches a text between two tags. In values of attributes, html/template escapes
// the bracket. linkMark matches the marks by which mail programs find domains, addresses,
// schemes and UNC paths.
var (
	textNode = regexp.MustCompile(`>[^<]+`)
	linkMark = regexp.MustCompile(`([.。．｡@:\\]+)([^\s<.。．｡@:\\])`)
)

// executeHTML renders d so that mail programs link nothing in its text: each mark of a link
// is an element of its own. A reader copies the text without the elements.
func executeHTML(d digest) (string, error) {
	html, err := execute(htmlDigest, d)
	head, body, _ := strings.Cut(html, "<body")
	return head + "<body" + textNode.ReplaceAllStringFunc(body, func(text string) string {
		return linkMark.ReplaceAllString(text, "<span>$1</span>$2")
	}), err
}

// execute runs a template of either package.
func execute(t interface {
	Execute(w io.Writer, data any) error
}, d digest,
) (string, error) {
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
