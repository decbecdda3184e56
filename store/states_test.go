package store_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store"
)

// states holds the connections of the tests of docs/states.md. Each case has a
// changelist of its own.
type states struct {
	books, notify, operator, fetch *store.DB
	conn                           *pgx.Conn
	changelist                     review.Changelist
}

func newStates(t *testing.T) *states {
	t.Helper()
	books, d := bookkeeping(t)
	return &states{books, d.Open(t, store.RoleNotify), d.Open(t, store.RoleOperator), d.Open(t, store.RoleFetch), d.Conn(t), 0}
}

// begin opens the job of the next changelist.
func (s *states) begin(t *testing.T) review.Request {
	t.Helper()
	s.changelist++
	req := review.Request{Changelist: s.changelist, Version: 1, ServerID: "p4", Key: review.DefaultKey("p4", s.changelist, 1)}
	open(t, s.books, req, "run1")
	return req
}

// do executes an operation, which may refuse, and fails if it changes rows of another review.
func (s *states) do(t *testing.T, name string, operation func() error) {
	t.Helper()
	others := func() string {
		return query[string](t, s.conn, `select coalesce(string_agg(r, ';' order by r), '') from (
			select j::text from criticizer.jobs j where changelist_id <> $1
			union all select (to_jsonb(d) - 'bounced_at')::text from criticizer.deliveries d where changelist_id <> $1
			union all select l::text from criticizer.dead_letters l where changelist_id <> $1
			union all select p::text from criticizer.pages p where dead_letter_id in (select id from criticizer.dead_letters where changelist_id <> $1)
			union all select r::text from criticizer.replays r where dead_letter_id in (select id from criticizer.dead_letters where changelist_id <> $1)
			union all select q::text from criticizer.replay_requests q where dead_letter_id in (select id from criticizer.dead_letters where changelist_id <> $1)
			) as rows (r)`, s.changelist)
	}
	before := others()
	_ = operation()
	if after := others(); after != before {
		t.Errorf("%s of changelist %d changed another review:\n%s\n%s", name, s.changelist, before, after)
	}
}

// errOf is the error of a call that returns a value.
func errOf[T any](_ T, err error) error { return err }

// transitions is a set of "from --> to".
type transitions map[string]bool

// note adds the transition that an operation made. The error of an operation that
// refuses is expected: it leaves the state as it is.
func (t transitions) note(from, to string) {
	if from != to {
		t[edgeOf(from, to)] = true
	}
}

func edgeOf[S ~string](from, to S) string { return fmt.Sprintf("%s --> %s", from, to) }

func TestJobStatesAreThoseOfThePage(t *testing.T) {
	t.Parallel()
	s, seen := newStates(t), transitions{}
	operations := map[string]func(context.Context, review.Request) error{
		"OpenJob": func(ctx context.Context, req review.Request) error { return errOf(s.books.OpenJob(ctx, req, "run2")) },
		"FinishJob": func(ctx context.Context, req review.Request) error {
			recordOutcome(t, s.books, req, review.OutcomeClean, 0, "report:1")
			return errOf(s.books.FinishJob(ctx, req.Key, "report:1"))
		},
		"SkipJob": func(ctx context.Context, req review.Request) error {
			must(s.fetch.RecordContent(ctx, req.Changelist, req.Version, review.Content{SkippedBy: review.SkipRuleUser}))(t)
			return errOf(s.books.SkipJob(ctx, req.Key, review.SkipRuleUser))
		},
		"CancelJob": func(ctx context.Context, req review.Request) error {
			return s.books.CancelJob(ctx, req.Key, "canceled by olga: tested")
		},
		"ForgetChangelist": func(ctx context.Context, req review.Request) error {
			return errOf(s.operator.ForgetChangelist(ctx, req.Changelist, "olga", "T-1"))
		},
		"CloseEnded": func(ctx context.Context, req review.Request) error {
			return errOf(s.books.CloseEnded(ctx, store.Run{WorkflowID: req.Key, RunID: "run1"}, "terminated"))
		},
		"BeginReplay, replaced": func(ctx context.Context, req review.Request) error {
			newer := review.Request{Changelist: req.Changelist, Version: 2, ServerID: "p4", Key: req.Key + " again"}
			open(t, s.books, newer, "run1")
			finish(t, s.books, newer)
			_, err := s.books.BeginReplay(ctx, req, review.Replay{DeadRunID: "run1", NewRunID: "run2", Identity: "olga", Reason: "T-1"})
			return err
		},
		"RecordDeadLetter": func(ctx context.Context, req review.Request) error {
			return errOf(s.books.RecordDeadLetter(ctx, req, "run2", letterOf(failure.AuthDenied)))
		},
		"BeginReplay": func(ctx context.Context, req review.Request) error {
			return errOf(s.books.BeginReplay(ctx, req, review.Replay{DeadRunID: "run1", NewRunID: "run2", Identity: "olga", Reason: "T-1"}))
		},
	}
	for _, from := range []string{"in_progress", "succeeded", "retryable_failed", "canceled"} {
		for _, name := range slices.Sorted(maps.Keys(operations)) {
			req := s.begin(t)
			if name == "BeginReplay" || name == "CloseEnded" && from == "canceled" {
				must(s.books.RecordDeadLetter(t.Context(), req, "run1", letterOf(failure.AuthDenied)))(t)
			}
			exec(t, s.conn, `update criticizer.jobs set state = $2, outcome = case when $2 = 'succeeded' then 'clean' end,
				finished_at = case when $2 <> 'in_progress' then now() end where idempotency_key = $1`, req.Key, from)
			s.do(t, name, func() error { return operations[name](t.Context(), req) })
			seen.note(from, query[string](t, s.conn, `select state from criticizer.jobs where idempotency_key = $1`, req.Key))
		}
	}
	wantPage(t, "Job", seen)
}

func TestDeliveryStatesAreThoseOfThePage(t *testing.T) {
	t.Parallel()
	s, seen := newStates(t), transitions{}
	operations := map[string]func(context.Context, review.Delivery) error{
		"MarkSent": func(ctx context.Context, d review.Delivery) error {
			return s.notify.MarkSent(ctx, d.ID, "m1", "journal")
		},
		"MarkDeliveryFailed": func(ctx context.Context, d review.Delivery) error {
			return s.notify.MarkDeliveryFailed(ctx, d, failure.RecipientRejected)
		},
		"HoldDelivery":    s.notify.HoldDelivery,
		"BeginDelivery":   func(ctx context.Context, d review.Delivery) error { return errOf(s.notify.BeginDelivery(ctx, d)) },
		"AbandonDelivery": s.notify.AbandonDelivery,
		"RecordRefusal": func(ctx context.Context, d review.Delivery) error {
			return s.notify.RecordRefusal(ctx, d, failure.TooLarge)
		},
		"RecordCheck": func(ctx context.Context, d review.Delivery) error { return s.notify.RecordCheck(ctx, d.ID, true) },
		"FailDelivery": func(ctx context.Context, d review.Delivery) error {
			return errOf(s.notify.FailDelivery(ctx, d, failure.RecipientRejected))
		},
		"ReleaseDelivery": func(ctx context.Context, d review.Delivery) error { return errOf(s.notify.ReleaseDelivery(ctx, d)) },
		"RequeueUnproven": func(ctx context.Context, d review.Delivery) error {
			return errOf(s.notify.RequeueUnproven(ctx, d, false))
		},
		"RequeueUnproven again": func(ctx context.Context, d review.Delivery) error {
			if _, err := s.conn.Exec(ctx, `update criticizer.deliveries set unproven = 1 where id = $1`, d.ID); err != nil {
				return err
			}
			_, err := s.notify.RequeueUnproven(ctx, d, false)
			return err
		},
		"ForgetChangelist": func(ctx context.Context, d review.Delivery) error {
			exec(t, s.conn, `update criticizer.jobs set state = 'canceled', outcome = null, finished_at = now() where changelist_id = $1`, d.Key.Changelist)
			return errOf(s.operator.ForgetChangelist(ctx, d.Key.Changelist, "olga", "T-1"))
		},
		"WaiveDelivery": func(ctx context.Context, d review.Delivery) error {
			return s.operator.WaiveDelivery(ctx, d.ID, "olga", "T-1")
		},
		"ResendDelivery": func(ctx context.Context, d review.Delivery) error {
			return s.operator.ResendDelivery(ctx, d.ID, 0, "olga", "T-1")
		},
		"ReaddressDelivery": func(ctx context.Context, d review.Delivery) error {
			return errOf(s.operator.ReaddressDelivery(ctx, d.ID, "new@corp.test", "olga", "T-1"))
		},
	}
	for _, from := range []string{"pending", "sent", "failed", "held", "waived"} {
		for _, begun := range []bool{false, true} {
			if begun && from != "pending" {
				continue // only a pending row has an attempt in progress
			}
			for _, name := range slices.Sorted(maps.Keys(operations)) {
				req := s.begin(t)
				rows := must(s.notify.PrepareDeliveries(t.Context(), req.Changelist, 1, []string{"a@corp.test"}))(t)
				d := rows[0]
				if begun || from != "pending" {
					d = must(s.notify.BeginDelivery(t.Context(), d))(t)
				}
				exec(t, s.conn, `update criticizer.deliveries set status = $2, begun = begun and $2 in ('pending', 'held'),
					notification_id = case when $2 = 'sent' then 'm1' end, notified_at = case when $2 = 'sent' then now() end,
					error_class = case when $2 = 'failed' then 'RECIPIENT_REJECTED' end where id = $1`, d.ID, from)
				if from == "sent" || from == "waived" { // they are checked and resent when the review has ended
					exec(t, s.conn, `update criticizer.jobs set state = 'succeeded', outcome = 'clean', finished_at = now() where idempotency_key = $1`, req.Key)
				}
				d = reread(t, s.notify, d.ID)
				s.do(t, name, func() error { return operations[name](t.Context(), d) })
				seen.note(from, query[string](t, s.conn, `select status from criticizer.deliveries where id = $1`, d.ID))
			}
		}
	}
	wantPage(t, "Delivery", seen)
}

func TestDeadLetterStatesAreThoseOfThePage(t *testing.T) {
	t.Parallel()
	s, seen := newStates(t), transitions{}
	operations := map[string]func(context.Context, review.Request, store.DeadLetter) error{
		"RequestReplay": func(ctx context.Context, _ review.Request, l store.DeadLetter) error {
			return errOf(s.operator.RequestReplay(ctx, store.ReplayRequest{DeadLetterID: l.ID, Who: "olga", Reason: "T-1"}))
		},
		"WithdrawReplay": func(ctx context.Context, _ review.Request, l store.DeadLetter) error {
			return s.operator.WithdrawReplay(ctx, store.ReplayRequest{DeadLetterID: l.ID, Who: "olga"})
		},
		"BeginReplay": func(ctx context.Context, req review.Request, _ store.DeadLetter) error {
			return errOf(s.books.BeginReplay(ctx, req, review.Replay{DeadRunID: "run1", NewRunID: "run2", Identity: "olga", Reason: "T-1"}))
		},
		"RecordDeadLetter": func(ctx context.Context, req review.Request, _ store.DeadLetter) error {
			return errOf(s.books.RecordDeadLetter(ctx, req, "run2", letterOf(failure.AuthDenied)))
		},
		"FinishJob": func(ctx context.Context, req review.Request, _ store.DeadLetter) error {
			recordOutcome(t, s.books, req, review.OutcomeClean, 0, "report:1")
			return errOf(s.books.FinishJob(ctx, req.Key, "report:1"))
		},
		"ConfirmReplay": func(ctx context.Context, _ review.Request, l store.DeadLetter) error {
			r, err := s.operator.RequestReplay(ctx, store.ReplayRequest{DeadLetterID: l.ID, Who: "olga", Reason: "T-1"})
			if err != nil {
				return err
			}
			return s.operator.ConfirmReplay(ctx, r, "run2")
		},
		"ResolveDeadLetter": func(ctx context.Context, _ review.Request, l store.DeadLetter) error {
			return s.operator.ResolveDeadLetter(ctx, l.ID, "olga", "T-1")
		},
		"CloseEnded": func(ctx context.Context, req review.Request, _ store.DeadLetter) error {
			return errOf(s.books.CloseEnded(ctx, store.Run{WorkflowID: req.Key, RunID: "run1"}, "terminated"))
		},
	}
	for _, from := range []string{"open", "replaying", "failed_again", "resolved"} {
		for _, name := range slices.Sorted(maps.Keys(operations)) {
			req := s.begin(t)
			must(s.books.RecordDeadLetter(t.Context(), req, "run1", letterOf(failure.AuthDenied)))(t)
			id := query[int64](t, s.conn, `update criticizer.dead_letters set state = $2, resolved_at = case when $2 = 'resolved' then now() end
				where workflow_id = $1 returning id`, req.Key, from)
			letter := must(s.operator.DeadLetter(t.Context(), id))(t)
			s.do(t, name, func() error { return operations[name](t.Context(), req, letter) })
			seen.note(from, query[string](t, s.conn, `select state from criticizer.dead_letters where id = $1`, id))
		}
	}
	wantPage(t, "Dead letter", seen)
}

// drawn returns the transitions of the diagram under the heading.
func drawn(t *testing.T, heading string) transitions {
	t.Helper()
	page := must(os.ReadFile("../docs/states.md"))(t)
	_, section, ok := strings.Cut(string(page), "\n## "+heading+"\n")
	if !ok {
		t.Fatalf("docs/states.md has no section %q", heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	edges := transitions{}
	for _, edge := range regexp.MustCompile(`(?m)^ *(\w+) --> (\w+)\b`).FindAllStringSubmatch(section, -1) {
		edges.note(edge[1], edge[2])
	}
	return edges
}

// wantPage compares the transitions with the diagram under the heading.
func wantPage(t *testing.T, heading string, seen transitions) {
	t.Helper()
	drawn := drawn(t, heading)
	for edge := range seen {
		if !drawn[edge] {
			t.Errorf("docs/states.md, %s: the code makes the transition %s, which the diagram lacks", heading, edge)
		}
	}
	for edge := range drawn {
		if !seen[edge] {
			t.Errorf("docs/states.md, %s: no operation makes the transition %s", heading, edge)
		}
	}
	if len(seen) == 0 {
		t.Error(fmt.Errorf("%s: no transition was made", heading))
	}
}
