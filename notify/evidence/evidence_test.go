package evidence

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/review"
)

var ann = review.DeliveryKey{Changelist: 4711, Recipient: "ann@example.com", Version: 1}

func generate(t *testing.T) secret.Value {
	t.Helper()
	text, err := Generate()
	testkit.NoError(t, err)
	return text
}

func open(t *testing.T, text secret.Value) *Keys {
	t.Helper()
	k, err := New(text)
	testkit.NoError(t, err)
	return k
}

// The token identifies changelist, recipient and version (notification 10.2), hides
// the address, and cannot be made without the key.
func TestTokenIsAKeyedHash(t *testing.T) {
	t.Parallel()
	text := generate(t)
	k := open(t, text)
	seen := map[string]review.DeliveryKey{}
	for _, d := range []review.DeliveryKey{
		ann, {Changelist: 4711, Recipient: "ann@example.com", Version: 2}, {Changelist: 4711, Recipient: "bob@example.com", Version: 1},
		{Changelist: 471, Recipient: "1ann@example.com", Version: 1}, {Changelist: 4711, Recipient: "ann@example.com\x001", Version: 1},
		{Changelist: 4711, Recipient: "ann@example.com", Version: 11}, {Changelist: 4711, Version: 1},
	} {
		token := k.Token(d)
		if other, ok := seen[token]; ok || !regexp.MustCompile(`^[0-9a-f]{32}$`).MatchString(token) {
			t.Errorf("token %q of %+v, and of %+v", token, d, other)
		}
		seen[token] = d
	}
	capitals := ann
	capitals.Recipient = "Ann@Example.COM"
	if k.Token(capitals) != k.Token(ann) || open(t, text).Token(ann) != k.Token(ann) {
		t.Error("the token depends on capitals, or on the process")
	}
	if open(t, generate(t)).Token(ann) == k.Token(ann) {
		t.Error("the token does not depend on the key")
	}
}

// A worker that resumes after a rotation finds what was sent before, and two workers
// that read the new file at different times find each other's messages.
func TestRotation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		first := generate(t)
		old := open(t, first)
		time.Sleep(24 * time.Hour)
		rotated, err := Rotate(first)
		testkit.NoError(t, err)
		renewed := open(t, rotated)
		before := old.Token(ann)
		if renewed.Token(ann) != before {
			t.Fatal("the new key signs before all workers can have it")
		}
		sent := time.Now()
		time.Sleep(rotationDelay + 2*clockSkew)
		after := renewed.Token(ann)
		for at, want := range map[time.Time][]string{sent: {before, after}, time.Now(): {after, before}} {
			if got, complete := renewed.Tokens(ann, at); !slices.Equal(got, want) || !complete || after == before {
				t.Errorf("tokens %q, complete %t, want %q", got, complete, want)
			}
		}
		time.Sleep(life)
		if got, complete := renewed.Tokens(ann, time.Now()); !slices.Equal(got, []string{after}) || !complete {
			t.Errorf("tokens %q, complete %t after the life of the old key", got, complete)
		}
		if _, complete := renewed.Tokens(ann, sent); complete {
			t.Error("an expired key identifies a message")
		}
	})
}

// Without the key of a message, no look-up proves that the message does not exist.
func TestMissingKeyProvesNothing(t *testing.T) {
	t.Parallel()
	k := open(t, generate(t))
	for at, want := range map[time.Time]bool{time.Now(): true, time.Now().Add(-time.Hour): false, {}: false} {
		if _, complete := k.Tokens(ann, at); complete != want {
			t.Errorf("sent at %s: complete %t", at, complete)
		}
	}
}

func TestInvalidKeys(t *testing.T) {
	t.Parallel()
	good := generate(t).Reveal()
	at, encoded, _ := strings.Cut(good, " ")
	many := ""
	for i := range maxKeys + 1 {
		many += fmt.Sprintf("2026-01-%02dT00:00:00Z %s\n", i+1, base64.StdEncoding.EncodeToString([]byte(fmt.Sprintf("%032d", i))))
	}
	for name, text := range map[string]string{
		"empty": "", "blank": "\n \n", "no time": encoded, "no key": at, "short": at + " QUJD", "not base64": at + " " + strings.Repeat("!", 44),
		"a Tink keyset": `{"primaryKeyId":1,"key":[]}`, "the same time": good + "\n" + at + " " + base64.StdEncoding.EncodeToString(make([]byte, 32)),
		"the same key": good + "\n2020-01-01T00:00:00Z " + encoded, "too many": many,
	} {
		_, err := New(secret.New(text))
		if failure.ClassOf(err) != failure.ConfigInvalid || strings.Contains(err.Error(), encoded) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := Check(secret.New("\n" + good + "\n\n")); err != nil {
		t.Errorf("blank lines: %v", err)
	}
}
