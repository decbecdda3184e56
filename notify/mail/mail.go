// Package mail renders the digest of a review, sends it, and looks up whether
// it was sent.
//
// SMTP has no idempotency token: if the connection breaks while the server
// confirms a message, the client cannot know whether the server accepted it.
// Every attempt at one delivery therefore sends the same bytes under the same
// Message-ID, and only the server's own reply counts as sent. A message in
// doubt is [failure.DeliveryAmbiguous] and is resolved by [EvidencedProvider.Lookup], never
// by sending it again (notification 6.4, 8.2).
//
// Read mail.go, then render.go with digest.go, which fills the templates, then smtp.go,
// which sends, with classify.go for its errors. evidence.go looks a message up in the
// records of the server: journal.go, bounces.go, postfixlog.go, and inbox.go for the
// embedded inbox of the demo and the tests.
package mail

import (
	"bytes"
	"fmt"
	"net/mail"
	"time"

	gomail "github.com/wneessen/go-mail"
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
