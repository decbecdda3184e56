package mail

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/emersion/go-imap/v2"
	messagemail "github.com/emersion/go-message/mail"
	"github.com/emersion/go-msgauth/authres"
	"golang.org/x/net/html"

	"github.com/criticizer/criticizer/notify/evidence"
	"github.com/criticizer/criticizer/review"
)

const (
	// feedbackSubject begins the subject of an answer: the signed token and the opinion follow.
	feedbackSubject = "criticizer feedback"
	// feedbackDays is how long an answer is read again: recording it twice changes nothing.
	feedbackDays = 3
	// maxAnswer bounds how much of an answer is read, in bytes, and maxNote its note.
	maxAnswer = 16 << 10
	maxNote   = 500
)

// feedbackLink returns the link that writes an answer to the sender of our mails.
func feedbackLink(to, token string, o review.Opinion) string {
	return "mailto:" + url.PathEscape(to) + "?subject=" + url.PathEscape(feedbackSubject+" "+token+" "+string(o))
}

// Answers reads what readers say about findings from the mailbox of bounces. Nothing in the
// mailbox is changed, and nobody gets a reply.
type Answers struct {
	Mailbox Mailbox
	Keys    *evidence.Keys
	// Relay is the name under which the receiving mail server states in
	// Authentication-Results whether a sender is proven (RFC 8601).
	Relay string
	// Redact masks secrets in a note.
	Redact func(string) (string, error)
}

// Feedback returns the answers of the last days, oldest first. It leaves out messages whose
// token was not made for their sender, and whose sender the relay has not proven.
func (a Answers) Feedback(ctx context.Context) (found []review.FeedbackMail, err error) {
	err = a.Mailbox.open(ctx, func(box openMailbox) error {
		uids, err := box.UIDSearch(&imap.SearchCriteria{
			Since: time.Now().AddDate(0, 0, -feedbackDays), Header: []imap.SearchCriteriaHeaderField{{Key: "Subject", Value: feedbackSubject}},
		}, nil).Wait()
		if err != nil {
			return err
		}
		section := &imap.FetchItemBodySection{Peek: true, Partial: &imap.SectionPartial{Size: maxAnswer}}
		newest := uids.AllUIDs()
		slices.Reverse(newest) // of more than one query may read, the oldest are left out
		for batch := range slices.Chunk(newest, maxMessages) {
			// One without its text does not keep the others unread. If the server delivers it
			// later, it is read then.
			messages, err := box.readSome(imap.UIDSetNum(batch...), section)
			if err != nil {
				return err
			}
			for _, m := range messages {
				answer, ok := a.parse(m.FindBodySection(section))
				if !ok {
					continue
				}
				if answer.Note, err = a.Redact(answer.Note); err != nil {
					answer.Note = "" // the opinion counts without a text that cannot be redacted
				}
				answer.At = m.InternalDate
				found = append(found, answer)
			}
		}
		return nil
	})
	slices.SortStableFunc(found, func(a, b review.FeedbackMail) int { return a.At.Compare(b.At) })
	return found, err
}

// parse reads one answer.
func (a Answers) parse(raw []byte) (answer review.FeedbackMail, ok bool) {
	m, _ := messagemail.CreateReader(bytes.NewReader(raw)) // with an unknown charset, m is set
	if m == nil {
		return answer, false
	}
	from, errFrom := m.Header.AddressList("From")
	subject, errSubject := m.Header.Subject()
	if cmp.Or(errFrom, errSubject) != nil || len(from) != 1 {
		return answer, false
	}
	_, rest, _ := strings.Cut(subject, feedbackSubject)
	words := strings.Fields(rest)
	if len(words) < 2 {
		return answer, false
	}
	var err error
	if answer.Sender, err = review.ParseAddress(from[0].Address); err != nil || !a.proven(m.Header, answer.Sender) {
		return answer, false
	}
	answer.Token, ok = a.Keys.FeedbackToken(words[0], answer.Sender)
	answer.Opinion = review.Opinion(strings.ToLower(words[1]))
	if !ok || !slices.Contains(review.Opinions(), answer.Opinion) {
		return answer, false
	}
	var markup string
	for answer.Note == "" {
		part, err := m.NextPart()
		if err != nil {
			break
		}
		header, isText := part.Header.(*messagemail.InlineHeader) // others are of attachments
		if !isText {
			continue
		}
		body, _ := io.ReadAll(part.Body) // of a part that is cut off, the rest counts
		switch kind, _, _ := header.ContentType(); kind {
		case "text/plain":
			answer.Note = note(string(body))
		case "text/html":
			markup = cmp.Or(markup, string(body))
		}
	}
	answer.Note = cmp.Or(answer.Note, note(textOf(markup)))
	return answer, true
}

// proven reports whether our relay states that DMARC passed for the sender's domain, or DKIM
// for it or a domain above it. Only the relay's topmost statement counts: a sender can write
// others, which are below. A statement that cannot be read could be the relay's own.
func (a Answers) proven(header messagemail.Header, sender string) bool {
	domain := sender[strings.LastIndexByte(sender, '@')+1:]
	for f := header.FieldsByKey("Authentication-Results"); f.Next(); {
		relay, results, err := authres.Parse(f.Value())
		if err != nil {
			return false
		}
		if !strings.EqualFold(relay, a.Relay) {
			continue
		}
		return slices.ContainsFunc(results, func(r authres.Result) bool {
			switch r := r.(type) {
			case *authres.DMARCResult:
				return r.Value == authres.ResultPass && strings.EqualFold(r.From, domain)
			case *authres.DKIMResult:
				return r.Value == authres.ResultPass && strings.Contains(r.Domain, ".") &&
					(strings.EqualFold(r.Domain, domain) || strings.HasSuffix(strings.ToLower(domain), "."+strings.ToLower(r.Domain)))
			}
			return false
		})
	}
	return false
}

// quoted matches where a mail program begins to write by itself: what follows is our own text or
// a signature. The words differ between languages, the form does not: a rule, a line with a time
// and an address or a quote below, and a head of fields with an address and a time. Readers write
// about lines, times and addresses, too: each form is matched as a whole.
var quoted = regexp.MustCompile(`(?m)^(?:` + strings.Join([]string{
	`>`, `-- $`, `-----`, `_____`,
	`On .*(?:\n.*)?wrote:$`,
	// Le lun. 15 nov. 2021 à 19:42, Bot <bot@example.com> a écrit :
	`.*\b(?:` + year + `|` + clock + `).*(?:\n.*)?[<(]\s?[^\s<>()]+@[^\s<>()]+\s?[>)] ?\n?(?:\S+ ?){0,3}[:：]$`,
	dateAndTime + `.*(?:\n.*)?@.*(?:\n.*)?[:：]$`,
	dateAndTime + `.*(?:\n.*)?[:：]\n+>`,
	// Von: Bot <bot@example.com>, An: ..., Gesendet: Donnerstag, 23. März 2023 17:11
	`\s*\*?\pL{2,6}\*?\s?:.*(?:\n.*)?@.*` + `(?:` + field + `.*){0,3}` + field + dateAndTime,
	sentFrom + `(?:(?:my|meinem|mon|mi|meu|mijn) )?` + device + `(?: [\w.&-]+){0,3}$`,
	sentFrom + `(?:Outlook|Mail|Yahoo Mail)(?: \pL+ ` + platform + `)?\.?(?: ?<\S+>)?$`,
	`Get Outlook for ` + platform + `(?: ?<\S+>)?$`,
}, "|") + `)`)

const (
	year  = `\b20\d\d`
	clock = `\b\d\d?[:.h]\d\d`
	// dateAndTime matches a line up to both.
	dateAndTime = `.*(?:` + year + `.*` + clock + `|` + clock + `.*` + year + `)`
	// field is a line with a field of a head.
	field    = `\n\s*\*?\pL[\pL ]*\*?\s?:`
	sentFrom = `(?:Sent from|Gesendet von|Von|Envoyé depuis|Envoyé de|Envoyé à partir de|Enviado desde|Enviado do|Inviato da|Inviato dal|Verzonden vanaf) `
	device   = `(?:iPhone|iPad|Samsung|Galaxy|Android|HUAWEI|Huawei|Xiaomi|Pixel|OnePlus|BlackBerry|[Pp]hone|[Mm]obile|[Ss]martphone|Handy|Mobiltelefon)`
	platform = `(?:iOS|Android|Windows(?: \d+)?|Mac|iPhone|iPad)`
)

// blanksAtEnd are what some programs leave at the end of a line. A signature begins with one.
var blanksAtEnd = regexp.MustCompile(`(?m)([^-\n])[ \t]+$`)

// textOf returns the text of HTML up to the first quote.
func textOf(markup string) string {
	var text strings.Builder
	hidden := "" // the element whose text is not shown
	for tokens := html.NewTokenizer(strings.NewReader(markup)); ; {
		kind := tokens.Next()
		token := tokens.Token()
		switch {
		case kind == html.ErrorToken || kind == html.StartTagToken && token.Data == "blockquote":
			return text.String()
		case hidden != "":
			if kind == html.EndTagToken && token.Data == hidden {
				hidden = ""
			}
		case kind == html.TextToken:
			text.WriteString(strings.Join(strings.Fields(token.Data), " ") + " ")
		case kind == html.StartTagToken && slices.Contains([]string{"head", "style", "script"}, token.Data):
			hidden = token.Data
		case slices.Contains([]string{"br", "p", "div", "tr", "hr"}, token.Data):
			text.WriteString("\n")
		}
	}
}

// note returns what a reader wrote, on one line.
func note(body string) string {
	body = blanksAtEnd.ReplaceAllString(strings.ReplaceAll(body, "\r\n", "\n"), "$1")
	if at := quoted.FindStringIndex(body); at != nil {
		body = body[:at[0]]
	}
	words := []rune(strings.Join(strings.Fields(body), " "))
	return string(words[:min(len(words), maxNote)])
}

// feedbackAddress returns the address that readers answer to, empty if they cannot.
func (c Config) feedbackAddress() string {
	if c.FeedbackRelay == "" {
		return ""
	}
	return c.fromAddress()
}
