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

func (in *installation) start(n int) (workflowID string) {
	in.t.Helper()
	var answer struct {
		WorkflowID string `json:"workflow_id"`
		Reason     string `json:"reason"` // why it was spooled
	}
	in.decode(&answer, in.command("starter", "change-commit", "--json", "--timeout", "2m", fmt.Sprint(n)))
	if answer.Reason != "" {
		in.t.Logf("change %d is started later: %s", n, answer.Reason)
		in.drain()
	}
	return answer.WorkflowID
}

// drain starts what Temporal was too busy to take.
func (in *installation) drain() {
	in.t.Helper()
	for deadline := time.Now().Add(testTimeout); ; time.Sleep(time.Second) {
		cmd := exec.CommandContext(in.t.Context(), filepath.Join(in.m.bin, "starter"), "drain")
		cmd.Env = in.env
		out, err := cmd.CombinedOutput()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			in.t.Fatalf("starter drain: %v: %s", err, out)
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
func (in *installation) replay(n int) (held int) {
	in.t.Helper()
	var rows []outboxRow
	in.decode(&rows, in.operator("delivery", "list", "--changelist", fmt.Sprint(n), "--json"))
	for _, row := range rows {
		switch row.Status {
		case "failed":
			in.resolveFailed(row)
		case "held":
			in.judge(row, n)
			held++
		}
	}
	var letters []struct {
		ID int64 `json:"id"`
	}
	in.decode(&letters, in.operator("deadletter", "list", "--json"))
	for _, letter := range letters {
		in.operator("deadletter", "replay", fmt.Sprint(letter.ID), "--reason", "chaos: the fault is over")
	}
	return held
}

// mend gives a mailbox that is gone another address, and has a server that
// refused asked again.
func (in *installation) resolveFailed(row outboxRow) {
	in.t.Helper()
	if !strings.HasPrefix(row.Recipient, "gone") {
		in.operator("delivery", "resend", fmt.Sprint(row.ID), "--reason", "chaos: the server takes it now")
		return
	}
	_, reader := accountsOf(in.number)
	in.operator("delivery", "readdress", fmt.Sprint(row.ID), reader+"@"+mailhost.Domain, "--reason", "chaos: that mailbox is gone")
}

// judge looks for a mail that is held in the recipient's own mailbox, where the
// worker cannot look. A journal alone does not tell that a mail is absent.
func (in *installation) judge(row outboxRow, n int) {
	in.t.Helper()
	if in.kind.evidence == logAndJournal {
		in.t.Fatalf("change %d: a delivery is held: all sources of evidence were blind", n)
	}
	const onItsWay = settleWindow + time.Second
	time.Sleep(onItsWay)
	account, _, _ := strings.Cut(row.Recipient, "@")
	if in.m.mails(in.t, account, subjectOf(n)) > 0 {
		in.operator("delivery", "waive", fmt.Sprint(row.ID), "--reason", "chaos: it is in the mailbox")
	} else {
		in.operator("delivery", "resend", fmt.Sprint(row.ID), "--reason", "chaos: it is not in the mailbox")
	}
}

func (in *installation) decode(v any, body []byte) {
	in.t.Helper()
	if err := json.Unmarshal(body, v); err != nil {
		in.t.Fatalf("decode %q: %v", body, err)
	}
}

func (in *installation) operator(args ...string) []byte {
	in.t.Helper()
	return in.command("operator", args...)
}

// command runs one of our commands and returns what it prints.
func (in *installation) command(name string, args ...string) []byte {
	in.t.Helper()
	cmd := exec.CommandContext(in.t.Context(), filepath.Join(in.m.bin, name), args...)
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
