package chaos

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/criticizer/criticizer/notify/mail/mailhost"
)

func (r *rig) start(n int) (workflowID string) {
	r.t.Helper()
	var answer struct {
		WorkflowID string `json:"workflow_id"`
		Reason     string `json:"reason"` // why it was spooled
	}
	r.decode(&answer, r.command("starter", "change-commit", "--json", "--timeout", "2m", fmt.Sprint(n)))
	if answer.Reason != "" {
		r.t.Logf("change %d is started later: %s", n, answer.Reason)
		r.drain()
	}
	return answer.WorkflowID
}

// drain starts what Temporal was too busy to take.
func (r *rig) drain() {
	r.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Second) {
		cmd := exec.CommandContext(r.t.Context(), filepath.Join(r.m.bin, "starter"), "drain")
		cmd.Env = r.env
		out, err := cmd.CombinedOutput()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("starter drain: %v: %s", err, out)
		}
	}
}

// An outboxRow is what criticizer delivery list says of one.
type outboxRow struct {
	ID        int64  `json:"id"`
	Recipient string `json:"recipient"`
	Status    string `json:"status"`
}

// replay does what the runbook has the operator do about a dead letter: decide
// about the recipients that were refused or held, then replay the stage.
func (r *rig) replay(n int) (held int) {
	r.t.Helper()
	var rows []outboxRow
	r.decode(&rows, r.operator("delivery", "list", "--changelist", fmt.Sprint(n), "--json"))
	for _, row := range rows {
		switch row.Status {
		case "failed":
			r.mend(row)
		case "held":
			r.judge(row, n)
			held++
		}
	}
	var letters []struct {
		ID int64 `json:"id"`
	}
	r.decode(&letters, r.operator("deadletter", "list", "--json"))
	for _, letter := range letters {
		r.operator("deadletter", "replay", fmt.Sprint(letter.ID), "--reason", "chaos: the fault is over")
	}
	return held
}

// mend gives a mailbox that is gone another address, and has a server that
// refused asked again.
func (r *rig) mend(row outboxRow) {
	r.t.Helper()
	if !strings.HasPrefix(row.Recipient, "gone") {
		r.operator("delivery", "resend", fmt.Sprint(row.ID), "--reason", "chaos: the server takes it now")
		return
	}
	_, reader := accountsOf(r.number)
	r.operator("delivery", "readdress", fmt.Sprint(row.ID), reader+"@"+mailhost.Domain, "--reason", "chaos: that mailbox is gone")
}

// judge looks for a mail that is held in the recipient's own mailbox, where the
// worker cannot look. A journal alone does not tell that a mail is absent.
func (r *rig) judge(row outboxRow, n int) {
	r.t.Helper()
	if r.kind.witnesses == logAndJournal {
		r.t.Fatalf("change %d: a delivery is held: all sources of evidence were blind", n)
	}
	const onItsWay = settle + time.Second
	time.Sleep(onItsWay)
	account, _, _ := strings.Cut(row.Recipient, "@")
	if r.m.mails(r.t, account, subjectOf(n)) > 0 {
		r.operator("delivery", "waive", fmt.Sprint(row.ID), "--reason", "chaos: it is in the mailbox")
	} else {
		r.operator("delivery", "resend", fmt.Sprint(row.ID), "--reason", "chaos: it is not in the mailbox")
	}
}

func (r *rig) decode(v any, body []byte) {
	r.t.Helper()
	if err := json.Unmarshal(body, v); err != nil {
		r.t.Fatalf("decode %q: %v", body, err)
	}
}

func (r *rig) operator(args ...string) []byte {
	r.t.Helper()
	return r.command("operator", args...)
}

// command runs one of our commands and returns what it prints.
func (r *rig) command(name string, args ...string) []byte {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), filepath.Join(r.m.bin, name), args...)
	cmd.Env = r.env
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if _, exited := errors.AsType[*exec.ExitError](err); exited {
		r.t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, &stderr)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return out
}
