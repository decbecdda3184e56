package main

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/llm"
	"github.com/criticizer/criticizer/notify/mail"
	"github.com/criticizer/criticizer/p4"
	"github.com/criticizer/criticizer/store"
)

// minTicketLeft leaves a day to renew the ticket.
const minTicketLeft = 24 * time.Hour

func (i installation) perforce(ctx context.Context) []checkResult {
	changes, err := i.cfg.NewChanges(quiet, nil)
	if err != nil {
		return []checkResult{fail(err, "correct section p4 of the configuration")}
	}
	info, err := changes.Info(ctx)
	if err != nil {
		return []checkResult{i.refusedByPerforce(err)}
	}
	found := []checkResult{ok("%s, case %s", cmp.Or(info.Version, "a server that hides its version"), cmp.Or(info.CaseHandling, "unknown"))}
	account, err := changes.Account(ctx)
	if err != nil {
		return append(found, i.refusedByPerforce(err))
	}
	const renew = "renew it with p4 login, for an account of a group whose Timeout is unlimited"
	switch left := account.TicketLeft; {
	case left == 0:
		found = append(found, ok("user %s is logged in, without expiry", i.cfg.P4.User))
	case left < minTicketLeft:
		found = append(found, warn(renew, "the ticket of user %s expires in %s", i.cfg.P4.User, age(left)))
	default:
		found = append(found, ok("user %s is logged in for %s", i.cfg.P4.User, age(left)))
	}
	for _, u := range account.Unreadable {
		found = append(found, fail(fmt.Errorf("user %s cannot read %s: it lacks %s", i.cfg.P4.User, u.Entry, u.Lacks), "grant read access with p4 protect, or remove the entry from p4.allowed_paths"))
	}
	for _, entry := range account.Empty {
		found = append(found, warn("check its spelling in p4.allowed_paths, and the account's permissions", "user %s sees no file under %s", i.cfg.P4.User, entry))
	}
	found = append(found, i.visibility(account.ListsAll))
	if len(account.Unreadable)+len(account.Empty) == 0 {
		found = append(found, ok("every allowed path can be read"))
	}
	return found
}

// visibility reports whether the list of a change's files is known to be complete.
func (i installation) visibility(listsAll bool) checkResult {
	user := i.cfg.P4.User
	hint := fmt.Sprintf("end the protections table with the line: list user %s * //...", user)
	switch {
	case listsAll:
		return ok("user %s may list all files", user)
	case i.cfg.P4.MixedChanges == p4.ReviewAllowedOnly:
		return warn(hint+", or have the server make changes restricted by default (defaultChangeType)",
			"user %s may not list all files: the description of a change with hidden files is reviewed", user)
	}
	return fail(fmt.Errorf("the protections of user %s do not show that it may list all files: every change is denied, because it may have hidden files", user), hint)
}

// refusedByPerforce gives the commands that log the account in and trust the
// server's key: the workers keep both in files of their own.
func (i installation) refusedByPerforce(err error) checkResult {
	cfg := i.cfg.P4
	if failure.ClassOf(err) == failure.ConfigInvalid && strings.Contains(err.Error(), "p4trust") {
		return fail(err, fmt.Sprintf("as the user of the workers: P4TRUST=%s p4 -p %s trust, which prints the fingerprint to compare",
			filepath.Join(cfg.StateDir, "p4trust"), cfg.Port))
	}
	return failLogin(err, fmt.Sprintf("p4 -p %s -u %s login -a -p prints a ticket: write it to the file of CRITICIZER_P4_TICKET_FILE", cfg.Port, cfg.User))
}

func (i installation) allowList(ctx context.Context) []checkResult {
	list := i.cfg.AllowList()
	if _, err := checkedList(list); err != nil {
		return []checkResult{fail(err, "")}
	}
	db, err := store.Open(ctx, quiet, i.cfg.DatabaseConfig(), store.RoleFetch)
	if err != nil {
		return []checkResult{fail(err, "fix what the check postgres reports first")}
	}
	defer db.Close()
	const apply = `check the list, then run criticizer allowlist apply --reason "WHY"`
	applied, err := db.AppliedAllowList(ctx)
	switch changes := list.Changes(applied.AllowList); {
	case failure.ClassOf(err) == failure.NotFound:
		return []checkResult{fail(err, apply)}
	case err != nil:
		return []checkResult{fail(err, "fix what the check postgres reports first")}
	case len(changes) > 0:
		return []checkResult{fail(fmt.Errorf("the configuration differs from version %d in force: %s", applied.ID, strings.Join(changes, ", ")), apply)}
	}
	return []checkResult{ok("%s, version %d, in force since %s", plural(len(list.Allowed), "path"), applied.ID, stamp(applied.AppliedAt))}
}

// model makes a call of a few tokens, through the guard and with the settings of a
// review.
func (i installation) model(ctx context.Context) []checkResult {
	reviewer, wrong := i.reviewer()
	if wrong != nil {
		return wrong
	}
	begun := time.Now()
	err := reviewer.Ping(ctx)
	switch class := failure.ClassOf(err); {
	case class == failure.NetworkUnreachable, class == failure.NetworkTimeout:
		return []checkResult{fail(err, fmt.Sprintf("check llm.base_url, %s: that it is up, and that this machine may reach it", i.cfg.LLM.BaseURL))}
	case err != nil:
		return []checkResult{failLogin(err, adviceKey)}
	}
	return []checkResult{ok("%s answered in %s", i.cfg.LLM.Model, time.Since(begun).Round(time.Millisecond)), ok("%s", reviewer.Describe(ctx))}
}

const adviceKey = "renew the key in the file of OPENAI_API_KEY_FILE"

// checkUp reports whether the model's server reads a prompt of the configured size.
func (i installation) checkUp(ctx context.Context) []checkResult {
	reviewer, wrong := i.reviewer()
	if wrong != nil {
		return wrong
	}
	detail, fix, err := reviewer.CheckUp(ctx)
	found := []checkResult{ok("%s", reviewer.Describe(ctx))}
	switch {
	case err != nil:
		return append(found, failLogin(err, adviceKey))
	case fix != "": // no large change can be reviewed
		return append(found, checkResult{Status: statusFail, Detail: detail, Fix: fix})
	}
	return append(found, ok("%s", detail))
}

func (i installation) reviewer() (*llm.Reviewer, []checkResult) {
	pipeline, err := i.cfg.NewPipeline(i.cfg.Redaction.Key)
	if err != nil {
		return nil, []checkResult{fail(err, "set CRITICIZER_REDACTION_KEY to 16 random bytes or more")}
	}
	reviewer, err := i.cfg.NewReviewer(quiet, pipeline)
	if err != nil {
		return nil, []checkResult{fail(err, "correct section llm of the configuration")}
	}
	return reviewer, nil
}

func (i installation) mail(ctx context.Context) []checkResult {
	keys, err := i.cfg.NewEvidenceKeys()
	if err != nil {
		return []checkResult{fail(err, "set CRITICIZER_EVIDENCE_KEY_FILE to a file with the output of criticizer keyset evidence")}
	}
	provider, err := i.cfg.NewMailProvider(quiet, i.cfg.MailServer(keys))
	if err != nil {
		return []checkResult{fail(err, "correct section mail of the configuration")}
	}
	if err := provider.Ping(ctx); err != nil {
		return []checkResult{failLogin(err, "correct the account and its password or key: docs/configuration.md, section mail")}
	}
	return []checkResult{ok("%s accepts mail from %s", i.cfg.Mail.Provider, i.cfg.Mail.Server.From)}
}

func (i installation) journal(ctx context.Context) []checkResult {
	box := i.cfg.Mail.Evidence.Journal
	if box.Host == "" && i.cfg.Mail.Provider == "smtp" && i.cfg.Mail.Evidence.MTALog == "" {
		return []checkResult{warn("set mail.journal or mail.mta_log: docs/delivery.md describes how",
			"there is no delivery evidence for a mail whose sending was interrupted: it is held for an operator")}
	}
	return checkMailbox(ctx, box)
}

func (i installation) bounces(ctx context.Context) []checkResult {
	return checkMailbox(ctx, i.cfg.Mail.Evidence.Bounces)
}

func checkMailbox(ctx context.Context, box mail.Mailbox) []checkResult {
	if box.Host == "" {
		return nil
	}
	if err := box.Ping(ctx); err != nil {
		return []checkResult{fail(err, "")}
	}
	return []checkResult{ok("mailbox %s of %s can be read", box.Name, box.Username)}
}
