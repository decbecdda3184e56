package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"regexp"
	"slices"
	"testing"

	messagemail "github.com/emersion/go-message/mail"

	"github.com/criticizer/criticizer/notify/mail"
	"github.com/criticizer/criticizer/review"
)

// A parsedMail is a message as a mail program reads it.
type parsedMail struct{ to, from, subject, text, html string }

// rendered returns the mail about a finding with text in all its text fields.
func rendered(t *testing.T, text string) parsedMail {
	t.Helper()
	m, err := mail.Render(review.Report{
		Changelist: 4711, Version: 1, Author: "ann", Description: "Fix typo", Outcome: review.OutcomeFindings,
		FilesTotal: 1, FilesRead: 1, Model: "m-1",
		Findings: []review.Finding{{
			Path: text, Severity: review.SeverityHigh, Category: review.CategorySecurity, Confidence: 0.9,
			Title: text, Explanation: text, Suggestion: text, Quote: text,
		}},
		SubmittedAt: "2026-11-20T10:15:00Z", ReviewedAt: "2026-11-20T10:16:30Z",
	}, review.DeliveryKey{Changelist: 4711, Recipient: "ann@example.com", Version: 1}, "0123456789abcdef", "Criticizer <criticizer@example.com>", "example.com")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := m.MIME()
	if err != nil {
		t.Fatal(err)
	}
	return parseMail(t, raw)
}

func parseMail(t *testing.T, raw []byte) parsedMail {
	t.Helper()
	r, err := messagemail.CreateReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	got := parsedMail{to: r.Header.Get("To"), from: r.Header.Get("From"), subject: r.Header.Get("Subject")}
	for _, field := range []string{"Cc", "Bcc", "Reply-To"} {
		if r.Header.Has(field) {
			t.Errorf("the mail has a field %s", field)
		}
	}
	var parts []string
	for {
		part, err := r.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(part.Body)
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, string(body))
	}
	if len(parts) != 2 {
		t.Fatalf("the mail has %d parts, want text and HTML", len(parts))
	}
	got.text, got.html = parts[0], parts[1]
	return got
}

var (
	// tag matches the begin or end of an HTML element.
	tag = regexp.MustCompile(`<[^>\s]*`)
	// link matches text that mail programs make clickable.
	link = regexp.MustCompile(`(?i)\b[a-z]+://\S|\bwww\.\w|\bmailto:\w`)
)

// elements lists the distinct elements of an HTML text.
func elements(html string) []string {
	found := tag.FindAllString(html, -1)
	slices.Sort(found)
	return slices.Compact(found)
}

// If a model follows injected instructions, their text reaches findings. There it is
// plain text: the mail neutralizes links and HTML, and neither recipients nor subject
// depend on it.
func TestInjectionIsTextInTheMail(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../llm/testdata/injections.json")
	if err != nil {
		t.Fatal(err)
	}
	var attacks []struct{ Name, Text string }
	if err := json.Unmarshal(data, &attacks); err != nil {
		t.Fatal(err)
	}
	innocent := rendered(t, "Off by one")
	for _, attack := range attacks {
		t.Run(attack.Name, func(t *testing.T) {
			t.Parallel()
			got := rendered(t, attack.Text)
			if got.to != innocent.to || got.from != innocent.from || got.subject != innocent.subject {
				t.Errorf("to %q, from %q, subject %q: want those of any other finding", got.to, got.from, got.subject)
			}
			if found, want := elements(got.html), elements(innocent.html); !slices.Equal(found, want) {
				t.Errorf("the HTML has the elements %s: want only %s", found, want)
			}
			if found := link.FindString(got.text + "\n" + got.html); found != "" {
				t.Errorf("mail programs make a link of %s", found)
			}
		})
	}
}
