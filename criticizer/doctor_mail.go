package main

import (
	"context"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/operator"
	"github.com/criticizer/criticizer/notify/mail"
)

func (i installation) mail(ctx context.Context, found *operator.Findings) error {
	keys, err := i.cfg.NewEvidenceKeys()
	if err != nil {
		return advise(err, "set CRITICIZER_EVIDENCE_KEY_FILE to a file with the output of: criticizer keyset evidence")
	}
	provider, err := i.cfg.NewMailProvider(quiet, i.cfg.MailServer(keys))
	if err != nil {
		return advise(err, "correct section mail of the configuration")
	}
	err = provider.Ping(ctx)
	if failure.ClassOf(err) == failure.AuthDenied {
		return advise(err, "correct the account and its password or key, section mail of: criticizer help configuration.md")
	}
	if err == nil {
		found.OK("%s accepts mail from %s", i.cfg.Mail.SMTP.Server.Host(), i.cfg.Mail.SMTP.From)
	}
	return err
}

func (i installation) journal(ctx context.Context, found *operator.Findings) error {
	box := i.cfg.Mail.Evidence.Journal
	if box.Server == "" && i.cfg.Mail.Evidence.MTALog == "" {
		found.Warn("set mail.journal or mail.mta_log; how: criticizer help delivery.md",
			"there is no delivery evidence for a mail whose sending was interrupted: it is held for an operator")
	}
	if err := checkMailbox(ctx, found, box); err != nil || box.Server == "" || box.Server.IsInbox() {
		return err
	}
	switch proves, err := box.ProvesAbsence(ctx, i.cfg.MailServer(nil)); {
	case err != nil:
		return err
	case proves:
		found.OK("the journal can prove that a mail is absent")
	default:
		found.Warn("send a review and run this again; then check that the mail server copies every message into this mailbox and keeps it for 30 days",
			"the journal cannot prove that a mail is absent, because it shows no mail of ours from before: a mail in doubt is held")
	}
	return nil
}

func (i installation) bounces(ctx context.Context, found *operator.Findings) error {
	return checkMailbox(ctx, found, i.cfg.Mail.Evidence.Bounces)
}

func checkMailbox(ctx context.Context, found *operator.Findings, box mail.Mailbox) error {
	if box.Server == "" || box.Server.IsInbox() {
		return nil
	}
	err := box.Ping(ctx)
	if err == nil {
		found.OK("the mailbox of %s can be read", box.Server.User())
	}
	return err
}
