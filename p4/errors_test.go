package p4

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// Each rule classifies a message that the 2023.2 client prints. Severity 0 stands
// for text on stderr, without a record.
func TestMessageRules(t *testing.T) {
	t.Parallel()
	cases := []struct {
		severity, generic int32
		text              string
		class             failure.Class
		skip              review.SkipReason
	}{
		{2, 17, "//d/f#3 - no such file(s).", failure.NotFound, review.SkipPurged},
		{2, 17, "//d/f#3 - no file(s) at that revision.", failure.NotFound, review.SkipPurged},
		{3, 17, "Old revision 1.5 of tempobj //depot/a purged; try using head revision.", failure.NotFound, review.SkipPurged},
		{2, 17, "//secret/... - protected namespace - access denied.", failure.PermissionDenied, review.SkipDenied},
		{2, 17, "//d/f#3 - no permission for operation on file(s).", failure.PermissionDenied, review.SkipDenied},
		{2, 17, "//d/f - file(s) not in client view.", failure.PermissionDenied, review.SkipDenied},
		{2, 4, "Translation of file content failed near line 1 file //d/f", failure.InputInvalid, review.SkipNotDecodable},

		{3, 2, "Change 4711 unknown.", failure.NotFound, ""},
		{3, 6, "You don't have permission for this operation.", failure.PermissionDenied, ""},
		{3, 6, "Access for user 'svc' has not been enabled by 'p4 protect'.", failure.PermissionDenied, ""},
		{3, 36, "Command not allowed for a service user.", failure.PermissionDenied, ""},
		{3, 1, "Your application 'criticizer' has been blocked from the server, please contact your administrator.", failure.PermissionDenied, ""},
		{3, 5, "'criticizer' validation failed: boom", failure.PermissionDenied, ""},

		{3, 36, "Perforce password (P4PASSWD) invalid or unset.", failure.AuthDenied, ""},
		{3, 4, "Your session has expired, please login again.", failure.AuthDenied, ""},
		{3, 4, "Your session was logged out, please login again.", failure.AuthDenied, ""},
		{3, 4, "Your password has expired, please change your password.", failure.AuthDenied, ""},
		{3, 1, "Password must be set before access can be granted.", failure.AuthDenied, ""},
		{3, 1, "Password not allowed at this server security level, use 'p4 login'.", failure.AuthDenied, ""},
		{3, 36, "Multi factor authentication required! Run 'p4 login2'.", failure.AuthDenied, ""},

		{3, 2, "User reader doesn't exist.", failure.ConfigInvalid, ""},
		{3, 35, "Can't create a new user - over license quota.", failure.ConfigInvalid, ""},
		{3, 35, "License expired.", failure.ConfigInvalid, ""},
		{3, 36, "Unicode server permits only unicode enabled clients.", failure.ConfigInvalid, ""},
		{3, 36, "Unicode clients require a unicode enabled server.", failure.ConfigInvalid, ""},

		{4, 39, "Request too large for server memory (try later?).", failure.ServerBusy, ""},
		{3, 1, "Request refused: this server is configured to run a maximum of 100 simultaneous commands.", failure.ServerBusy, ""},
		{3, 1, "Server is in maintenance mode, command 'user-describe' is not supported in this mode.", failure.ServerBusy, ""},
		{3, 35, "Request too large (over 500000); see 'p4 help maxresults'.", failure.TooLarge, ""},
		{3, 35, "Too many rows scanned (over 500000); see 'p4 help maxscanrows'.", failure.TooLarge, ""},
		{3, 35, "Operation took too long (over 30 seconds); see 'p4 help maxlocktime'.", failure.TooLarge, ""},

		{3, 33, "Transfer of librarian file 'depot/file1' failed.", failure.ReplicaBehind, ""},
		{3, 33, "Librarian checkout depot/file1 failed.", failure.UpstreamInternal, ""},

		{0, 0, "Perforce client error:\n\tConnect to server failed; check $P4PORT.\n\tTCP port number 99999 is out of range.", failure.ConfigInvalid, ""},
		{0, 0, "Perforce client error:\n\tRpcTransport: partner is not a Perforce client/server.", failure.ConfigInvalid, ""},
		{0, 0, "Failed client connect, server using SSL.\nClient must add SSL protocol prefix to P4PORT.", failure.ConfigInvalid, ""},
		{3, 38, "******* WARNING P4PORT IDENTIFICATION HAS CHANGED! *******", failure.ConfigInvalid, ""},
		{3, 38, "The authenticity of '10.0.0.1:1666' can't be established,\nthis may be your first attempt", failure.ConfigInvalid, ""},
		{0, 0, "TCP receive exceeded maximum configured duration of 60 seconds.", failure.NetworkTimeout, ""},
		{0, 0, "Perforce client error:\n\tConnect to server failed; check $P4PORT.\n\tName or service not known", failure.NetworkUnreachable, ""},
		{3, 38, "Partner exited unexpectedly.", failure.NetworkUnreachable, ""},

		{3, 1, "Replica does not support this command.", failure.ConfigInvalid, ""},
		{3, 1, "Unknown command.  Try 'p4 help' for info.", failure.InvariantViolated, ""},
		{3, 1, "Usage: describe [-d<flags> -a -m max -s -S -f -O -I] changelist# ...", failure.InvariantViolated, ""},
		{0, 0, "Perforce client error:\n\tp4 -h for usage.\n\tInvalid option: --bogus.", failure.InvariantViolated, ""},
		{3, 1, "Relative paths (., ..) not allowed in '//depot/..'.", failure.InvariantViolated, ""},
		{3, 1, "Null directory (//) not allowed in '//depot//x'.", failure.InvariantViolated, ""},
		{3, 4, "Invalid changelist/client/label/date '@x'.", failure.InvariantViolated, ""},
		{3, 3, "Path '//depot/x' is not under client 'ws'.", failure.InvariantViolated, ""},
	}
	var used []string
	for _, c := range cases {
		rule, ok := classify(c.text + "\n")
		if used = append(used, rule.pattern); !ok || rule.class != c.class || rule.skip != c.skip {
			t.Errorf("%q is %s, %q (%t); want %s, %q", c.text, rule.class, rule.skip, ok, c.class, c.skip)
		}
		if c.severity == 0 {
			continue
		}
		records, err := decodeAll(message(c.severity, c.generic, c.text+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		if err := records[0].err(); (err != nil) != (c.severity >= 3) || err != nil && failure.ClassOf(err) != c.class {
			t.Errorf("%q with severity %d is the error %v, want %s", c.text, c.severity, err, c.class)
		}
	}
	for _, rule := range messageRules {
		if !slices.Contains(used, rule.pattern) {
			t.Errorf("no case has a message with %q", rule.pattern)
		}
	}
	if rule, ok := classify("An unknown message.\n"); ok {
		t.Errorf("an unknown message is %+v", rule)
	}
}

func TestUnknownMessagesAreClassifiedByGenericCode(t *testing.T) {
	t.Parallel()
	for generic, want := range map[int32]failure.Class{6: failure.PermissionDenied, 33: failure.UpstreamInternal, 38: failure.NetworkUnreachable, 4: failure.Unknown} {
		records, err := decodeAll(message(3, generic, "Quite new.\n"))
		if err != nil {
			t.Fatal(err)
		}
		classified, ok := errors.AsType[*failure.Error](records[0].err())
		if !ok || classified.Class != want || !strings.HasPrefix(classified.Upstream, "severity 3 generic ") {
			t.Errorf("generic %d is %v, want %s with p4's codes", generic, records[0].err(), want)
		}
	}
}
