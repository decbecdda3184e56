package p4

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

const (
	pinnedKey = "AA:BB:CC:DD:EE:FF:00:11:22:33:44:55:66:77:88:99:AA:BB:CC:DD"
	otherKey  = "5A:5A:5A:5A:5A:5A:5A:5A:5A:5A:5A:5A:5A:5A:5A:5A:5A:5A:5A:5A"
)

func untrustedKey(address, key string) []byte {
	return message(3, 38, "The authenticity of '"+address+"' can't be established,\nthis may be your first attempt to connect to this P4PORT.\nThe fingerprint for the key sent to your client is\n"+key+"\nTo allow connection use the 'p4 trust' command.\n")
}

func changedKey(address, key string) []byte {
	return message(3, 38, "******* WARNING P4PORT IDENTIFICATION HAS CHANGED! *******\nIt is possible that someone is intercepting your connection\nto the Perforce P4PORT '"+address+"'\nIf this is not a scheduled key change, then you should contact\nyour Perforce administrator.\nThe fingerprint for the mismatched key sent to your client is\n"+key+"\n")
}

// The key of the configuration is trusted at every address, and no other key.
func TestServerKeyIsPinned(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		message []byte
		pinned  string
		says    []string // in the error; none for success
	}{
		"the pinned key":               {untrustedKey("10.0.0.1:1666", pinnedKey), strings.ToLower(pinnedKey), nil},
		"another key":                  {untrustedKey("10.0.0.1:1666", otherKey), pinnedKey, []string{pinnedKey, otherKey, "p4.fingerprint"}},
		"a changed key":                {changedKey("10.0.0.1:1666", otherKey), pinnedKey, []string{pinnedKey, otherKey, "intercept"}},
		"a key without a pin":          {untrustedKey("10.0.0.1:1666", otherKey), "", []string{otherKey, "p4.fingerprint"}},
		"a changed key without a pin":  {changedKey("10.0.0.1:1666", otherKey), "", []string{otherKey, "has changed"}},
		"a message without the server": {message(3, 38, "The authenticity of 'x' can't be established,\n"), pinnedKey, []string{"not trusted"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			info := f.replies["info -s"]
			info.First = tt.message
			f.replies["info -s"] = info
			fetcher := f.fetcher(func(c *Config) { c.Fingerprint = tt.pinned })
			_, err := fetcher.Info(t.Context())
			if (err == nil) != (tt.says == nil) || err != nil && failure.ClassOf(err) != failure.ConfigInvalid {
				t.Fatalf("error %v, want one with %q", err, tt.says)
			}
			for _, want := range tt.says {
				if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "10.0.0.1") {
					t.Errorf("error %q, want %q and no address", err, want)
				}
			}
			file := filepath.Join(f.dir, "state", "p4trust")
			if tt.pinned != "" {
				file += "-" + strings.ReplaceAll(pinnedKey, ":", "")
			}
			if env := f.calls()[0].Env; !slices.Contains(env, "P4TRUST="+file) {
				t.Errorf("environment %q, want P4TRUST=%s", env, file)
			}
			trusted, _ := os.ReadFile(file)
			if want := "10.0.0.1:1666=**++**:" + pinnedKey + "\n"; (string(trusted) == want) != (err == nil) {
				t.Errorf("trusted %q, want %q if there is no error: %v", trusted, want, err)
			}
		})
	}
}

// The name of a server may lead to several addresses, each of which p4 has to trust.
func TestServerChangesItsAddress(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.submitted(12, rev{path: "//depot/a.c", rev: 1, action: "add", data: "new\n"})
	d := f.replies["describe 12"]
	d.First = untrustedKey("10.0.0.2:1666", pinnedKey)
	f.replies["describe 12"] = d
	fetcher := f.fetcher(func(c *Config) { c.Fingerprint = pinnedKey })
	change, err := fetcher.Read(t.Context(), 12, review.ReadOptions{})
	if err != nil || change.Files[0].Diff == "" {
		t.Errorf("%+v, %v", change, err)
	}
}

// Text that comes without a record, and is not known, is shown without names and addresses.
func TestUnknownTextWithoutARecord(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.replies["describe 12"] = reply{Stderr: "Perforce client error:\n\tThe gate at gate.example.com:1666 is shut for Jörg (//depot/secret/a.c).\n", Exit: 1}
	_, err := f.fetch(12)
	if failure.ClassOf(err) != failure.UpstreamInternal || err == nil || !strings.Contains(err.Error(), "The gate at ... is shut for ...") {
		t.Errorf("error %v", err)
	}
}
