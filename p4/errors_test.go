package p4

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// What the real client prints, as far as no transcript is at hand: the text and
// its class, or the reason for which one file is skipped.
func TestMeanings(t *testing.T) {
	t.Parallel()
	cases := []struct {
		text  string
		class failure.Class
		skip  review.SkipReason
	}{
		{"//d/f#3 - no such file(s).\n", failure.NotFound, review.SkipPurged},
		{"//d/f#3 - no file(s) at that revision.\n", failure.NotFound, review.SkipPurged},
		{"//d/f#3 - no permission for operation on file(s).\n", failure.PermissionDenied, review.SkipDenied},
		{"Change 4711 unknown.\n", failure.NotFound, ""},
		{"User reader doesn't exist.\n", failure.ConfigInvalid, ""},
		{"The authenticity of '10.0.0.1:1666' can't be established,\nthis may be your first attempt\n", failure.ConfigInvalid, ""},
		{"******* WARNING P4PORT IDENTIFICATION HAS CHANGED! *******\n", failure.ConfigInvalid, ""},
		{"TCP receive exceeded maximum configured duration of 60 seconds.\n", failure.NetworkTimeout, ""},
		{"Failed client connect, server using SSL.\nClient must add SSL protocol prefix to P4PORT.\n", failure.ConfigInvalid, ""},
		{"RpcTransport: partner is not a Perforce client/server.\n", failure.ConfigInvalid, ""},
		{"Perforce client error:\n\tp4 -h for usage.\n\tInvalid option: --bogus.\n", failure.InvariantViolated, ""},
		{"Command not allowed for a service user.\n", failure.PermissionDenied, ""},
	}
	for _, c := range cases {
		if m, ok := meaningOf(c.text); !ok || m.class != c.class || m.skip != c.skip {
			t.Errorf("%q means %s, %q (%t); want %s, %q", c.text, m.class, m.skip, ok, c.class, c.skip)
		}
	}
	if m, ok := meaningOf("Something quite new.\n"); ok {
		t.Errorf("an unknown message means %+v", m)
	}
}

func TestUnlistedMessagesAreClassedByGenericCode(t *testing.T) {
	t.Parallel()
	for generic, want := range map[int32]failure.Class{6: failure.PermissionDenied, 33: failure.UpstreamInternal, 38: failure.NetworkUnreachable, 4: failure.Unknown} {
		rec, err := decoder{bufio.NewReader(bytes.NewReader(message(3, generic, "Quite new.\n")))}.next()
		if err != nil {
			t.Fatal(err)
		}
		classified, ok := errors.AsType[*failure.Error](rec.err())
		if !ok || classified.Class != want || !strings.HasPrefix(classified.Upstream, "severity 3 generic ") {
			t.Errorf("generic %d is %v, want %s with p4's codes", generic, rec.err(), want)
		}
	}
}

// transcriptClasses says what each case of the recorded error transcripts is;
// "" is no failure of the command.
var transcriptClasses = map[string]failure.Class{
	"MsgDm::NoSuchChange":             failure.NotFound,
	"MsgDm::ExFILE":                   "",
	"MsgDm::ExPROTNAME":               "",
	"MsgDm::ExPROTECT":                "",
	"MsgDm::ExVIEW":                   "",
	"MsgDm::ExDIFF":                   "",
	"MsgDm::NoPerms":                  failure.PermissionDenied,
	"MsgDm::NoProtect":                failure.PermissionDenied,
	"MsgServer::BadPassword":          failure.AuthDenied,
	"MsgServer::LoginExpired":         failure.AuthDenied,
	"MsgServer::LoggedOut":            failure.AuthDenied,
	"MsgServer::PasswordExpired":      failure.AuthDenied,
	"MsgServer::TicketOnly":           failure.AuthDenied,
	"MsgServer::MustSetPassword":      failure.AuthDenied,
	"MsgServer::Login2Required":       failure.AuthDenied,
	"MsgDb::MaxResults":               failure.TooLarge,
	"MsgDb::MaxScanRows":              failure.TooLarge,
	"MsgDm::MaxLockTime":              failure.TooLarge,
	"MsgDb::MaxMemory":                failure.ServerBusy,
	"MsgServer::TooManyCommands":      failure.ServerBusy,
	"MsgServer::MaitModeRestricted":   failure.ServerBusy,
	"MsgDm::TooManyUsers":             failure.ConfigInvalid,
	"MsgDb::LicenseExp":               failure.ConfigInvalid,
	"MsgServer::Unicode":              failure.ConfigInvalid,
	"MsgServer::LbrCheckout":          failure.UpstreamInternal,
	"MsgServer::ReplicaXferFailed":    failure.ReplicaBehind,
	"MsgDm::UserNotExist":             failure.ConfigInvalid,
	"MsgServer::BadCommand":           failure.InvariantViolated,
	"MsgServer::UseDescribe":          failure.InvariantViolated,
	"MsgDb::NotUnderClient":           failure.InvariantViolated,
	"MsgDm::IdRelPath":                failure.InvariantViolated,
	"MsgDm::IdNullDir":                failure.InvariantViolated,
	"MsgDm::BadAtRev":                 failure.InvariantViolated,
	"MsgServer::ClientRejected":       failure.PermissionDenied,
	"MsgServer::TriggerFailed":        failure.PermissionDenied,
	"MsgLbr::Purged":                  failure.NotFound,
	"server drops connection":         failure.NetworkUnreachable,
	"connect localhost:1":             failure.NetworkUnreachable,
	"connect nosuchhost.invalid:1666": failure.NetworkUnreachable,
	"connect 127.0.0.1:99999":         failure.ConfigInvalid,
	"connect ssl:127.0.0.1:1":         failure.NetworkUnreachable,
}

// TestRecordedTranscripts reads what the real client printed in every error case.
func TestRecordedTranscripts(t *testing.T) {
	t.Parallel()
	file, err := os.Open("../../shared/p4-fixtures/client-transcripts/error-transcripts.jsonl")
	if err != nil {
		t.Skip("SKIPPED: no recorded transcripts of the p4 client beside the repository (../shared); the table of messages is only tested against this file's own cases")
	}
	defer func() { _ = file.Close() }()
	seen := 0
	lines := bufio.NewScanner(file)
	for lines.Buffer(nil, 1<<20); lines.Scan(); {
		var run struct {
			Case, Stdout, Stderr string
			Stdout64             []byte `json:"stdout_b64"`
			Argv                 []string
		}
		if err := json.Unmarshal(lines.Bytes(), &run); err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(run.Argv, "-G") {
			continue
		}
		out := append([]byte(run.Stdout), run.Stdout64...)
		want, ok := transcriptClasses[run.Case]
		if !ok {
			t.Errorf("%s is not in the table of this test", run.Case)
		}
		seen++
		if got := classOfTranscript(t, out, run.Stderr); got != want {
			t.Errorf("%s is %q, want %q", run.Case, got, want)
		}
	}
	if err := lines.Err(); err != nil || seen < len(transcriptClasses) {
		t.Errorf("read %d cases of %d: %v", seen, len(transcriptClasses), err)
	}
}

func classOfTranscript(t *testing.T, out []byte, stderr string) failure.Class {
	t.Helper()
	d := decoder{bufio.NewReader(bytes.NewReader(out))}
	for {
		rec, err := d.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("decode %q: %v", out, err)
		}
		if err := rec.err(); err != nil {
			return failure.ClassOf(err)
		}
	}
	if m, ok := meaningOf(stderr); ok {
		return m.class
	}
	return ""
}
