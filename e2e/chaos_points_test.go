package e2e

import (
	"regexp"
	"slices"
	"strings"
	"time"
)

// An action is a fault to inject.
type action struct {
	kind actionKind
	// reply is the SMTP reply of actReply, actWrongReply and actDelay.
	reply string
	// during is the length of actions that last.
	during time.Duration
}

type actionKind int

const (
	actNothing         actionKind = iota
	actKill                       // SIGKILL the worker
	actStop                       // SIGTERM the worker, which shuts down in its grace period
	actFreeze                     // SIGSTOP the worker for a while and start a second one
	actDrop                       // close the connection
	actStall                      // forward nothing for a while, then close the connection
	actReply                      // reply instead of the server, which does not get the command
	actWrongReply                 // the server executes the command, the client gets this reply
	actDelay                      // the client gets this reply or none, the server gets the command later
	actRename                     // replace the Message-ID
	actStrip                      // remove our key header
	actHideResult                 // return an empty search result
	actReset                      // reset the run to its last workflow task
	actDown                       // close the connection and refuse new ones for a while
	actRestartPostgres            // stop -m immediate, start
	actRestartTemporal            // SIGKILL, start
)

// breaks reports whether the action closes the connection.
func (k actionKind) breaks() bool {
	switch k {
	case actNothing, actStop, actFreeze, actRestartTemporal, actReset, actRename, actStrip, actHideResult:
		return false
	}
	return true
}

var (
	crash           = action{kind: actKill}
	stop            = action{kind: actStop}
	drop            = action{kind: actDrop}
	restartPostgres = action{kind: actRestartPostgres}
	restartTemporal = action{kind: actRestartTemporal}
)

func respond(reply string) action        { return action{kind: actReply, reply: reply} }
func wrongReply(reply string) action     { return action{kind: actWrongReply, reply: reply} }
func outage(during time.Duration) action { return action{kind: actDown, during: during} }
func stall(during time.Duration) action  { return action{kind: actStall, during: during} }
func freeze(during time.Duration) action { return action{kind: actFreeze, during: during} }
func delay(reply string, by time.Duration) action {
	return action{kind: actDelay, reply: reply, during: by}
}

// A fault is an action at a moment of the sequence. "RCPT before": the worker has sent
// the command and the server has not received it. "RCPT after": the server has replied and
// the worker has not received the reply.
type fault struct {
	moment string
	action action
}

// evidenceSources are the evidence sources that an installation configures.
type evidenceSources int

const (
	logAndJournal evidenceSources = iota
	journalOnly
	noEvidence // ambiguous deliveries are held for the operator
)

// A point is a row of the matrix: a sequence of faults.
type point struct {
	name     string
	faults   []fault
	evidence evidenceSources
	// undelivered is how long the mail server holds all mail in its queue.
	undelivered time.Duration
	// journalLate is how long it holds only the journal's copy.
	journalLate time.Duration
	// gone: the reader's mailbox does not exist, its mail bounces.
	gone bool
}

// A kind holds the properties of an installation that a point needs.
type kind struct {
	evidence evidenceSources
	gone     bool // the reader's mailbox
	// Servers that the point restarts, which the installation must not share.
	ownPostgres, ownTemporal bool
}

func (p point) kind() kind {
	return kind{p.evidence, p.gone, p.has(actRestartPostgres), p.has(actRestartTemporal)}
}

func (p point) has(kind actionKind) bool {
	return slices.ContainsFunc(p.faults, func(s fault) bool { return s.action.kind == kind })
}

// skip alternates between the first and the second recipient.
func (p point) skip(run int) int {
	if len(p.faults) == 0 {
		return 0
	}
	step, _, _ := strings.Cut(p.faults[0].moment, " ")
	if slices.Contains(perReview, step) {
		return 0 // both recipients share the step
	}
	if p.gone {
		return 1 // the reader; reconciliation handles bounces of mails marked sent, later
	}
	return (run - 1) % 2
}

// steps of the sequence, in order: read the recipients, prepare the outbox rows and commit
// them, read a row, mark its attempt begun, the SMTP session, mark the row sent.
var steps = []string{
	"recipients", "prepare", "rows", "commit", "read", "begin", "dial", "EHLO", "STARTTLS", "AUTH", "MAIL", "RCPT", "DATA", "dot", "QUIT", "mark",
}

// perReview are the steps that happen once for both messages.
var perReview = []string{"recipients", "prepare", "rows", "commit"}

// smtpSteps are the steps that a mail server can reject.
var smtpSteps = []string{"dial", "EHLO", "STARTTLS", "AUTH", "MAIL", "RCPT", "DATA", "dot"}

func points() []point {
	return slices.Concat(kills(), stops(), connectionFaults(), lookupFaults(), outages(), restarts(), freezes(), wrongReplies(), refusals(), resets(), withoutEvidence())
}

// kills kills the worker at every step.
func kills() []point {
	all := []point{{name: "killed in the middle of the body", faults: []fault{{"body after", crash}}}}
	for _, step := range steps {
		for _, when := range []string{" before", " after"} {
			all = append(all, point{name: "killed" + when + " " + step, faults: []fault{{step + when, crash}}})
		}
	}
	return all
}

// stops stops the worker as a deployment does. It completes the delivery in progress, so
// that none is ambiguous even without evidence.
func stops() []point {
	var all []point
	for _, moment := range []string{"read after", "begin after", "DATA after", "dot before", "dot after", "mark before", "mark after"} {
		step, when, _ := strings.Cut(moment, " ")
		all = append(all, point{name: "stopped " + when + " " + step, faults: []fault{{moment, stop}}, evidence: noEvidence})
	}
	return all
}

// connectionFaults closes the SMTP connection at every command, or rejects the command.
func connectionFaults() []point {
	var all []point
	for _, step := range smtpSteps {
		for _, when := range []string{" before", " after"} {
			all = append(all, point{name: "dropped" + when + " " + step, faults: []fault{{step + when, drop}}})
		}
		for _, reply := range []string{"451 4.3.0 try again", "554 5.7.1 no"} {
			all = append(all, point{name: strings.Fields(reply)[0] + " to " + step, faults: []fault{{step + " before", respond(reply)}}})
		}
	}
	for _, step := range []string{"EHLO", "AUTH", "RCPT", "DATA", "dot"} {
		all = append(all, point{name: "silence after " + step, faults: []fault{{step + " after", stall(8 * time.Second)}}})
	}
	return all
}

// lookupFaults disturbs the look-up of evidence after a lost confirmation.
func lookupFaults() []point {
	lostReply := fault{"dot after", drop}
	return []point{
		{name: "dropped after dot, killed before look-up", faults: []fault{lostReply, {"look-up before", crash}}},
		{name: "dropped after dot, killed after look-up", faults: []fault{lostReply, {"look-up after", crash}}},
		{name: "dropped after dot, look-up cut", faults: []fault{lostReply, {"look-up after", drop}}},
		{name: "dropped after dot, mailboxes down for 10s", faults: []fault{lostReply, {"look-up before", outage(10 * time.Second)}}},
		{name: "killed before mark, then again after look-up", faults: []fault{{"mark before", crash}, {"mark after", crash}}},
		{name: "delivery down for 15s, dropped after dot", faults: []fault{lostReply}, undelivered: 15 * time.Second},
		{name: "delivery down for 25s, killed before mark", faults: []fault{{"mark before", crash}}, undelivered: 25 * time.Second},
	}
}

// outages makes servers unreachable for a while.
func outages() []point {
	const away = 5 * time.Second
	return []point{
		{name: "mail server down for 5s", faults: []fault{{"dial before", outage(away)}}},
		{name: "database down for 5s before begin", faults: []fault{{"begin before", outage(away)}}},
		{name: "database down for 5s before mark", faults: []fault{{"mark before", outage(away)}}},
		{name: "database down for 5s after mark", faults: []fault{{"mark after", outage(away)}}},
		{name: "database connection cut after mark", faults: []fault{{"mark after", drop}}},
		{name: "database connection cut before begin", faults: []fault{{"begin before", drop}}},
		{name: "database connection cut after begin", faults: []fault{{"begin after", drop}}},
		{name: "database connection cut before commit", faults: []fault{{"commit before", drop}}},
		{name: "database connection cut after commit", faults: []fault{{"commit after", drop}}},
	}
}

// restarts restarts the database at every step, and Temporal at the steps around the
// delivery.
func restarts() []point {
	var all []point
	for _, step := range steps {
		switch step {
		case "STARTTLS", "EHLO", "AUTH": // equal to dial for the database
			continue
		case "recipients", "rows": // equal to prepare
			continue
		}
		for _, when := range []string{" before", " after"} {
			all = append(all, point{name: "database restarted" + when + " " + step, faults: []fault{{step + when, restartPostgres}}})
		}
	}
	for _, moment := range []string{"begin after", "DATA after", "dot after", "mark before", "mark after"} {
		step, when, _ := strings.Cut(moment, " ")
		all = append(all, point{name: "Temporal restarted " + when + " " + step, faults: []fault{{moment, restartTemporal}}})
	}
	return all
}

// freezes suspends the worker until its heartbeat has timed out and a second worker
// handles its row, or has completed it. Then the first resumes.
func freezes() []point {
	var all []point
	for _, moment := range []string{
		"read after", "begin before", "begin after", "dial after", "MAIL after", "RCPT after", "DATA before", "DATA after", "body after",
		"dot before", "dot after", "mark before", "mark after",
	} {
		step, when, _ := strings.Cut(moment, " ")
		for _, during := range []time.Duration{16 * time.Second, 22 * time.Second} {
			all = append(all, point{name: "frozen for " + during.String() + " " + when + " " + step, faults: []fault{{moment, freeze(during)}}})
		}
	}
	return all
}

// wrongReplies has the mail server reply with something other than its actual result.
func wrongReplies() []point {
	lostReply := []fault{{"dot after", drop}}
	return []point{
		{name: "accepted, says 451", faults: []fault{{"dot after", wrongReply("451 4.3.0 try again")}}},
		{name: "accepted, says 554", faults: []fault{{"dot after", wrongReply("554 5.7.1 no")}}},
		{name: "accepted, says 354", faults: []fault{{"dot after", wrongReply("354 go on")}}},
		{name: "accepted, says 250 twice", faults: []fault{{"dot after", wrongReply("250 2.0.0 queued\r\n250 2.0.0 queued")}}},
		{name: "MAIL, says 250 twice", faults: []fault{{"MAIL after", wrongReply("250 2.1.0 ok\r\n250 2.1.0 ok")}}},
		{name: "accepted, journal 20s late, dropped after dot", faults: lostReply, journalLate: 20 * time.Second},
		{name: "accepted, journal alone 6s late, dropped after dot", faults: lostReply, evidence: journalOnly, journalLate: 6 * time.Second},
		{name: "accepted, journal alone, says 451", faults: []fault{{"dot after", wrongReply("451 4.3.0 try again")}}, evidence: journalOnly},
		{name: "accepted and bounced, dropped after dot", faults: lostReply, gone: true},
		{name: "accepted, journal alone 6s late, says 451", faults: []fault{{"dot after", wrongReply("451 4.3.0 try again")}}, evidence: journalOnly, journalLate: 6 * time.Second},
		{name: "accepted, journal alone 6s late, says 554", faults: []fault{{"dot after", wrongReply("554 5.7.1 no")}}, evidence: journalOnly, journalLate: 6 * time.Second},
		{name: "accepted, journal alone 25s late, dropped after dot", faults: lostReply, evidence: journalOnly, journalLate: 25 * time.Second},
		{name: "says 451, accepted 6s later", faults: []fault{{"dot before", delay("451 4.3.0 try again", 6*time.Second)}}},
		{name: "says 554, accepted 6s later", faults: []fault{{"dot before", delay("554 5.7.1 no", 6*time.Second)}}},
		{name: "dropped before dot, accepted 6s later", faults: []fault{{"dot before", delay("", 6*time.Second)}}},
		{name: "accepted under another Message-ID, dropped after dot", faults: []fault{{"header before", action{kind: actRename}}, {"dot after", drop}}},
		{name: "accepted without the key, dropped after dot", faults: []fault{{"header before", action{kind: actStrip}}, {"dot after", drop}}},
		{name: "journal alone, finds nothing at first, dropped after dot", faults: []fault{{"dot after", drop}, {"look-up after", action{kind: actHideResult}}, {"look-up after", action{kind: actHideResult}}}, evidence: journalOnly},
		{name: "mailbox silent, dropped after dot", faults: []fault{{"dot after", drop}, {"look-up after", stall(8 * time.Second)}}},
		{name: "accepted and bounced, killed before mark", faults: []fault{{"mark before", crash}}, gone: true},
	}
}

// refusals rejects a recipient and injects faults while the rejection is recorded.
func refusals() []point {
	greylisted := fault{"RCPT before", respond("450 4.2.0 greylisted")}
	all := []point{{name: "greylisted three times", faults: []fault{greylisted, greylisted, greylisted}}}
	for _, r := range []struct{ step, reply, write string }{
		{"RCPT", "451 4.3.0 try again", "abandon"},
		{"RCPT", "550 5.1.1 no", "fail"},
		{"dot", "451 4.3.0 try again", "record"},
		{"dot", "554 5.7.1 no", "record"},
	} {
		for _, when := range []string{" before ", " after "} {
			name := strings.Fields(r.reply)[0] + " to " + r.step
			refusal := fault{r.step + " before", respond(r.reply)}
			moment := r.write + strings.TrimRight(when, " ")
			all = append(all,
				point{name: name + ", killed" + when + r.write, faults: []fault{refusal, {moment, crash}}},
				point{name: name + ", cut off" + when + r.write, faults: []fault{refusal, {moment, drop}}},
				point{name: name + ", frozen" + when + r.write, faults: []fault{refusal, {moment, freeze(28 * time.Second)}}})
		}
	}
	return all
}

// resets resets a run during its notify stage, so that two runs deliver at the same time.
func resets() []point {
	var all []point
	for _, moment := range []string{"begin after", "DATA after", "dot before", "dot after", "mark before", "mark after"} {
		step, when, _ := strings.Cut(moment, " ")
		all = append(all, point{name: "run reset " + when + " " + step, faults: []fault{{moment, action{kind: actReset}}}})
	}
	return all
}

// withoutEvidence configures no complete evidence source: an operator decides.
func withoutEvidence() []point {
	var all []point
	for name, s := range map[string]fault{
		"killed after begin": {"begin after", crash}, "killed before dot": {"dot before", crash},
		"dropped after dot": {"dot after", drop}, "killed before mark": {"mark before", crash},
		"frozen before dot": {"dot before", freeze(22 * time.Second)}, "frozen after DATA": {"DATA after", freeze(22 * time.Second)},
		"frozen after begin": {"begin after", freeze(22 * time.Second)},
	} {
		all = append(all, point{name: "no evidence, " + name, faults: []fault{s}, evidence: noEvidence})
	}
	for _, when := range []string{" before", " after"} {
		all = append(all,
			point{name: "no evidence, dropped after dot, killed" + when + " hold", faults: []fault{{"dot after", drop}, {"hold" + when, crash}}, evidence: noEvidence},
			point{name: "journal alone, killed" + when + " dot", faults: []fault{{"dot" + when, crash}}, evidence: journalOnly})
	}
	slices.SortFunc(all, func(a, b point) int { return strings.Compare(a.name, b.name) })
	return all
}

// matching returns the points whose name matches a pattern.
func matching(all []point, pattern string) []point {
	wanted := regexp.MustCompile(pattern)
	return slices.DeleteFunc(all, func(p point) bool { return !wanted.MatchString(p.name) })
}
