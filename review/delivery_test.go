package review

import (
	"regexp"
	"strings"
	"testing"
)

// The token identifies changelist, recipient and version (notification 10.2). Mails
// and logs of providers contain it, so it must not change.
func TestDeliveryTokenIsStable(t *testing.T) {
	t.Parallel()
	key := DeliveryKey{Changelist: 4711, Recipient: "ann@example.com", Version: 1}
	if got, want := key.Token(), "20a51b97ffe8f1e45fb56c10ba95c8df"; got != want {
		t.Errorf("token is %s, want %s as in mails already sent", got, want)
	}
	key.Recipient = "Ann@Example.COM"
	if got, want := key.Token(), (DeliveryKey{4711, "ann@example.com", 1}).Token(); got != want {
		t.Errorf("token is %s for an address in capitals, want %s", got, want)
	}
}

func TestDeliveryTokenIsUnique(t *testing.T) {
	t.Parallel()
	seen := map[string]DeliveryKey{}
	for _, k := range []DeliveryKey{
		{4711, "ann@example.com", 1}, {4711, "ann@example.com", 2}, {4711, "bob@example.com", 1},
		{471, "1ann@example.com", 1}, {47, "11ann@example.com", 1}, {4711, "ann@example.com\x001", 1},
		{4711, "ann@example.com", 11}, {4711, "", 1},
	} {
		token := k.Token()
		if other, ok := seen[token]; ok {
			t.Errorf("%+v and %+v share the token %s", k, other, token)
		}
		seen[token] = k
	}
}

func TestDeliveryTokenShowsNoAddress(t *testing.T) {
	t.Parallel()
	token := DeliveryKey{4711, "ann@example.com", 1}.Token()
	if !regexp.MustCompile(`^[0-9a-f]{32}$`).MatchString(token) || strings.Contains(token, "ann") {
		t.Errorf("token %q is not 32 hexadecimal digits", token)
	}
}
