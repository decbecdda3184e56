package p4

import (
	"fmt"
	"strings"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// A messageRule classifies one message of p4 by its text: p4's generic codes do not
// separate, for example, a busy server from a wrong option. p4 runs with LC_ALL=C
// and without P4LANGUAGE, so that the text is English.
type messageRule struct {
	pattern string // parts of the message, separated by *
	class   failure.Class
	// skip is set if the message is about the content of one file: the other files
	// can still be read.
	skip review.SkipReason
	text string // of the error: what failed and what to do
}

// The first rule that matches counts. The text of the message is not reported: it
// can hold names, paths and the output of a trigger.
var messageRules = []messageRule{
	{"no such file(s)", failure.NotFound, review.SkipPurged, "the file revision does not exist: it was obliterated or purged"},
	{"no file(s) at that revision", failure.NotFound, review.SkipPurged, "the file revision does not exist: it was obliterated or purged"},
	{"purged; try using head revision", failure.NotFound, review.SkipPurged, "the content of the file revision was purged"},
	{"protected namespace - access denied", failure.PermissionDenied, review.SkipDenied, "the account may not read the path: grant it read with p4 protect"},
	{"no permission for operation on file(s)", failure.PermissionDenied, review.SkipDenied, "the account may not read the path: grant it read with p4 protect"},
	{"file(s) not in client view", failure.PermissionDenied, review.SkipDenied, "the path is not visible: the server restricts the account to a client view"},
	{"Translation of file content failed", failure.InputInvalid, review.SkipNotDecodable, "the server cannot convert the file's content"},

	{"Change * unknown.", failure.NotFound, "", "the changelist does not exist: check its number"},
	{"You don't have permission for this operation", failure.PermissionDenied, "", "the account lacks the permission: grant it read with p4 protect"},
	{"has not been enabled by 'p4 protect'", failure.PermissionDenied, "", "the account has no permission at all: add it with p4 protect"},
	{"Command not allowed for a service user", failure.PermissionDenied, "", "the account is a service user, which may not read files: use a standard user"},
	{"has been blocked from the server", failure.PermissionDenied, "", "the server blocks the program name criticizer: have its administrator allow it"},
	{"validation failed:", failure.PermissionDenied, "", "a trigger of the server refused the command: ask its administrator"},

	{"Perforce password (P4PASSWD) invalid or unset", failure.AuthDenied, "", "the ticket is missing or wrong: log the account in and renew the ticket"},
	{"Your session has expired", failure.AuthDenied, "", "the session has expired: log the account in and renew the ticket"},
	{"Your session was logged out", failure.AuthDenied, "", "the session was logged out: log the account in and renew the ticket"},
	{"Your password has expired", failure.AuthDenied, "", "the account's password has expired: change it, then renew the ticket"},
	{"Password must be set before access can be granted", failure.AuthDenied, "", "the account has no password: set one, then renew the ticket"},
	{"Password not allowed at this server security level", failure.AuthDenied, "", "the server accepts tickets only: configure the ticket of p4 login -p, not the password"},
	{"Multi factor authentication required", failure.AuthDenied, "", "the account needs a second factor: run p4 login2 for it or exempt it"},

	{"User * doesn't exist.", failure.ConfigInvalid, "", "the account does not exist: correct the configured user"},
	{"Can't create a new user", failure.ConfigInvalid, "", "the account does not exist and the server has no license to create it: correct the configured user"},
	{"License expired", failure.ConfigInvalid, "", "the server's license has expired: renew it"},
	{"Unicode server permits only unicode enabled clients", failure.ConfigInvalid, "", "the server is in unicode mode: configure the charset utf8, or leave it out"},
	{"Unicode clients require a unicode enabled server", failure.ConfigInvalid, "", "the server is not in unicode mode: leave the charset out of the configuration"},

	{"Request too large for server memory", failure.ServerBusy, "", "the server is short of memory"},
	{"Request refused: this server is configured to run a maximum of", failure.ServerBusy, "", "the server runs its maximum number of commands"},
	{"Server is in maintenance mode", failure.ServerBusy, "", "the server is in maintenance mode"},
	{"see 'p4 help maxresults'", failure.TooLarge, "", "the request is over the account's MaxResults: raise it for the account's group"},
	{"see 'p4 help maxscanrows'", failure.TooLarge, "", "the request is over the account's MaxScanRows: raise it for the account's group"},
	{"see 'p4 help maxlocktime'", failure.TooLarge, "", "the request is over the account's MaxLockTime: raise it for the account's group"},

	{"Transfer of librarian file", failure.ReplicaBehind, "", "the replica does not have the content of a file yet"},
	{"Librarian checkout", failure.UpstreamInternal, "", "the server cannot read the archive of a file: have p4 verify run on it"},

	{"TCP port number * is out of range", failure.ConfigInvalid, "", "the port number is wrong: correct the configured port"},
	{"partner is not a Perforce client/server", failure.ConfigInvalid, "", "the address does not belong to a Perforce server: correct the configured port"},
	{"Client must add SSL protocol prefix", failure.ConfigInvalid, "", "the server requires ssl: begin the configured port with ssl:"},
	{"P4PORT IDENTIFICATION HAS CHANGED", failure.ConfigInvalid, "", "the server's key has changed: if the change was intended, renew the file p4trust in the state directory"},
	{"authenticity of * can't be established", failure.ConfigInvalid, "", "the server's key is not trusted: run p4 trust with P4TRUST set to the file p4trust in the state directory"},
	{"exceeded maximum configured duration", failure.NetworkTimeout, "", "the server did not answer in time"},
	{"Connect to server failed", failure.NetworkUnreachable, "", "the server cannot be reached: check the configured port and the network"},
	{"Partner exited unexpectedly", failure.NetworkUnreachable, "", "the server closed the connection"},

	{"Replica does not support this command", failure.ConfigInvalid, "", "the server is a replica without the command: configure another port"},
	{"Unknown command", failure.InvariantViolated, "", "the server does not know the command: releases before 2014.1 are not supported"},
	{"Usage: ", failure.InvariantViolated, "", "the server does not know an option of the command"},
	{"Invalid option", failure.InvariantViolated, "", "p4 does not know an option of the command"},
	{"Relative paths (., ..) not allowed", failure.InvariantViolated, "", "the server refused a path as relative"},
	{"Null directory (//) not allowed", failure.InvariantViolated, "", "the server refused a path with an empty component"},
	{"Invalid changelist", failure.InvariantViolated, "", "the server refused a changelist number or revision"},
	{"is not under client", failure.InvariantViolated, "", "the server read a depot path as a local path"},
}

// classify returns the rule for a message; ok is false if there is none.
func classify(message string) (rule messageRule, ok bool) {
	for _, rule := range messageRules {
		before, after, _ := strings.Cut(rule.pattern, "*")
		if _, rest, found := strings.Cut(message, before); found && strings.Contains(rest, after) {
			return rule, true
		}
	}
	return messageRule{}, false
}

// err returns the error; severity and generic are p4's own codes, 0 if it gave none.
func (m messageRule) err(severity, generic int) error {
	e := failure.Errorf(m.class, "%s", m.text)
	if severity > 0 {
		e.Upstream = fmt.Sprintf("severity %d generic %d", severity, generic)
	}
	return e
}

// The generic codes that classify messages without a rule.
const (
	genericProtect = 6
	genericFault   = 33
	genericComm    = 38
)

// err returns the error of a record, nil if its severity is below 3.
func (r record) err() error {
	if r.severity() < 3 {
		return nil
	}
	rule, ok := classify(r.fields["data"])
	if !ok {
		rule = messageRule{class: failure.Unknown, text: "the server sent an unknown message: run the command by hand to see it"}
	}
	switch generic := r.number("generic"); {
	case ok:
	case generic == genericProtect:
		rule.class = failure.PermissionDenied
	case generic == genericFault:
		rule.class = failure.UpstreamInternal
	case generic == genericComm:
		rule.class = failure.NetworkUnreachable
	}
	return rule.err(r.severity(), r.number("generic"))
}
