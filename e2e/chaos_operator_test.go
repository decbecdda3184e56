package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

func (in *chaosInstallation) start(n int) (workflowID string) {
	in.t.Helper()
	var started struct {
		WorkflowID string `json:"workflow_id"`
		Spooled    bool   `json:"spooled"`
		Reason     string `json:"reason"`
	}
	in.decode(&started, in.command("starter", "change-commit", "--json", "--timeout", "2m", fmt.Sprint(n)))
	if started.Spooled {
		in.t.Logf("change %d is spooled: %s", n, started.Reason)
		in.drain()
	}
	return started.WorkflowID
}

// drain starts the spooled reviews.
func (in *chaosInstallation) drain() {
	in.t.Helper()
	var out []byte
	var err error
	drained := poll(reviewTimeout, time.Second, func() bool {
		cmd := exec.CommandContext(in.t.Context(), filepath.Join(binDir, "starter"), "drain")
		cmd.Env = in.env
		out, err = cmd.CombinedOutput()
		return err == nil
	})
	if !drained {
		in.t.Fatalf("starter drain: %v: %s", err, out)
	}
}

// An outboxRow is an entry of criticizer delivery list --json.
type outboxRow struct {
	ID        int64  `json:"id"`
	Recipient string `json:"recipient"`
	Status    string `json:"status"`
}

// replay handles a dead letter as the runbook describes: the operator resolves rejected
// and held recipients, then replays the stage.
func (in *chaosInstallation) replay(n int) (held int) {
	in.t.Helper()
	var rows []outboxRow
	in.decode(&rows, in.operator("delivery", "list", "--changelist", fmt.Sprint(n), "--json"))
	for _, row := range rows {
		switch row.Status {
		case "failed":
			in.resolveFailed(row)
		case "held":
			in.resolveHeld(row, n)
			held++
		}
	}
	var letters []struct {
		ID int64 `json:"id"`
	}
	in.decode(&letters, in.operator("deadletter", "list", "--json"))
	for _, letter := range letters {
		in.operator("deadletter", "replay", fmt.Sprint(letter.ID), "--escalated", "--note", "chaos: a fault that came twice", "--reason", "chaos: the fault is over")
	}
	return held
}

// resolveFailed gives a bouncing mailbox another address, and resends otherwise.
func (in *chaosInstallation) resolveFailed(row outboxRow) {
	in.t.Helper()
	if !strings.HasPrefix(row.Recipient, "gone") {
		in.operator("delivery", "resend", fmt.Sprint(row.ID), "--reason", "chaos: the server accepts it now")
		return
	}
	_, reader := accountsOf(in.number)
	in.operator("delivery", "readdress", fmt.Sprint(row.ID), reader+"@"+mailHostDomain, "--reason", "chaos: the mailbox does not exist")
}

// resolveHeld looks for a held mail in the recipient's mailbox, which the worker cannot
// read. A journal alone does not prove that a mail is absent.
func (in *chaosInstallation) resolveHeld(row outboxRow, n int) {
	in.t.Helper()
	if in.kind.evidence == logAndJournal {
		in.t.Fatalf("change %d: a delivery is held: all evidence sources were blind", n)
	}
	time.Sleep(settleWindow + time.Second) // for a mail in transit, which no source shows
	account, _, _ := strings.Cut(row.Recipient, "@")
	if in.m.mails(in.t, account, subjectOf(n)) > 0 {
		in.operator("delivery", "waive", fmt.Sprint(row.ID), "--reason", "chaos: it is in the mailbox")
	} else {
		in.operator("delivery", "resend", fmt.Sprint(row.ID), "--reason", "chaos: it is not in the mailbox")
	}
}

func (in *chaosInstallation) decode(v any, body []byte) {
	in.t.Helper()
	if err := json.Unmarshal(body, v); err != nil {
		in.t.Fatalf("decode %q: %v", body, err)
	}
}

func (in *chaosInstallation) operator(args ...string) []byte {
	in.t.Helper()
	return in.command("criticizer", args...)
}

// command runs one of the commands, which must succeed, and returns its output.
func (in *chaosInstallation) command(name string, args ...string) []byte {
	in.t.Helper()
	cmd := exec.CommandContext(in.t.Context(), filepath.Join(binDir, name), args...)
	cmd.Env = in.env
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if _, exited := errors.AsType[*exec.ExitError](err); exited {
		in.t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, &stderr)
	}
	if err != nil {
		in.t.Fatal(err)
	}
	return out
}
