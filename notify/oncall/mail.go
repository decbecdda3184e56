package oncall

import (
	"bytes"
	"context"
	"fmt"
	"net/mail"
	"strings"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
)

// A Sender passes one message to a mail server. id is the Message-ID without
// angle brackets; from and to are bare addresses.
type Sender func(ctx context.Context, id, from, to string, raw []byte) error

// A Mail sends pages to one mail address.
type Mail struct {
	from *mail.Address
	to   string
	send Sender
}

// NewMail returns a channel to the bare address to. from is the sender, with or
// without a name.
func NewMail(from, to string, send Sender) (*Mail, error) {
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
	id := fmt.Sprintf("criticizer-page-%d@%s", p.ID, domain)
	if err := m.send(ctx, id, m.from.Address, m.to, m.render(id, p)); err != nil {
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

func (m *Mail) render(id string, p failure.Page) []byte {
	var out bytes.Buffer
	line := func(format string, args ...any) { fmt.Fprintf(&out, format+"\r\n", args...) }
	line("Message-ID: <%s>", id)
	line("Date: %s", time.Now().Format(time.RFC1123Z))
	line("From: %s", m.from)
	line("To: <%s>", m.to)
	line("Subject: [criticizer] %s: %s in stage %s of CL %d", p.Reason, p.ErrorClass, p.Stage, p.Changelist)
	line("Auto-Submitted: auto-generated")
	line("MIME-Version: 1.0")
	line("Content-Type: text/plain; charset=us-ascii")
	line("")
	line("The review of changelist %d (version %d) is dead-lettered in stage %s with %s.", p.Changelist, p.ReviewVersion, p.Stage, p.ErrorClass)
	line("%s", explanations[p.Reason])
	line("")
	line("What to do: %s.", p.Hint)
	line("")
	line("  criticizer deadletter show %d", p.DeadLetterID)
	line("")
	line("Workflow %s", p.WorkflowID)
	line("Run      %s", p.RunID)
	line("Failed   %s", p.LastFailureAt.UTC().Format(time.RFC3339))
	return out.Bytes()
}
