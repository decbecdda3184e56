package chaos

import (
	"strings"
	"time"
)

// An action is what happens at a moment.
type action struct {
	kind actionKind
	// reply is the SMTP reply of actReply.
	reply string
	// during is how long a server stays out of reach, for actDown.
	during time.Duration
}

type actionKind int

const (
	actNothing actionKind = iota
	actKill               // SIGKILL the worker; what it said or was to hear is lost
	actDrop               // break the connection
	actReply              // answer in the server's place, which hears nothing
	actDown               // break the connection, and refuse new ones for a while
)

var (
	kill = action{kind: actKill}
	drop = action{kind: actDrop}
)

func answer(reply string) action       { return action{kind: actReply, reply: reply} }
func down(during time.Duration) action { return action{kind: actDown, during: during} }

// A strike is an action at a moment, such as "RCPT before": the worker has
// said it and the server has not heard it, or "RCPT after": the server has
// answered and the worker does not know it.
type strike struct {
	moment string
	action action
}

// A point is one row of the matrix: strikes that follow each other.
type point struct {
	name    string
	strikes []strike
	// undelivered has the mail server keep everything in its queue until the
	// review has been tried again for this long.
	undelivered time.Duration
}

// skip has the runs strike in turn at the first and the second recipient.
func (p point) skip(run int) int {
	if len(p.strikes) > 0 && strings.HasPrefix(p.strikes[0].moment, "prepare") {
		return 0 // it concerns both at once
	}
	return (run - 1) % 2
}

// The steps of the sequence, as the proxies call them. They are, in this
// order: the outbox rows are prepared, a row is read, the attempt begun, the
// SMTP conversation held, the row marked.
var steps = []string{"prepare", "read", "begin", "dial", "MAIL", "RCPT", "DATA", "dot", "QUIT", "mark"}

// smtpSteps can be answered by a mail server in a bad mood.
var smtpSteps = []string{"dial", "EHLO", "MAIL", "RCPT", "DATA", "dot"}

func points() []point {
	all := []point{
		{name: "killed in the middle of the body", strikes: []strike{{"body after", kill}}},
		{name: "confirmation swallowed", strikes: []strike{{"dot after", drop}}},
		{name: "confirmation swallowed, killed before look-up", strikes: []strike{{"dot after", drop}, {"look-up before", kill}}},
		{name: "confirmation swallowed, killed after look-up", strikes: []strike{{"dot after", drop}, {"look-up after", kill}}},
		{name: "confirmation swallowed, mailboxes down for 10s", strikes: []strike{{"dot after", drop}, {"look-up before", down(10 * time.Second)}}},
		{name: "killed before mark, then again after look-up", strikes: []strike{{"mark before", kill}, {"mark after", kill}}},
		{name: "database connection cut after mark", strikes: []strike{{"mark after", drop}}},
		{name: "database down for 5s before mark", strikes: []strike{{"mark before", down(5 * time.Second)}}},
		{name: "database down for 5s after mark", strikes: []strike{{"mark after", down(5 * time.Second)}}},
		{name: "database down for 5s before begin", strikes: []strike{{"begin before", down(5 * time.Second)}}},
		{name: "mail server down for 5s", strikes: []strike{{"dial before", down(5 * time.Second)}}},
		{name: "delivery down, confirmation swallowed", strikes: []strike{{"dot after", drop}}, undelivered: 15 * time.Second},
		{name: "delivery down, killed before mark", strikes: []strike{{"mark before", kill}}, undelivered: 25 * time.Second},
	}
	for _, step := range steps {
		for _, when := range []string{" before", " after"} {
			all = append(all, point{name: "killed" + when + " " + step, strikes: []strike{{step + when, kill}}})
		}
	}
	for _, step := range smtpSteps {
		all = append(all, point{name: "dropped before " + step, strikes: []strike{{step + " before", drop}}})
		for _, reply := range []string{"451 4.3.0 try again", "554 5.7.1 no"} {
			all = append(all, point{name: strings.Fields(reply)[0] + " to " + step, strikes: []strike{{step + " before", answer(reply)}}})
		}
		if step != "dot" { // that is the swallowed confirmation
			all = append(all, point{name: "dropped after " + step, strikes: []strike{{step + " after", drop}}})
		}
	}
	return all
}
