package mail

import (
	"cmp"
	"embed"
	"fmt"
	htmltemplate "html/template"
	"io"
	"net/mail"
	"net/url"
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
	if headline, _ := headlineOf(r); headline == "" {
		return fmt.Sprintf("a report with outcome %q is not mailed", r.Outcome)
	}
	return ""
}

// messageID returns a Message-ID without angle brackets. It contains the token and
// not the address, which would appear in the logs of every relay.
func messageID(token, domain string) string { return idPrefix + token + "@" + domain }

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

// subject returns "[criticizer] CL 4711: 2 high, 1 low - first line", or "shelved CL 4711".
// It differs between versions; the mails are one thread by their References. Mail programs decode text that looks like an encoded word (RFC 2047), control
// characters included; the inserted blank prevents that.
func subject(r review.Report) string {
	shelved := ""
	if r.Shelved {
		shelved = "shelved "
	}
	return fmt.Sprintf("[criticizer] %sCL %d: %s - %s", shelved, r.Changelist, result(r), strings.ReplaceAll(firstLine(r.Description), "=?", "= ?"))
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
	findings := min(len(r.Findings), maxFindings)
	tooMany := sort.Search(findings, func(n int) bool {
		html, err = executeHTML(newDigest(r, n+1, cfg))
		return err != nil || len(html) > maxHTML
	})
	d := newDigest(r, tooMany, cfg)
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
