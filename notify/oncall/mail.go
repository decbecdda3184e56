package oncall

import (
	"context"
	"fmt"
	"net/mail"
	"strings"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
)

// A Message is a page as a mail of plain text.
type Message struct {
	ID            string // Message-ID without angle brackets
	From          mail.Address
	To            string // a bare address
	Subject, Text string
}

// A Mail sends pages to one mail address.
type Mail struct {
	from *mail.Address
	to   string
	send func(context.Context, Message) error
}

// NewMail returns a channel to the bare address to. from is the sender, with or
// without a name. send passes a message to a mail server.
func NewMail(from, to string, send func(context.Context, Message) error) (*Mail, error) {
	sender, err := mail.ParseAddress(from)
	if err != nil {
		return nil, failure.Errorf(failure.ConfigInvalid, "page by mail: mail.from is not a mail address")
	}
	if a, err := mail.ParseAddress(to); err != nil || a.Address != to {
		return nil, failure.Errorf(failure.ConfigInvalid, "page by mail: oncall.address is not a bare mail address")
	}
	return &Mail{sender, to, send}, nil
}

// Name implements [Channel].
func (m *Mail) Name() string { return "mail" }

// Notify implements [Channel].
func (m *Mail) Notify(ctx context.Context, p failure.Page) error {
	_, domain, _ := strings.Cut(m.from.Address, "@")
	err := m.send(ctx, Message{
		ID: fmt.Sprintf("criticizer-page-%d@%s", p.ID, domain), From: *m.from, To: m.to,
		Subject: fmt.Sprintf("[criticizer] %s: %s in stage %s of CL %d", p.Reason, p.ErrorClass, p.Stage, p.Changelist),
		Text:    text(p),
	})
	if err != nil {
		return fmt.Errorf("mail page: %w", err)
	}
	return nil
}

// explanations explains each reason to the person on call.
var explanations = map[failure.PageReason]string{
	failure.PageEscalated: "It was replayed and failed again for the same reason.",
	failure.PageBug:       "This is a bug or a wrong configuration. It affects more than one review.",
	failure.PageDenied:    "Every review fails with this error, and no retry helps. The other reviews send no page.",
}

func text(p failure.Page) string {
	return fmt.Sprintf(`The review of changelist %d (version %d) is dead-lettered in stage %s with %s.
%s

What to do: %s.

  criticizer deadletter show %d

Workflow %s
Run      %s
Failed   %s
`, p.Changelist, p.ReviewVersion, p.Stage, p.ErrorClass, explanations[p.Reason], p.Hint, p.DeadLetterID,
		p.WorkflowID, p.RunID, p.LastFailureAt.UTC().Format(time.RFC3339))
}
