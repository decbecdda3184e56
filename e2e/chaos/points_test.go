package chaos

import (
	"regexp"
	"slices"
	"strings"
	"time"
)

// An action is what happens at a moment.
type action struct {
	kind actionKind
	// reply is the SMTP reply of actReply, actLie and actLate.
	reply string
	// during is how long it lasts, for those that do.
	during time.Duration
}

type actionKind int

const (
	actNothing         actionKind = iota
	actKill                       // SIGKILL the worker; what it said or was to hear is lost
	actStop                       // SIGTERM the worker, which is given time to come to an end
	actFreeze                     // SIGSTOP the worker for a while and start a second one
	actDrop                       // break the connection
	actStall                      // say no more for a while, then break the connection
	actReply                      // answer in the server's place, which hears nothing
	actWrongReply                 // the server does as it is told, and the client hears this
	actDelay                      // the client hears this, or nothing, and the server is told after a while
	actRename                     // the message gets another Message-ID
	actStrip                      // the message loses our key
	actHideResult                 // a search finds nothing
	actReset                      // reset the run to its last workflow task, as an operator might
	actDown                       // break the connection, and refuse new ones for a while
	actRestartPostgres            // stop -m immediate, start
	actRestartTemporal            // SIGKILL, start
)

// breaks reports whether the connection at which it happens ends with it.
func (k actionKind) breaks() bool {
	switch k {
	case actNothing, actStop, actFreeze, actRestartTemporal, actReset, actRename, actStrip, actHideResult:
		return false
	}
	return true
}

var (
	kill            = action{kind: actKill}
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

// A strike is an action at a moment, such as "RCPT before": the worker has
// said it and the server has not heard it, or "RCPT after": the server has
// answered and the worker does not know it.
type fault struct {
	moment string
	action action
}

// witnesses are the sources of evidence that an installation has.
type evidenceSources int

const (
	logAndJournal evidenceSources = iota
	journalOnly
	noEvidence // what is in doubt is held for the operator
)

// A point is one row of the matrix: strikes that follow each other.
type point struct {
	name     string
	faults   []fault
	evidence evidenceSources
	// undelivered has the mail server keep the mail in its queue for this long.
	undelivered time.Duration
	// journalLate has it keep the copy for the journal alone.
	journalLate time.Duration
	// gone is a reader's mailbox that is accepted for and bounces.
	gone bool
}

// A kind is what a rig must be like to serve a point.
type kind struct {
	evidence evidenceSources
	gone     bool // the reader's mailbox
	// The servers that are restarted, and so are the rig's own.
	ownPostgres, ownTemporal bool
}

func (p point) kind() kind {
	return kind{p.evidence, p.gone, p.has(actRestartPostgres), p.has(actRestartTemporal)}
}

func (p point) has(kind actionKind) bool {
	return slices.ContainsFunc(p.faults, func(s fault) bool { return s.action.kind == kind })
}

// skip has the runs strike in turn at the first and the second recipient.
func (p point) skip(run int) int {
	if len(p.faults) == 0 {
		return 0
	}
	step, _, _ := strings.Cut(p.faults[0].moment, " ")
	if slices.Contains(perReview, step) || slices.Contains(perConnection, step) {
		return 0 // there is one for both
	}
	if p.gone {
		return 1 // the reader: whose mail was marked sent is told of a bounce by reconciliation, later
	}
	return (run - 1) % 2
}

// The steps of the sequence, as the proxies call them. They are, in this
// order: the recipients are read, the outbox rows prepared and that committed, a
// row is read, the attempt begun, the SMTP conversation held, the row marked.
var steps = []string{
	"recipients", "prepare", "rows", "commit", "read", "begin", "dial", "EHLO", "STARTTLS", "AUTH", "MAIL", "RCPT", "DATA", "dot", "mark", "RSET", "QUIT",
}

// perReview are the steps that are taken once for both messages.
var perReview = []string{"recipients", "prepare", "rows", "commit"}

// perConnection are the steps of a connection, which both messages share.
var perConnection = []string{"dial", "EHLO", "STARTTLS", "AUTH", "RSET", "QUIT"}

// smtpSteps can be answered by a mail server in a bad mood.
var smtpSteps = []string{"dial", "EHLO", "STARTTLS", "AUTH", "MAIL", "RCPT", "DATA", "dot", "RSET"}

func points() []point {
	return slices.Concat(kills(), stops(), connectionFaults(), lookupFaults(), outages(), restarts(), freezes(), wrongReplies(), refusals(), resets(), withoutEvidence())
}

// killed kills the worker at every step.
func kills() []point {
	all := []point{{name: "killed in the middle of the body", faults: []fault{{"body after", kill}}}}
	for _, step := range steps {
		for _, when := range []string{" before", " after"} {
			all = append(all, point{name: "killed" + when + " " + step, faults: []fault{{step + when, kill}}})
		}
	}
	return all
}

// stopped stops the worker as a deployment does. What is under way comes to its
// end, so that nothing is in doubt, though there is no evidence.
func stops() []point {
	var all []point
	for _, moment := range []string{"read after", "begin after", "DATA after", "dot before", "dot after", "mark before", "mark after"} {
		step, when, _ := strings.Cut(moment, " ")
		all = append(all, point{name: "stopped " + when + " " + step, faults: []fault{{moment, stop}}, evidence: noEvidence})
	}
	return all
}

// struckOff breaks the conversation at every command, or has it refused.
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

// lookedUp disturbs the look-up behind a confirmation that was swallowed.
func lookupFaults() []point {
	swallowed := fault{"dot after", drop}
	return []point{
		{name: "dropped after dot, killed before look-up", faults: []fault{swallowed, {"look-up before", kill}}},
		{name: "dropped after dot, killed after look-up", faults: []fault{swallowed, {"look-up after", kill}}},
		{name: "dropped after dot, look-up cut", faults: []fault{swallowed, {"look-up after", drop}}},
		{name: "dropped after dot, mailboxes down for 10s", faults: []fault{swallowed, {"look-up before", outage(10 * time.Second)}}},
		{name: "killed before mark, then again after look-up", faults: []fault{{"mark before", kill}, {"mark after", kill}}},
		{name: "delivery down for 15s, dropped after dot", faults: []fault{swallowed}, undelivered: 15 * time.Second},
		{name: "delivery down for 25s, killed before mark", faults: []fault{{"mark before", kill}}, undelivered: 25 * time.Second},
	}
}

// outages takes servers away for a while.
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

// restarted restarts the database at every step, and Temporal around those that
// matter.
func restarts() []point {
	var all []point
	for _, step := range steps {
		switch step {
		case "STARTTLS", "EHLO", "AUTH", "RSET": // to the database they are as dial
			continue
		case "recipients", "rows": // and these as prepare
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

// frozen suspends the worker until it is presumed dead and another is at its
// row, or done with it. Then it wakes up.
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

// lied has the mail server say other than what it does.
func wrongReplies() []point {
	swallowed := []fault{{"dot after", drop}}
	return []point{
		{name: "accepted, says 451", faults: []fault{{"dot after", wrongReply("451 4.3.0 try again")}}},
		{name: "accepted, says 554", faults: []fault{{"dot after", wrongReply("554 5.7.1 no")}}},
		{name: "accepted, says 354", faults: []fault{{"dot after", wrongReply("354 go on")}}},
		{name: "accepted, says 250 twice", faults: []fault{{"dot after", wrongReply("250 2.0.0 queued\r\n250 2.0.0 queued")}}},
		{name: "MAIL, says 250 twice", faults: []fault{{"MAIL after", wrongReply("250 2.1.0 ok\r\n250 2.1.0 ok")}}},
		{name: "accepted, journal 20s late, dropped after dot", faults: swallowed, journalLate: 20 * time.Second},
		{name: "accepted, journal alone 6s late, dropped after dot", faults: swallowed, evidence: journalOnly, journalLate: 6 * time.Second},
		{name: "accepted, journal alone, says 451", faults: []fault{{"dot after", wrongReply("451 4.3.0 try again")}}, evidence: journalOnly},
		{name: "accepted and bounced, dropped after dot", faults: swallowed, gone: true},
		{name: "accepted, journal alone 6s late, says 451", faults: []fault{{"dot after", wrongReply("451 4.3.0 try again")}}, evidence: journalOnly, journalLate: 6 * time.Second},
		{name: "accepted, journal alone 6s late, says 554", faults: []fault{{"dot after", wrongReply("554 5.7.1 no")}}, evidence: journalOnly, journalLate: 6 * time.Second},
		{name: "accepted, journal alone 25s late, dropped after dot", faults: swallowed, evidence: journalOnly, journalLate: 25 * time.Second},
		{name: "says 451, accepted 6s later", faults: []fault{{"dot before", delay("451 4.3.0 try again", 6*time.Second)}}},
		{name: "says 554, accepted 6s later", faults: []fault{{"dot before", delay("554 5.7.1 no", 6*time.Second)}}},
		{name: "dropped before dot, accepted 6s later", faults: []fault{{"dot before", delay("", 6*time.Second)}}},
		{name: "accepted under another Message-ID, dropped after dot", faults: []fault{{"header before", action{kind: actRename}}, {"dot after", drop}}},
		{name: "accepted without the key, dropped after dot", faults: []fault{{"header before", action{kind: actStrip}}, {"dot after", drop}}},
		{name: "journal alone, finds nothing at first, dropped after dot", faults: []fault{{"dot after", drop}, {"look-up after", action{kind: actHideResult}}, {"look-up after", action{kind: actHideResult}}}, evidence: journalOnly},
		{name: "mailbox silent, dropped after dot", faults: []fault{{"dot after", drop}, {"look-up after", stall(8 * time.Second)}}},
		{name: "accepted and bounced, killed before mark", faults: []fault{{"mark before", kill}}, gone: true},
	}
}

// refused has a recipient refused, and strikes while that is written down.
func refusals() []point {
	greylisted := fault{"RCPT before", respond("450 4.2.0 greylisted")}
	all := []point{{name: "greylisted three times", faults: []fault{greylisted, greylisted, greylisted}}}
	for _, r := range []struct{ step, reply, write string }{
		{"RCPT", "451 4.3.0 try again", "abandon"},
		{"RCPT", "550 5.1.1 no", "fail"},
		{"dot", "451 4.3.0 try again", "note"},
		{"dot", "554 5.7.1 no", "note"},
	} {
		for _, when := range []string{" before ", " after "} {
			name := strings.Fields(r.reply)[0] + " to " + r.step
			refusal := fault{r.step + " before", respond(r.reply)}
			moment := r.write + strings.TrimRight(when, " ")
			all = append(all,
				point{name: name + ", killed" + when + r.write, faults: []fault{refusal, {moment, kill}}},
				point{name: name + ", cut off" + when + r.write, faults: []fault{refusal, {moment, drop}}},
				point{name: name + ", frozen" + when + r.write, faults: []fault{refusal, {moment, freeze(28 * time.Second)}}})
		}
	}
	return all
}

// wereReset has an operator reset a run while its notify stage is at work, so that
// two are at it.
func resets() []point {
	var all []point
	for _, moment := range []string{"begin after", "DATA after", "dot before", "dot after", "mark before", "mark after"} {
		step, when, _ := strings.Cut(moment, " ")
		all = append(all, point{name: "run reset " + when + " " + step, faults: []fault{{moment, action{kind: actReset}}}})
	}
	return all
}

// unproven leaves nothing to look a mail up in: an operator decides.
func withoutEvidence() []point {
	var all []point
	for name, s := range map[string]fault{
		"killed after begin": {"begin after", kill}, "killed before dot": {"dot before", kill},
		"dropped after dot": {"dot after", drop}, "killed before mark": {"mark before", kill},
		"frozen before dot": {"dot before", freeze(22 * time.Second)}, "frozen after DATA": {"DATA after", freeze(22 * time.Second)},
		"frozen after begin": {"begin after", freeze(22 * time.Second)},
	} {
		all = append(all, point{name: "no evidence, " + name, faults: []fault{s}, evidence: noEvidence})
	}
	for _, when := range []string{" before", " after"} {
		all = append(all,
			point{name: "no evidence, dropped after dot, killed" + when + " hold", faults: []fault{{"dot after", drop}, {"hold" + when, kill}}, evidence: noEvidence},
			point{name: "journal alone, killed" + when + " dot", faults: []fault{{"dot" + when, kill}}, evidence: journalOnly})
	}
	slices.SortFunc(all, func(a, b point) int { return strings.Compare(a.name, b.name) })
	return all
}

// matching returns the points whose name matches a pattern.
func matching(all []point, pattern string) []point {
	wanted := regexp.MustCompile(pattern)
	return slices.DeleteFunc(all, func(p point) bool { return !wanted.MatchString(p.name) })
}
