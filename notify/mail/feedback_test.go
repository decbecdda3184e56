package mail

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/review"
)

const (
	answerToken = "abcdefg234567"
	relayed     = "Authentication-Results: mx.example.com; dkim=pass header.d=example.com; spf=pass smtp.mailfrom=ann@example.com\n"
)

// subjectOf returns the subject of the link by which recipient answers.
func subjectOf(recipient string, o review.Opinion) string {
	link, _ := url.Parse(feedbackLink("criticizer@example.com", testKeys.SignFeedback(answerToken, recipient), o))
	return link.Query().Get("subject")
}

// An answer counts if its token was made for its sender and the relay has proven the sender.
func TestFeedbackByMail(t *testing.T) {
	t.Parallel()
	wrong := subjectOf("ann@example.com", review.OpinionWrong)
	const plainBody = "\nThe caller\ncloses it.\n\n-- \nAnn\n"
	for name, tc := range map[string]struct {
		message string
		note    string // of an answer that counts
	}{
		"plain": {relayed + "From: Ann <ann@example.com>\nTo: criticizer@example.com\nSubject: " + wrong + "\n" + plainBody, "The caller closes it."},
		"a reply with a folded subject, of a phone": {
			relayed + "Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: quoted-printable\nFrom: ann@example.com\n" +
				"Subject: Re: =?utf-8?Q?" + strings.ReplaceAll(wrong, " ", "_") + "?=\n\nNo: caf=C3=A9\n\nOn Fri, 20 Nov 2026 Criticizer wrote:\n> all\n", "No: café",
		},
		"two parts, of Gmail": {
			"Authentication-Results: mx.example.com;\n dkim=pass header.i=@example.com header.s=s1 header.d=example.com;\n dmarc=pass (p=NONE) header.from=example.com\n" +
				"From: Ann <Ann@Example.com>\nSubject: " + wrong + "\nMIME-Version: 1.0\nContent-Type: multipart/alternative; boundary=\"b\"\n\n" +
				"--b\nContent-Type: text/plain; charset=\"UTF-8\"\n\nIt is *locked* above\n\n--b\nContent-Type: text/html\n\n<div>It is</div>\n--b--\n", "It is *locked* above",
		},
		"of a domain below the signing one": {
			strings.Replace(relayed, "header.d=example.com", "header.d=EXAMPLE.com", 1) + "From: ann@mail.example.com\nSubject: " + subjectOf("ann@mail.example.com", review.OpinionWrong) + "\n\nNo\n", "No",
		},
		"a picture before the text": {
			relayed + "From: ann@example.com\nSubject: " + wrong + "\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"b\"\n\n" +
				"--b\nContent-Type: image/png\nContent-Disposition: attachment; filename=logo.png\nContent-Transfer-Encoding: base64\n\niVBORw0K\n" +
				"--b\nContent-Type: text/plain\n\nSee above\n--b--\n", "See above",
		},
		"a text that cannot be redacted": {relayed + "From: ann@example.com\nSubject: " + wrong + "\n\nunredactable\n", "-"},
		"an unreadable statement above":  {"Authentication-Results: mx.example.com; dkim\n" + relayed + "From: ann@example.com\nSubject: " + wrong + "\n" + plainBody, ""},
		"another sender":                 {relayed + "From: eve@example.com\nSubject: " + wrong + "\n" + plainBody, ""},
		"not proven":                     {"From: ann@example.com\nSubject: " + wrong + "\n" + plainBody, ""},
		"by another relay":               {strings.Replace(relayed, "mx.", "mx2.", 1) + "From: ann@example.com\nSubject: " + wrong + "\n" + plainBody, ""},
		"refuted":                        {strings.Replace(relayed, "=pass", "=fail", 1) + "From: ann@example.com\nSubject: " + wrong + "\n" + plainBody, ""},
		"written below":                  {"Authentication-Results: mx.example.com; none\n" + relayed + "From: ann@example.com\nSubject: " + wrong + "\n" + plainBody, ""},
		"of another domain":              {strings.Replace(relayed, "header.d=example.com", "header.d=evil.example", 1) + "From: ann@example.com\nSubject: " + wrong + "\n" + plainBody, ""},
		"of a top domain":                {strings.Replace(relayed, "header.d=example.com", "header.d=com", 1) + "From: ann@example.com\nSubject: " + wrong + "\n" + plainBody, ""},
		"two senders":                    {relayed + "From: ann@example.com, eve@example.com\nSubject: " + wrong + "\n" + plainBody, ""},
		"another opinion":                {relayed + "From: ann@example.com\nSubject: " + strings.Replace(wrong, "wrong", "silly", 1) + "\n" + plainBody, ""},
		"no token":                       {relayed + "From: ann@example.com\nSubject: criticizer feedback\n" + plainBody, ""},
		"a changed token":                {relayed + "From: ann@example.com\nSubject: " + strings.Replace(wrong, answerToken, "bbcdefg234567", 1) + "\n" + plainBody, ""},
		"an unsigned token":              {relayed + "From: ann@example.com\nSubject: criticizer feedback " + answerToken + " wrong\n" + plainBody, ""},
		"about another mail":             {relayed + "From: ann@example.com\nSubject: holidays\n" + plainBody, ""},
	} {
		box := serveMailbox(t, nil, stored{text: tc.message, age: -time.Since(testRef().since)})
		answers := Answers{Mailbox: box, Keys: testKeys, Relay: "mx.example.com", Redact: func(s string) (string, error) {
			if s == "unredactable" {
				return s, failure.Errorf(failure.RedactionBlocked, "blocked")
			}
			return s, nil
		}}
		got, err := answers.Feedback(t.Context())
		testkit.NoError(t, err)
		switch {
		case tc.note == "" && len(got) > 0:
			t.Errorf("%s: counted as %+v", name, got)
		case tc.note != "" && (len(got) != 1 || got[0].Token != answerToken || got[0].Opinion != review.OpinionWrong || got[0].Note != strings.Trim(tc.note, "-")):
			t.Errorf("%s: got %+v, want the note %q", name, got, tc.note)
		}
	}
}

// A mail without a mailbox for answers says nothing about them.
func TestAnswersAreOfferedOnlyWithAMailbox(t *testing.T) {
	t.Parallel()
	r := findingsReport()
	r.Findings[0].FeedbackToken = answerToken
	for _, cfg := range []Config{fullConfig, testConfig} {
		m, err := Render(r, testKey, testToken, cfg)
		testkit.NoError(t, err)
		offered := strings.Contains(m.HTML, "mailto:criticizer@example.com?subject=criticizer%20feedback%20"+answerToken+".")
		if offered != (cfg.FeedbackRelay != "") || strings.Contains(m.Text, "feedback") != offered {
			t.Errorf("feedback %q: offered %v in\n%s", cfg.FeedbackRelay, offered, m.Text)
		}
	}
}
