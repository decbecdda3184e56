package mail

import "context"

// Ping signs in to the mail server and names our sender, but sends nothing.
// Errors carry the class that sending would have met.
func (p *SMTPProvider) Ping(ctx context.Context) error {
	ctx, hangUp := context.WithCancel(ctx)
	defer hangUp()
	client, err := p.connect(ctx, Message{})
	if err != nil {
		return classify(ctx, stepConnect, err)
	}
	if err := client.Mail(envelope(p.cfg.fromAddress())); err != nil {
		return classify(ctx, stepMail, err)
	}
	sayGoodbye(client)
	return nil
}
