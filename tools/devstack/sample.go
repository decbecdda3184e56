package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// The sample depot is what demo and up review if no other depot is named: a small game
// server, see harbor.txtar. Its last submitted change meets an expired ticket, its
// last change is a shelf, and one adds secrets.
const (
	sampleShelf   review.Changelist = 113
	sampleSecrets review.Changelist = 107
	sampleReason                    = "demo: the ticket of the account was renewed"
)

// sampleDepot returns the sample depot of the clone.
func sampleDepot(opts options) (depot, error) {
	opts.depot = filepath.Join(opts.root, "tools", "devstack", "harbor.txtar")
	d, err := fileDepot(opts)
	if err != nil {
		return depot{}, fmt.Errorf("%w, or a git repository in REPO=/path/to/it", err)
	}
	d.sample = true
	return d, nil
}

// sampleSettings are settings with an effect on the sample depot: a bot whose changes are
// skipped, and a tree that the model may not see.
func sampleSettings(config map[string]any) {
	config["skip"] = map[string]any{"users": []string{"build-bot"}}
	config["shelf"] = map[string]any{"quiet": "1s"}
	p4 := config["p4"].(map[string]any) //nolint:forcetypeassert // openPerforce makes it
	p4["mixed_changes"] = "review_allowed_only"
	p4["embargoed_paths"] = []string{"//depot/harbor/legal/..."}
}

// reviewSample reviews the changes, the last of them with a failure, and the shelf.
func (e *environment) reviewSample(ctx context.Context, changes []submitted) error {
	last := len(changes) - 1
	if err := e.reviewAll(ctx, changes[:last]); err != nil {
		return err
	}
	if err := e.reviewShelf(ctx); err != nil {
		return err
	}
	return e.replayADeadLetter(ctx, changes[last].changelist)
}

// replayADeadLetter reviews a change while Perforce rejects the ticket of the account,
// renews the ticket, and replays the dead letter as an operator does.
func (e *environment) replayADeadLetter(ctx context.Context, cl review.Changelist) error {
	if err := os.WriteFile(e.faults, []byte(`{"fault":"message","text":"Your session has expired, please login again.","severity":3,"generic":4}`+"\n"), 0o600); err != nil {
		return err
	}
	defer func() { _ = os.Remove(e.faults) }() // gone already, unless a step failed
	state, err := e.review(ctx, cl)
	if err != nil || state != review.JobRetryableFailed {
		return err // an earlier run has shown it
	}
	e.out.say("Perforce rejects the ticket of the account: changelist %d is a dead letter (%s)", cl, failure.AuthDenied)
	if err := os.Remove(e.faults); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	args := []string{"deadletter", "replay", "--class", string(failure.AuthDenied), "--reason", sampleReason}
	e.out.say("the ticket is valid again: criticizer deadletter replay --class %s --reason %q", failure.AuthDenied, sampleReason)
	text, err := e.criticizer(ctx, args...)
	if err != nil {
		return fmt.Errorf("replay changelist %d: %w", cl, err)
	}
	for line := range strings.Lines(text) {
		e.out.detail("%s", strings.TrimSpace(line))
	}
	_, err = e.review(ctx, cl)
	return err
}

// reviewShelf announces the shelf of the sample and waits for its review. A shelf that an
// earlier run has reviewed is not announced again.
func (e *environment) reviewShelf(ctx context.Context) error {
	if len(e.reviews(ctx, sampleShelf)) == 0 {
		if err := e.starter(ctx, "shelve-commit", "--timeout=1m", sampleShelf.String()); err != nil {
			return err
		}
	}
	for {
		if shown := e.reviews(ctx, sampleShelf); len(shown) > 0 && shown[0].State != review.JobInProgress {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Second):
		}
	}
}
