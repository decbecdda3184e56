package mail

import "context"

// Ping signs in to the mail server and names our sender, but sends nothing.
// Errors carry the class that sending would have met.
func (p *SMTPProvider) Ping(ctx context.Context) error {
	ctx, hangUp := context.WithCancel(ctx)
	defer hangUp()
	s, err := p.connect(ctx)
	if err != nil {
		return classify(ctx, stepConnect, err)
	}
	if err := s.Mail(envelope(p.cfg.fromAddress())); err != nil {
		return classify(ctx, stepMail, err)
	}
	s.sayGoodbye()
	return nil
}

// Ping signs in to the mailbox and opens it. Errors carry the class that a
// look-up would have met.
func (m *Mailbox) Ping(ctx context.Context) error {
	return m.withDefaults().visit(ctx, func(visit) error { return nil })
}
