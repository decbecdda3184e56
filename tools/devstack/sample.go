package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store"
)

// The sample depot is what demo and up review if no other depot is named: a small game
// server, see harbor.txtar. Its last submitted change meets an expired ticket, and its
// last change is a shelf.
const (
	sampleShelf  review.Changelist = 113
	sampleReason                   = "demo: the ticket of the account was renewed"
)

// sampleDepot returns the sample depot of the clone. Its id depends on its content: reviews
// of another content are no reviews of this one.
func sampleDepot(opts options) (depot, error) {
	path := filepath.Join(opts.root, "tools", "devstack", "harbor.txtar")
	text, err := os.ReadFile(path)
	if err != nil {
		return depot{}, fmt.Errorf("read the sample depot: %w: name a git repository to review in REPO=/path/to/it", err)
	}
	return depot{path: path, sample: true, id: depotID(path, opts.databaseURL+"\x00"+string(text))}, nil
}

// sampleSettings are settings with an effect on the sample depot: a bot whose changes are
// skipped, and a tree that the model may not see.
func sampleSettings(config map[string]any) {
	config["skip"] = map[string]any{"users": []string{"build-bot"}}
	config["shelf"] = map[string]any{"quiet": "1s"}
	p4 := config["p4"].(map[string]any) //nolint:forcetypeassert // writeConfig makes it
	p4["mixed_changes"] = "review_allowed_only"
	p4["embargoed_paths"] = []string{"//depot/harbor/legal/..."}
}

// reviewSample reviews the changes, the last of them with a failure, and the shelf.
func (e *environment) reviewSample(ctx context.Context, db *store.DB, changes []submitted) ([]row, error) {
	last := len(changes) - 1
	rows, err := e.reviewAll(ctx, db, changes[:last])
	if err != nil {
		return nil, err
	}
	for _, show := range []func() (row, error){
		func() (row, error) { return e.reviewShelf(ctx, db) },
		func() (row, error) { return e.replayADeadLetter(ctx, db, changes[last].changelist) },
	} {
		r, err := show()
		if err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b row) int { return int(a.Changelist - b.Changelist) })
	return rows, nil
}

// replayADeadLetter reviews a change while Perforce rejects the ticket of the account,
// renews the ticket, and replays the dead letter as an operator does.
func (e *environment) replayADeadLetter(ctx context.Context, db *store.DB, cl review.Changelist) (row, error) {
	if err := os.WriteFile(e.faults, []byte(`{"fault":"message","id":"MsgServer::LoginExpired"}`+"\n"), 0o600); err != nil {
		return row{}, err
	}
	defer func() { _ = os.Remove(e.faults) }() // gone already, unless a step failed
	r, err := e.trigger(ctx, cl)
	if err == nil {
		err = e.await(ctx, db, &r)
	}
	if err != nil || r.failure == "" {
		return r, err // an earlier run has shown it
	}
	e.out.say("Perforce rejects the ticket of the account: changelist %d is a dead letter (%s)", cl, r.failure)
	if err := os.Remove(e.faults); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return r, err
	}
	args := []string{"deadletter", "replay", "--class", r.failure, "--reason", sampleReason}
	e.out.say("the ticket is valid again: criticizer deadletter replay --class %s --reason %q", r.failure, sampleReason)
	cmd := exec.CommandContext(ctx, e.tool, args...)
	cmd.Env = os.Environ()
	text, err := cmd.CombinedOutput()
	if err != nil {
		return r, fmt.Errorf("replay changelist %d: criticizer: %w\n%s", cl, err, text)
	}
	for line := range strings.Lines(string(text)) {
		e.out.detail("%s", strings.TrimSpace(line))
	}
	r.RunID, r.failure = "", "" // the newest run
	return r, e.await(ctx, db, &r)
}

// reviewShelf announces the shelf of the sample and waits for its review. A shelf that an
// earlier run has reviewed is not announced again.
func (e *environment) reviewShelf(ctx context.Context, db *store.DB) (row, error) {
	r := row{Changelist: sampleShelf, Version: 1, WorkflowID: review.ShelfReviewKey(e.depot.id, sampleShelf, 1)}
	if _, err := db.Job(ctx, r.WorkflowID); err == nil {
		r.Duplicate = true
		return r, e.await(ctx, db, &r)
	}
	cmd := exec.CommandContext(ctx, e.command("starter"), "--config", e.config, "shelve-commit", "--timeout=1m", sampleShelf.String())
	cmd.Env = e.env
	if text, err := cmd.CombinedOutput(); err != nil {
		return r, fmt.Errorf("announce the shelf of changelist %d: %w: %s", sampleShelf, err, bytes.TrimSpace(text))
	}
	for {
		if _, err := db.Job(ctx, r.WorkflowID); err == nil {
			return r, e.await(ctx, db, &r)
		}
		select {
		case <-ctx.Done():
			return r, context.Cause(ctx)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
