package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/wiring"
	"github.com/criticizer/criticizer/notify/mail"
	"github.com/criticizer/criticizer/store"
)

// minTicketLeft leaves a day to renew a ticket.
const minTicketLeft = 24 * time.Hour

func (p patient) perforce(ctx context.Context) []diagnosis {
	changes, err := wiring.Changes(quiet, p.cfg)
	if err != nil {
		return []diagnosis{failing(err, "correct section p4 of the configuration")}
	}
	info, err := changes.Info(ctx)
	if err != nil {
		return []diagnosis{p.refusedByPerforce(err)}
	}
	found := []diagnosis{well("%s, case %s", info.Version, info.CaseHandling)}
	account, err := changes.Account(ctx)
	if err != nil {
		return append(found, p.refusedByPerforce(err))
	}
	const renew = "renew it with p4 login, for an account of a group whose Timeout is unlimited"
	switch left := account.TicketLeft; {
	case left == 0:
		found = append(found, well("user %s is logged in, for good", p.cfg.P4.User))
	case left < minTicketLeft:
		found = append(found, warning(renew, "the ticket of user %s ends in %s", p.cfg.P4.User, age(left)))
	default:
		found = append(found, well("user %s is logged in for %s", p.cfg.P4.User, age(left)))
	}
	for _, entry := range account.Unreadable {
		found = append(found, failing(fmt.Errorf("user %s may not read %s", p.cfg.P4.User, entry), "grant it read with p4 protect, or take the entry off p4.allowed_paths"))
	}
	for _, entry := range account.Empty {
		found = append(found, warning("check its spelling in p4.allowed_paths, and the account's permissions", "user %s sees no file under %s", p.cfg.P4.User, entry))
	}
	if len(account.Unreadable)+len(account.Empty) == 0 {
		found = append(found, well("every allowed path can be read"))
	}
	return found
}

// refusedByPerforce says how the account is logged in, and how the server's key
// is trusted: p4 keeps both where no p4 command of a person looks.
func (p patient) refusedByPerforce(err error) diagnosis {
	cfg := p.cfg.P4
	if failure.ClassOf(err) == failure.ConfigInvalid && strings.Contains(err.Error(), "p4trust") {
		return failing(err, fmt.Sprintf("as the user of the workers: P4TRUST=%s p4 -p %s trust, which shows the fingerprint to compare",
			filepath.Join(cfg.StateDir, "p4trust"), cfg.Port))
	}
	return denied(err, fmt.Sprintf("p4 -p %s -u %s login -a -p prints a ticket: write it to the file of CRITICIZER_P4_TICKET_FILE", cfg.Port, cfg.User))
}

func (p patient) allowList(ctx context.Context) []diagnosis {
	list := configured(p.cfg)
	if _, err := checkedList(list); err != nil {
		return []diagnosis{failing(err, "")}
	}
	db, err := store.Open(ctx, quiet, p.cfg.Database.URL, store.RoleFetch)
	if err != nil {
		return []diagnosis{failing(err, "mend what is said of postgres first")}
	}
	defer db.Close()
	const apply = `look at the list, then run criticizer allowlist apply -reason "WHY"`
	applied, err := db.AppliedAllowList(ctx)
	switch changes := list.Changes(applied.AllowList); {
	case failure.ClassOf(err) == failure.NotFound:
		return []diagnosis{failing(err, apply)}
	case err != nil:
		return []diagnosis{failing(err, "mend what is said of postgres first")}
	case len(changes) > 0:
		return []diagnosis{failing(fmt.Errorf("the configuration differs from version %d, which is in force: %s", applied.ID, strings.Join(changes, ", ")), apply)}
	}
	return []diagnosis{well("%s, version %d, in force since %s", plural(len(list.Allowed), "path"), applied.ID, stamp(applied.AppliedAt))}
}

// model makes a call of a few tokens, over the guard and with the settings of a
// review.
func (p patient) model(ctx context.Context) []diagnosis {
	pipeline, err := wiring.Pipeline(p.cfg, p.cfg.Redaction.Key)
	if err != nil {
		return []diagnosis{failing(err, "set CRITICIZER_REDACTION_KEY to 16 random bytes or more")}
	}
	reviewer, err := wiring.Reviewer(quiet, pipeline, p.cfg)
	if err != nil {
		return []diagnosis{failing(err, "correct section llm of the configuration")}
	}
	begun := time.Now()
	err = reviewer.Ping(ctx)
	switch class := failure.ClassOf(err); {
	case class == failure.NetworkUnreachable, class == failure.NetworkTimeout:
		return []diagnosis{failing(err, fmt.Sprintf("check llm.base_url, %s: that it is up, and that this machine may reach it", p.cfg.LLM.BaseURL))}
	case err != nil:
		return []diagnosis{denied(err, "renew the key, in the file of OPENAI_API_KEY_FILE")}
	}
	return []diagnosis{well("%s answered in %s", p.cfg.LLM.Model, time.Since(begun).Round(time.Millisecond))}
}

func (p patient) mail(ctx context.Context) []diagnosis {
	provider, err := wiring.Provider(quiet, p.cfg)
	if err != nil {
		return []diagnosis{failing(err, "correct section mail of the configuration")}
	}
	if err := provider.Ping(ctx); err != nil {
		return []diagnosis{denied(err, "correct the account and its password or key: docs/configuration.md, section mail")}
	}
	return []diagnosis{well("%s would take mail of %s", p.cfg.Mail.Provider, p.cfg.Mail.From)}
}

func (p patient) journal(ctx context.Context) []diagnosis {
	box := wiring.Journal(p.cfg)
	if box == nil && p.cfg.Mail.Provider == "smtp" && p.cfg.Mail.MTALog == "" {
		return []diagnosis{warning("set mail.journal or mail.mta_log: docs/delivery.md says how",
			"nothing can tell what became of a mail whose delivery broke off: it is held for an operator")}
	}
	return opened(ctx, box)
}

func (p patient) bounces(ctx context.Context) []diagnosis {
	return opened(ctx, wiring.Bounces(p.cfg))
}

func opened(ctx context.Context, box *mail.Mailbox) []diagnosis {
	if box == nil {
		return nil
	}
	if err := box.Ping(ctx); err != nil {
		return []diagnosis{failing(err, "")}
	}
	return []diagnosis{well("mailbox %s of %s can be read", box.Name, box.Username)}
}
