// Package bench compares the rate of deliveries with the rate of go-mail alone.
package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	gomail "github.com/wneessen/go-mail"
	"golang.org/x/sync/errgroup"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/notify/evidence"
	"github.com/criticizer/criticizer/notify/mail"
	"github.com/criticizer/criticizer/notify/mail/inbox"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store"
	"github.com/criticizer/criticizer/store/artifact"
	"github.com/criticizer/criticizer/store/storetest"
)

const (
	// recipients of each review.
	recipients = 5
	// atATime is how many reviews are in their last stage at once, as in a busy
	// worker.
	atATime = 8
	// sender sends all mails.
	sender = "criticizer@example.com"
)

var discard = slog.New(slog.DiscardHandler)

// BenchmarkMail measures deliveries to a mail server that stores messages on disk:
// ours, each of which is read, begun, sent and marked, and go-mail's own
// Send of a text of the same length on one connection.
func BenchmarkMail(b *testing.B) {
	const rounds = 5
	for range rounds {
		b.Run("criticizer", func(b *testing.B) { benchmarkDeliveries(b, serveInbox(b)) })
		b.Run("go-mail", func(b *testing.B) { benchmarkGoMail(b, serveInbox(b)) })
	}
}

// serveInbox runs the mail server and returns its configuration.
func serveInbox(b *testing.B) mail.Config {
	b.Helper()
	box, err := inbox.Open(discard, inbox.Config{Dir: b.TempDir(), SMTPAddr: "127.0.0.1:0", HTTPAddr: "127.0.0.1:0"})
	testkit.NoError(b, err)
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- box.Serve(ctx) }()
	b.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			b.Error(err)
		}
	})
	text, err := evidence.Generate()
	testkit.NoError(b, err)
	keys, err := evidence.New(text, time.Hour)
	testkit.NoError(b, err)
	return mail.Config{From: sender, Host: "127.0.0.1", Port: box.SMTPAddr().Port, TLS: mail.TLSNone, Keys: keys}
}

func benchmarkDeliveries(b *testing.B, cfg mail.Config) {
	b.Helper()
	s := newStage(b, cfg)
	reviews := make(chan activities.StageParams, b.N)
	for i := range (b.N + recipients - 1) / recipients {
		reviews <- s.prepare(b, i+1)
	}
	close(reviews)
	mails := len(reviews) * recipients
	b.ResetTimer()
	var working errgroup.Group
	for range atATime {
		working.Go(func() error {
			for params := range reviews {
				if done, err := s.Notify(b.Context(), params); err != nil || done.Sent != recipients {
					return fmt.Errorf("review of changelist %d: %+v, %w", params.Request.Changelist, done, err)
				}
			}
			return nil
		})
	}
	testkit.NoError(b, working.Wait())
	b.ReportMetric(float64(mails)/b.Elapsed().Seconds(), "mails/s")
}

// A stage is the last stage of a review, and the stores that earlier stages write.
type stage struct {
	*activities.Notifier
	fetch, bookkeeping *store.DB
	reports            *artifact.Store // to be written
}

func newStage(b *testing.B, cfg mail.Config) stage {
	b.Helper()
	server, err := mail.NewSMTPProvider(discard, cfg)
	testkit.NoError(b, err)
	provider, err := mail.NewEvidencedProvider(server, config.Default[mail.EvidenceConfig]())
	testkit.NoError(b, err)
	post, err := mail.New(discard, provider, cfg)
	testkit.NoError(b, err)
	keyset, err := artifact.NewKeyset(artifact.KEK{})
	testkit.NoError(b, err)
	database := storetest.New(b)
	open := func(role store.Role) (*store.DB, *artifact.Store) {
		db := database.Open(b, role)
		reports, err := artifact.New(db.Blobs(review.NamespaceReport), artifact.Config{Namespace: review.NamespaceReport, Keyset: keyset, TTL: time.Hour})
		testkit.NoError(b, err)
		return db, reports
	}
	outbox, written := open(store.RoleNotify)
	_, reports := open(store.RoleLLM)
	return stage{
		Notifier: &activities.Notifier{
			Log: discard, Reports: written, Outbox: outbox, Post: post,
			Policy: activities.RecipientPolicy{CleanTo: activities.CleanToEveryone, Max: recipients},
		},
		fetch: database.Open(b, store.RoleFetch), bookkeeping: database.Open(b, store.RoleBookkeeping), reports: reports,
	}
}

// prepare creates a review before its last stage.
func (s stage) prepare(b *testing.B, number int) activities.StageParams {
	b.Helper()
	req := review.Request{
		Changelist: review.Changelist(number), Version: 1, ServerID: "bench", Key: review.DefaultKey("bench", review.Changelist(number), 1),
	}
	if _, err := s.bookkeeping.OpenJob(b.Context(), req, "run"); err != nil {
		b.Fatal(err)
	}
	var known []review.Recipient
	var addresses []string
	for i := range recipients {
		address := fmt.Sprintf("reader%d@example.com", i)
		known = append(known, review.Recipient{User: fmt.Sprintf("reader%d", i), Address: address, Role: review.RoleSubscriber})
		addresses = append(addresses, address)
	}
	testkit.NoError(b, s.fetch.SaveRecipients(b.Context(), req.Changelist, req.Version, known))
	if _, err := s.Outbox.PrepareDeliveries(b.Context(), req.Changelist, req.Version, addresses); err != nil {
		b.Fatal(err)
	}
	body, err := json.Marshal(report(number))
	testkit.NoError(b, err)
	ref, err := s.reports.Put(b.Context(), req.Owner(), body)
	testkit.NoError(b, err)
	return activities.StageParams{Request: req, Input: ref}
}

func report(number int) review.Report {
	return review.Report{
		Changelist: review.Changelist(number), Version: 1, Outcome: review.OutcomeFindings, Author: "reader0",
		Description: "Make the benchmark faster.", Record: review.Record{Model: "bench"}, SubmittedAt: "2026-11-21T09:00:00Z", ReviewedAt: "2026-11-21T09:01:00Z",
		Findings: []review.Finding{{
			Path: "//depot/main/bench.go", StartLine: 7, EndLine: 9, Severity: review.SeverityHigh, Category: "correctness",
			Title: "The loop never ends", Explanation: strings.Repeat("It has no condition that changes. ", 8), Quote: "for {\n}",
		}},
	}
}

// benchmarkGoMail sends messages with the length of ours.
func benchmarkGoMail(b *testing.B, cfg mail.Config) {
	b.Helper()
	key := review.DeliveryKey{Changelist: 1, Recipient: "reader0@example.com", Version: 1}
	ours, err := mail.Render(report(1), key, cfg.Keys.Token(key), cfg)
	testkit.NoError(b, err)
	client, err := gomail.NewClient(cfg.Host, gomail.WithPort(cfg.Port), gomail.WithTLSPolicy(gomail.NoTLS))
	testkit.NoError(b, err)
	testkit.NoError(b, client.DialWithContext(b.Context()))
	raw, err := ours.MIME()
	testkit.NoError(b, err)
	text := strings.Repeat(strings.Repeat("x", 70)+"\n", len(raw)/71)
	for b.Loop() {
		m := gomail.NewMsg()
		m.SetMessageID()
		m.Subject("bench")
		m.SetBodyString(gomail.TypeTextPlain, text)
		testkit.NoError(b, errors.Join(m.From(sender), m.To("reader0@example.com"), client.Send(m)))
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "mails/s")
	testkit.NoError(b, client.Close())
}
