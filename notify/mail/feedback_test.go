package mail

import (
	"fmt"
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
		"only HTML": {
			relayed + "From: ann@example.com\nSubject: " + wrong + "\nMIME-Version: 1.0\nContent-Type: text/html; charset=utf-8\n\n<p>The caller <b>closes</b> it.</p>\n", "The caller closes it.",
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

// An answer whose text the server does not deliver does not keep the others unread.
func TestAnswerWithoutItsText(t *testing.T) {
	t.Parallel()
	text := strings.ReplaceAll(relayed+"From: ann@example.com\nSubject: "+subjectOf("ann@example.com", review.OpinionWrong)+"\n\nNo\n", "\n", "\r\n")
	for name, other := range map[string]string{"left out": "", "without its text": "* 1 FETCH (UID 1 INTERNALDATE \"01-Nov-2026 10:00:00 +0000\")\r\n"} {
		box := serveIMAP(t, func(command string, _ func() string) (untagged, answer string) {
			switch {
			case strings.HasPrefix(command, "EXAMINE"):
				return "* 2 EXISTS\r\n* FLAGS ()\r\n* OK [UIDVALIDITY 1] ok\r\n", ""
			case strings.HasPrefix(command, "UID SEARCH"):
				return "* SEARCH 1 2\r\n", ""
			case strings.HasPrefix(command, "UID FETCH"):
				return other + fmt.Sprintf("* 2 FETCH (UID 2 INTERNALDATE \"01-Nov-2026 11:00:00 +0000\" BODY[]<0> {%d}\r\n%s)\r\n", len(text), text), ""
			}
			return "", ""
		})
		answers := Answers{Mailbox: box, Keys: testKeys, Relay: "mx.example.com", Redact: func(s string) (string, error) { return s, nil }}
		if got, err := answers.Feedback(t.Context()); err != nil || len(got) != 1 || got[0].Note != "No" {
			t.Errorf("%s: got %+v, error %v", name, got, err)
		}
	}
}

// What mail programs add to an answer is not its note, in any language. The lines are those of
// crisp-oss/email-reply-parser, mailgun/talon and kvannotten/mailstrip#1.
func TestNote(t *testing.T) {
	t.Parallel()
	const answer = "It is closed\nby the caller: see line 5."
	for name, added := range map[string]string{
		"English, wrapped":     "On Mon, Aug 26, 2019 at 4:37 PM The Robot <\na-really-long-address@example.com> wrote:\n\n> Test\n",
		"English, three lines": "On Tue, 16 Nov 2021, 12:34 pm Robot - Review <robot@example.com>\nwrote:\n\nTest",
		"German":               "Am 13.12.2017 21:11 schrieb \"Robot <robot@example.com>:\n\nTest",
		"German, Apple":        "Am 03.04.2012 um 16:19 schrieb Robot:\n\n> Test",
		"French":               "Le lun. 15 nov. 2021 à 19:42, Robot <robot@example.com>\na écrit :\n\nTest",
		"Italian":              "In data 11 ottobre 2017 21:11:31 \"Robot\" <robot@example.com> ha scritto:\n\nTest",
		"Portuguese":           "Em 10 de julho de 2017 às 16:32:35, Robot (\nrobot@example.com) escreveu:\n\nTest",
		"Finnish":              "pe 20. lokakuuta 2017 klo 17.50 Robot\n<robot@example.com> kirjoitti:\n\nTest",
		"Norwegian":            "tir. 18. apr. 2017 kl. 13:09 skrev Robot <robot@example.com\n>:\n\n> Test",
		"Swedish":              "tors 6 dec. 2018 kl 13:30 skrev Robot <\nrobot@example.com>:\n\n> Test",
		"Russian":              "ср, 30 апр. 2025 г. в 15:19, Robot <robot@example.com>:\n\nTest",
		"Hungarian":            "2013.02.08. 7:31 keltezéssel, \"Robot\" írta:\n> Test",
		"Outlook":              "From: Robot\n<robot@example.com> \nSent: Monday, August 26, 2019 4:37 PM\nTo: Ann\n\nTest",
		"Outlook, German":      "Von: Robot <robot@example.com>\nGesendet: Donnerstag, 23. März 2023 17:11\nAn: Ann\n\nTest",
		"Outlook, Danish":      "-------- Oprindelig besked --------\nFra: Robot <robot@example.com>\n\nTest",
		"Yahoo, French":        "      De : Robot <robot@example.com>\n À : ann <ann@example.com>\n Envoyé le : Mercredi 30 novembre 2016 10h30\n\nTest",
		"Outlook for iOS":      "Get Outlook for iOS<https://aka.ms/o0ukef>\n________________________________\nFrom: Robot <robot@example.com>",
		"a phone":              "Sent from my iPhone",
		"Outlook, bare":        "From: robot@example.com\nTo: ann@example.com\nSubject: Review\nDate: Mon, Aug 26, 2019 at 4:37 PM\n\nTest",
		"Chinese":              "在 2019-08-26 16:37:11，robot@example.com 写道：\n\nTest",
		"a phone, German":      "Von meinem iPhone gesendet",
		"a phone by its maker": "Sent from my Samsung Galaxy smartphone.",
		"Windows":              "Sent from Mail for Windows 10",
		"Yahoo":                "Sent from Yahoo Mail on Android",
		"a signature":          "-- \nAnn",
	} {
		if got, want := note(strings.ReplaceAll(answer+"\n\n"+added, "\n", "\r\n")), "It is closed by the caller: see line 5."; got != want {
			t.Errorf("%s: %q", name, got)
		}
		if got := note(added); got != "" {
			t.Errorf("%s, without an answer: %q", name, got)
		}
	}
	for _, own := range []string{
		"In line 10:20 the guard is there:",
		"Wrong: bob@example.com wrote the guard\nReason: it is checked at 10:20.",
		"Author: Bob <bob@example.com>\nReason: he checks it",
		"Since 2023 the caller checks this.\nSee the docs of @param,\nespecially:",
		"Get Mail by id is checked by the caller",
		"Sent from my handler the value is never nil",
		"Sent from Mail on each error: it is logged",
	} {
		if got, want := note(own+"\n\n> if x\n"), strings.ReplaceAll(own, "\n", " "); got != want {
			t.Errorf("of %q only %q is left", want, got)
		}
	}
	for name, markup := range map[string]string{
		"Gmail":   `<div dir="ltr">It is closed<br>by the caller: see line&nbsp;5.</div><br><div class="gmail_quote">On Mon, Apr 2, 2012 at 6:26 PM, Robot &lt;<a href="mailto:robot@example.com">robot@example.com</a>&gt; wrote:<br><blockquote>Test</blockquote></div>`,
		"Outlook": `<html><head><style>p {color: red}</style></head><body><p class="MsoNormal">It is closed by the caller: see line 5.<o:p></o:p></p><div><p><b>Von:</b> Robot &lt;robot@example.com&gt; <br><b>Gesendet:</b> Donnerstag, 23. März 2023 17:11<br><b>An:</b> Ann</p></div><p>Test</p></body></html>`,
		"Apple":   `<body>It is closed by the caller: see line 5.<div><br><blockquote type="cite"><div>Am 03.04.2012 schrieb Robot:</div>Test</blockquote></div></body>`,
	} {
		if got, want := note(textOf(markup)), "It is closed by the caller: see line 5."; got != want {
			t.Errorf("HTML of %s: %q", name, got)
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
